import { fail, ok, type Result } from "../base/result.ts";
import { formatProblem } from "../config/diagnostics/problem.ts";
import type { PolicyRule } from "../model/policy/policy.ts";
import { type Difference, differences } from "../policy/policy-diff.ts";
import { rulesOf } from "../daemon/policy-settings.ts";
import { paintFor, type Tone } from "./output/colour.ts";
import { judgePolicies } from "./config/config-loading.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode, readTextFile } from "./context.ts";
import { printable } from "./daemon-api/client.ts";

/** Options of `policy diff`. */
export interface PolicyDiffOptions {
  readonly output: "text" | "json";
}

/** `policy diff OLD NEW`: what the new policies could newly touch, and what they no longer do. */
export async function policyDiff(
  [before, after]: readonly string[],
  { output }: PolicyDiffOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const [old, next] = [rulesIn(before!, context), rulesIn(after!, context)];
  if (!old.ok || !next.ok) {
    const errors = [...(old.ok ? [] : old.error), ...(next.ok ? [] : next.error)];
    context.err.write(errors.map((error) => `${error}\n`).join(""));
    return EXIT_BAD;
  }
  const found = differences(old.value, next.value);
  context.out.write(output === "json" ? `${JSON.stringify({ differences: found }, null, 2)}\n` : text(found, context));
  return EXIT_FINE;
}

function rulesIn(file: string, { env }: CommandContext): Result<readonly PolicyRule[], readonly string[]> {
  const read = readTextFile(file);
  if (!read.ok) return fail([read.error]);
  const judged = judgePolicies(file, read.value, env);
  return judged.ok ? ok(rulesOf({ policies: judged.value })) : fail(judged.error.map(formatProblem));
}

const looks: Readonly<Record<Difference["effect"], readonly [sign: string, Tone | null]>> = {
  more: ["+", "bad"],
  less: ["-", "good"],
  other: ["~", null],
};

function text(found: readonly Difference[], { out, env }: CommandContext): string {
  if (found.length === 0) return "no difference\n";
  const paint = paintFor(out, env);
  const policies = Map.groupBy(found, ({ policy }) => policy);
  const blocks = [...policies].map(([policy, own]) => {
    const lines = own.map(({ key, effect, text: what }) => {
      const [sign, tone] = looks[effect];
      const line = printable(`${sign} ${key}: ${what}`);
      return `  ${tone === null ? line : paint(tone, line)}\n`;
    });
    return `${paint("title", printable(policy))}\n${lines.join("")}`;
  });
  return `${blocks.join("")}\n+ acts on more nodes, or earlier; - acts on fewer nodes, or later; ~ other change\n`;
}
