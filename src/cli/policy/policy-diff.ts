import { comparePolicies, type PolicyDifference } from "../../policy/policy-diff.ts";
import { readPolicies } from "../config/config-loading.ts";
import { type CommandContext, CommandFailure, type OutputOption, orStopped, print, printProblems } from "../context.ts";
import { type Paint, stripControlCharacters, type Tone } from "../output/text.ts";

/** `policy diff OLD NEW`: compares on which nodes the policies of two files act. */
export async function runPolicyDiff(
  options: OutputOption,
  context: CommandContext,
  files: readonly string[],
): Promise<void> {
  const [before, after] = files;
  const read = (file: string) => orStopped(readPolicies(file, context.env), context.stop);
  const [old, next] = [await read(before!), await read(after!)];
  if (!old.ok || !next.ok) {
    for (const read of [old, next]) if (!read.ok) printProblems(context, read.error);
    throw new CommandFailure();
  }
  const found = comparePolicies(old.value, next.value);
  print(context, options, { differences: found }, ({ differences }, paint) => formatDifferences(differences, paint));
}

const EFFECT_STYLES: Readonly<Record<PolicyDifference["effect"], readonly [sign: string, Tone | null]>> = {
  more: ["+", "bad"],
  less: ["-", "good"],
  other: ["~", null],
};

function formatDifferences(found: readonly PolicyDifference[], paint: Paint): string {
  if (found.length === 0) return "no difference between the policies\n";
  const policies = Map.groupBy(found, ({ policy }) => policy);
  const blocks = [...policies].map(([policy, own]) => {
    const lines = own.map(({ key, effect, text }) => {
      const [sign, tone] = EFFECT_STYLES[effect];
      const line = stripControlCharacters(`${sign} ${key}: ${text}`);
      return `  ${tone === null ? line : paint(tone, line)}\n`;
    });
    return `${paint("title", stripControlCharacters(policy))}\n${lines.join("")}`;
  });
  return `${blocks.join("")}\n+ acts on more nodes, or earlier; - acts on fewer nodes, or later; ~ other change\n`;
}
