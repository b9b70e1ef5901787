import { fail, ok, type Result } from "../base/result.ts";
import { formatProblem } from "../config/diagnostics/problem.ts";
import { policyRulesOf } from "../config/policy-file.ts";
import type { PolicyRule } from "../model/policy/policy.ts";
import { comparePolicies, type PolicyDifference } from "../policy/policy-diff.ts";
import { parsePolicies } from "./config/config-loading.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode, printJson, readTextFile } from "./context.ts";
import { stripControlCharacters } from "./daemon-api/client.ts";
import { createPaint, type Tone } from "./output/color.ts";

/** Options of `policy diff`. */
export interface PolicyDiffOptions {
  readonly output: "text" | "json";
}

/** `policy diff OLD NEW`: compares which nodes two policy files act on. */
export async function runPolicyDiff(
  [before, after]: readonly string[],
  { output }: PolicyDiffOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const [old, next] = [readRules(before!, context), readRules(after!, context)];
  if (!old.ok || !next.ok) {
    const errors = [...(old.ok ? [] : old.error), ...(next.ok ? [] : next.error)];
    context.err.write(errors.map((error) => `${error}\n`).join(""));
    return EXIT_FAILURE;
  }
  const found = comparePolicies(old.value, next.value);
  if (output === "json") printJson(context, { differences: found });
  else context.out.write(formatDifferences(found, context));
  return EXIT_OK;
}

function readRules(file: string, { env }: CommandContext): Result<readonly PolicyRule[], readonly string[]> {
  const read = readTextFile(file);
  if (!read.ok) return fail([read.error]);
  const parsed = parsePolicies(file, read.value, env);
  return parsed.ok ? ok(policyRulesOf(parsed.value)) : fail(parsed.error.map(formatProblem));
}

const EFFECT_STYLES: Readonly<Record<PolicyDifference["effect"], readonly [sign: string, Tone | null]>> = {
  more: ["+", "bad"],
  less: ["-", "good"],
  other: ["~", null],
};

function formatDifferences(found: readonly PolicyDifference[], { out, env }: CommandContext): string {
  if (found.length === 0) return "no difference\n";
  const paint = createPaint(out, env);
  const policies = Map.groupBy(found, ({ policy }) => policy);
  const blocks = [...policies].map(([policy, own]) => {
    const lines = own.map(({ key, effect, text: what }) => {
      const [sign, tone] = EFFECT_STYLES[effect];
      const line = stripControlCharacters(`${sign} ${key}: ${what}`);
      return `  ${tone === null ? line : paint(tone, line)}\n`;
    });
    return `${paint("title", stripControlCharacters(policy))}\n${lines.join("")}`;
  });
  return `${blocks.join("")}\n+ acts on more nodes, or earlier; - acts on fewer nodes, or later; ~ other change\n`;
}
