import { formatDuration } from "../../base/duration.ts";
import { fail } from "../../base/result.ts";
import type { LoadedPolicyTests } from "../../config/policy-test-file.ts";
import type { PolicyTest } from "../../config/schema/policy-test.ts";
import { positionIn } from "../../config/yaml/position.ts";
import { readTextInput } from "../../platform/text-file.ts";
import type { RemediationConfig } from "../../remediation/context.ts";
import { countNoun } from "../../web/ui/page/format.ts";
import { type FileProblem, parsePolicyTests } from "../config/config-loading.ts";
import { type CommandContext, CommandFailure, type OutputOption, orStopped, print, printProblems } from "../context.ts";
import { withProgress } from "../output/progress.ts";
import { type Paint, stripControlCharacters } from "../output/text.ts";
import { type FailedExpectation, runPolicyTest } from "./policy-test-runner.ts";

/** Result of one test. */
interface TestResult {
  readonly name: string;
  readonly passed: boolean;
  readonly misses: readonly { readonly line: number; readonly column: number; readonly text: string }[];
}

/** Result of one file. */
interface FileResult {
  readonly file: string;
  readonly errors: readonly FileProblem[];
  readonly tests: readonly TestResult[];
}

/** `policy test FILE…`: runs the policy tests in the given files. */
export async function runPolicyTests(
  options: OutputOption,
  context: CommandContext,
  files: readonly string[],
): Promise<void> {
  const results: FileResult[] = [];
  for (const file of files) {
    const result = orStopped(runFile(file, context), context.stop);
    results.push(await withProgress(`testing ${file}`, result, context));
  }
  const passed = results.every(({ errors, tests }) => errors.length === 0 && tests.every((test) => test.passed));
  if (options.output === "text") for (const { errors } of results) printProblems(context, errors);
  print(context, options, { passed, files: results }, ({ files }, paint) => formatResults(files, paint));
  if (!passed) throw new CommandFailure();
}

async function runFile(file: string, { env }: CommandContext): Promise<FileResult> {
  const text = await readTextInput(file);
  const loaded = text.ok ? parsePolicyTests(file, text.value, env) : fail([{ file, message: text.error }]);
  if (!loaded.ok) return { file, errors: loaded.error, tests: [] };
  const config = configUnderTest(loaded.value);
  const tests: TestResult[] = [];
  for (const [index, policyTest] of toPolicyTests(loaded.value).entries()) {
    const misses = await runPolicyTest(policyTest, config);
    const placed = misses.map((miss) => ({
      ...positionIn(loaded.value.marks, ["tests", index, "expect", miss.index]),
      text: formatFailure(miss),
    }));
    tests.push({ name: policyTest.name, passed: misses.length === 0, misses: placed });
  }
  return { file, errors: [], tests };
}

/** Returns the configuration under test, with all policies enforced unless the file says otherwise. */
function configUnderTest({ file, policies }: LoadedPolicyTests): RemediationConfig {
  const enforced = file.mode === "enforce";
  const safety = file.safety;
  return {
    policies: enforced ? policies.map((spec) => ({ ...spec, mode: "enforce" })) : policies,
    safety: enforced ? { ...safety, mode: "enforce" } : safety,
    time_intervals: file.time_intervals,
  };
}

function toPolicyTests({ file, policies }: LoadedPolicyTests): readonly PolicyTest[] {
  // The loader rejects an expectation without a policy if there are several.
  const [onlyPolicy] = policies;
  return file.tests.map(({ name, nodes, blocked, expect }) => ({
    name,
    startsAt: file.start,
    intervalMs: file.interval,
    blocked,
    nodes,
    expectations: expect.map((expected) => ({ policy: onlyPolicy!.name, ...expected })),
  }));
}

const formatFailure = ({ expected, lines }: FailedExpectation): string =>
  `at ${formatDuration(expected.atMs)}, ${expected.node} by ${expected.policy}: ${lines.join("\n  ")}`;

function formatResults(results: readonly FileResult[], paint: Paint): string {
  const all = results.flatMap(({ tests }) => tests);
  const failed = all.filter(({ passed }) => !passed).length;
  const broken = results.filter(({ errors }) => errors.length > 0).length;
  const counts = [`${all.length - failed} passed`, `${failed} failed`];
  if (broken > 0) counts.push(countNoun(broken, "invalid file"));
  const lines = [
    ...results.filter(({ errors }) => errors.length === 0).flatMap((result) => fileLines(result, paint)),
    paint(failed + broken === 0 ? "good" : "bad", counts.join(", ")),
  ];
  return `${lines.join("\n")}\n`;
}

const fileLines = ({ file, tests }: FileResult, paint: Paint): readonly string[] => [
  paint("title", file),
  ...tests.flatMap(({ name, passed, misses }) => [
    `  ${passed ? paint("good", "ok  ") : paint("bad", "FAIL")}  ${stripControlCharacters(name)}`,
    ...misses
      .flatMap(({ line, column, text }) => `${file}:${line}:${column}: ${text}`.split("\n"))
      .map((line) => `        ${stripControlCharacters(line)}`),
  ]),
];
