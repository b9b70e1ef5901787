import { formatDuration } from "../base/duration.ts";
import { fail } from "../base/result.ts";
import { type ConfigProblem, formatProblem } from "../config/diagnostics/problem.ts";
import { policyRulesOf } from "../config/policy-file.ts";
import { type LoadedPolicyTests, testNodeSchema } from "../config/schema/policy-test.ts";
import { camelKeys } from "../config/schema/value-types.ts";
import { positionIn } from "../config/yaml/position.ts";
import type { PolicyTest, ScriptedNode } from "../model/policy/policy-test.ts";
import type { RemediationRules } from "../remediation/context.ts";
import { parsePolicyTests } from "./config/config-loading.ts";
import { type CommandContext, EXIT_FAILURE, EXIT_OK, type ExitCode, printJson, readTextFile } from "./context.ts";
import { stripControlCharacters } from "./daemon-api/client.ts";
import { createPaint } from "./output/colour.ts";
import { withProgress } from "./output/progress.ts";
import { type FailedExpectation, runPolicyTest } from "./policy-tests/runner.ts";

/** Options of `test`. */
export interface TestOptions {
  readonly output: "text" | "json";
}

/** Result of one test. */
interface TestResult {
  readonly name: string;
  readonly passed: boolean;
  readonly misses: readonly { readonly line: number; readonly column: number; readonly text: string }[];
}

/** Result of one file. */
interface FileResult {
  readonly file: string;
  readonly errors: readonly (ConfigProblem | string)[];
  readonly tests: readonly TestResult[];
}

/** `policy test FILE…`: runs the policy tests in the given files. */
export async function runPolicyTests(
  files: readonly string[],
  { output }: TestOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const results: FileResult[] = [];
  for (const file of files) results.push(await withProgress(`testing ${file}`, runFile(file, context), context));
  const passed = results.every(({ errors, tests }) => errors.length === 0 && tests.every((each) => each.passed));
  if (output === "json") printJson(context, { passed, files: results });
  else printResults(results, context);
  return passed ? EXIT_OK : EXIT_FAILURE;
}

async function runFile(file: string, { env }: CommandContext): Promise<FileResult> {
  const text = readTextFile(file);
  const loaded = text.ok ? parsePolicyTests(file, text.value, env) : fail([text.error]);
  if (!loaded.ok) return { file, errors: loaded.error, tests: [] };
  const rules = rulesUnderTest(loaded.value);
  const tests: TestResult[] = [];
  for (const [index, policyTest] of toPolicyTests(loaded.value).entries()) {
    const misses = await runPolicyTest(policyTest, rules);
    const placed = misses.map((miss) => ({
      ...positionIn(loaded.value.marks, ["tests", index, "expect", miss.index]),
      text: formatFailure(miss),
    }));
    tests.push({ name: policyTest.name, passed: misses.length === 0, misses: placed });
  }
  return { file, errors: [], tests };
}

/** The policies under test, all enforced unless the file says otherwise. */
function rulesUnderTest({ file, policies }: LoadedPolicyTests): RemediationRules {
  const enforced = file.mode === "enforce";
  const rules = policyRulesOf(policies);
  const safety = file.safety;
  return {
    policies: enforced ? rules.map((rule) => ({ ...rule, mode: "enforce" })) : rules,
    safety: enforced ? { ...safety, mode: "enforce" } : safety,
    intervals: file.time_intervals,
  };
}

function toPolicyTests({ file, policies }: LoadedPolicyTests): readonly PolicyTest[] {
  const [alertsOnly] = policies;
  return file.tests.map(({ name, fleet, nodes, blocked, expect }) => ({
    name,
    startsAt: file.start,
    intervalMs: file.interval,
    nodes: [
      ...nodes.map((node) => toScriptedNode(node, fleet)),
      ...Array.from({ length: fleet.nodes }, (_, index) =>
        toScriptedNode(testNodeSchema.parse({ id: `fleet_${index + 1}` }), fleet),
      ),
    ],
    blocked,
    expectations: expect.map(({ at, policy, ...rest }) => ({
      ...rest,
      atMs: at,
      policy: policy ?? alertsOnly!.policy.name,
    })),
  }));
}

type TestConfig = LoadedPolicyTests["file"]["tests"][number];

const toScriptedNode = (node: TestConfig["nodes"][number], { country, region }: TestConfig["fleet"]): ScriptedNode => ({
  ...{ name: node.id, country, region, lastSeen: null, uptimeHours: null },
  ...camelKeys(node),
});

const formatFailure = ({ expected, lines }: FailedExpectation): string =>
  `at ${formatDuration(expected.atMs)}, ${expected.node} by ${expected.policy}: ${lines.join("\n  ")}`;

function printResults(results: readonly FileResult[], { out, err, env }: CommandContext): void {
  const paint = createPaint(out, env);
  for (const { file, errors, tests } of results) {
    for (const error of errors) err.write(`${typeof error === "string" ? error : formatProblem(error)}\n`);
    if (errors.length === 0) out.write(`${paint("title", file)}\n`);
    for (const { name, passed, misses } of tests) {
      out.write(`  ${passed ? paint("good", "ok  ") : paint("bad", "FAIL")}  ${stripControlCharacters(name)}\n`);
      for (const { line, column, text } of misses) {
        const lines = `${file}:${line}:${column}: ${text}`.split("\n").map(stripControlCharacters);
        out.write(`        ${lines.join("\n        ")}\n`);
      }
    }
  }
  const all = results.flatMap(({ tests }) => tests);
  const failed = all.filter(({ passed }) => !passed).length;
  const broken = results.filter(({ errors }) => errors.length > 0).length;
  const counts = [`${all.length - failed} passed`, `${failed} failed`];
  if (broken > 0) counts.push(`${broken} invalid ${broken === 1 ? "file" : "files"}`);
  out.write(`${paint(failed + broken === 0 ? "good" : "bad", counts.join(", "))}\n`);
}
