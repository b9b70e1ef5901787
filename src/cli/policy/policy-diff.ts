import { fail, type Result } from "../../base/result.ts";
import type { PolicyRule } from "../../model/policy/policy.ts";
import { readTextInput } from "../../platform/text-file.ts";
import { comparePolicies, type PolicyDifference } from "../../policy/policy-diff.ts";
import { type Problem, parsePolicies, printProblems } from "../config/config-loading.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode, type OutputOption, print } from "../context.ts";
import { type Paint, stripControlCharacters, type Tone } from "../output/text.ts";

/** `policy diff OLD NEW`: compares which nodes two policy files act on. */
export async function runPolicyDiff(
  options: OutputOption,
  context: CommandContext,
  files: readonly string[],
): Promise<ExitCode> {
  const [before, after] = files;
  const [old, next] = [await readRules(before!, context), await readRules(after!, context)];
  if (!old.ok || !next.ok) {
    printProblems(
      context,
      [old, next].flatMap((read) => (read.ok ? [] : read.error)),
    );
    return EXIT_FAILURE;
  }
  const found = comparePolicies(old.value, next.value);
  print(context, options, { differences: found }, ({ differences }, paint) => formatDifferences(differences, paint));
  return EXIT_OK;
}

async function readRules(
  file: string,
  { env }: CommandContext,
): Promise<Result<readonly PolicyRule[], readonly Problem[]>> {
  const read = await readTextInput(file);
  return read.ok ? parsePolicies(file, read.value, env) : fail([read.error]);
}

const EFFECT_STYLES: Readonly<Record<PolicyDifference["effect"], readonly [sign: string, Tone | null]>> = {
  more: ["+", "bad"],
  less: ["-", "good"],
  other: ["~", null],
};

function formatDifferences(found: readonly PolicyDifference[], paint: Paint): string {
  if (found.length === 0) return "no difference\n";
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
