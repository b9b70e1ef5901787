import { formatDuration } from "../base/duration.ts";
import { fail, type Result } from "../base/result.ts";
import { placeIn } from "../config/yaml/position.ts";
import type { LoadedPolicyTests } from "../config/schema/policy-test.ts";
import { type ConfigProblem, formatProblem } from "../config/diagnostics/problem.ts";
import type { Rules } from "../remediation/context.ts";
import type { PolicyTest, ScriptedNode, Series } from "../model/policy/policy-test.ts";
import { type Miss, rehearse } from "./policy-tests/runner.ts";
import { rulesOf, safetyOf } from "../daemon/policy-settings.ts";
import { paintFor } from "./output/colour.ts";
import { judgePolicyTests } from "./config/config-loading.ts";
import { type CommandContext, EXIT_BAD, EXIT_FINE, type ExitCode, readTextFile } from "./context.ts";
import { printable } from "./daemon-api/client.ts";
import { withProgress } from "./output/progress.ts";

/** Options of `test`. */
export interface TestOptions {
  readonly output: "text" | "json";
}

/** What became of one test. */
interface TestResult {
  readonly name: string;
  readonly passed: boolean;
  readonly misses: readonly { readonly line: number; readonly column: number; readonly text: string }[];
}

/** What became of one file. */
interface FileResult {
  readonly file: string;
  readonly errors: readonly (ConfigProblem | string)[];
  readonly tests: readonly TestResult[];
}

/** `policy test FILE…`: runs the policy tests in the given files. */
export async function test(
  files: readonly string[],
  { output }: TestOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const results: FileResult[] = [];
  for (const file of files) results.push(await withProgress(`testing ${file}`, testFile(file, context), context));
  const passed = results.every(({ errors, tests }) => errors.length === 0 && tests.every((each) => each.passed));
  if (output === "json") context.out.write(`${JSON.stringify({ passed, files: results }, null, 2)}\n`);
  else print(results, context);
  return passed ? EXIT_FINE : EXIT_BAD;
}

async function testFile(file: string, { env }: CommandContext): Promise<FileResult> {
  const loaded = load(file, env);
  if (!loaded.ok) return { file, errors: loaded.error, tests: [] };
  const rules = rulesUnder(loaded.value);
  const tests: TestResult[] = [];
  for (const [index, policyTest] of testsOf(loaded.value).entries()) {
    const misses = await rehearse(policyTest, rules);
    const placed = misses.map((miss) => ({
      ...placeIn(loaded.value.marks, ["tests", index, "expect", miss.index]),
      text: missText(miss),
    }));
    tests.push({ name: policyTest.name, passed: misses.length === 0, misses: placed });
  }
  return { file, errors: [], tests };
}

function load(
  file: string,
  env: CommandContext["env"],
): Result<LoadedPolicyTests, readonly (ConfigProblem | string)[]> {
  const text = readTextFile(file);
  return text.ok ? judgePolicyTests(file, text.value, env) : fail([text.error]);
}

/** The policies under test, as if all of them were enforced, unless the file says otherwise. */
function rulesUnder({ file, policies }: LoadedPolicyTests): Rules {
  const enforced = file.mode === "enforce";
  const rules = rulesOf({ policies });
  const safety = safetyOf(file);
  return {
    policies: enforced ? rules.map((rule) => ({ ...rule, mode: "enforce" })) : rules,
    safety: enforced ? { ...safety, mode: "enforce" } : safety,
    intervals: file.time_intervals,
  };
}

function testsOf({ file, policies }: LoadedPolicyTests): readonly PolicyTest[] {
  const [only] = policies;
  return file.tests.map(({ name, fleet, nodes, blocked, expect }) => ({
    name,
    startsAt: file.start,
    intervalMs: file.interval,
    nodes: [
      ...nodes.map((node) => scripted(node, fleet)),
      ...Array.from({ length: fleet.nodes }, (_, index) => wellNode(`fleet_${index + 1}`, fleet)),
    ],
    blocked,
    expectations: expect.map(({ at, policy, ...rest }) => ({ ...rest, atMs: at, policy: policy ?? only!.policy.name })),
  }));
}

type Written = LoadedPolicyTests["file"]["tests"][number];

function scripted(node: Written["nodes"][number], fleet: Written["fleet"]): ScriptedNode {
  return {
    id: node.id,
    name: node.name ?? node.id,
    country: node.country ?? fleet.country,
    region: node.region ?? fleet.region,
    version: node.version,
    status: node.status,
    lastSeen: node.last_seen ?? null,
    uptimeHours: node.uptime_hours ?? null,
    activeSessions: node.active_sessions,
    bandwidthGb: node.bandwidth_gb,
    cpuUsage: node.cpu_usage,
    memoryUsage: node.memory_usage,
    diskUsage: node.disk_usage,
    sessions: node.sessions,
  };
}

const always = <Value>(value: Value): Series<Value> => [{ value, forMs: Number.POSITIVE_INFINITY }];

/** Usage of a node on which nothing is wrong. */
const USUAL_USAGE = always(0.2);

function wellNode(id: string, { country, region }: Written["fleet"]): ScriptedNode {
  return {
    ...{ id, name: id, country, region, version: "1.0.0" },
    status: always("online"),
    ...{ lastSeen: null, uptimeHours: null },
    ...{ activeSessions: always(0), bandwidthGb: always(0), sessions: {} },
    ...{ cpuUsage: USUAL_USAGE, memoryUsage: USUAL_USAGE, diskUsage: USUAL_USAGE },
  };
}

const missText = ({ expected, lines }: Miss): string =>
  `at ${formatDuration(expected.atMs)}, ${expected.node} by ${expected.policy}: ${lines.join("\n  ")}`;

function print(results: readonly FileResult[], { out, err, env }: CommandContext): void {
  const paint = paintFor(out, env);
  for (const { file, errors, tests } of results) {
    for (const error of errors) err.write(`${typeof error === "string" ? error : formatProblem(error)}\n`);
    if (errors.length === 0) out.write(`${paint("title", file)}\n`);
    for (const { name, passed, misses } of tests) {
      out.write(`  ${passed ? paint("good", "ok  ") : paint("bad", "FAIL")}  ${printable(name)}\n`);
      for (const { line, column, text } of misses) {
        const lines = `${file}:${line}:${column}: ${text}`.split("\n").map(printable);
        out.write(`        ${lines.join("\n        ")}\n`);
      }
    }
  }
  const all = results.flatMap(({ tests }) => tests);
  const failed = all.filter(({ passed }) => !passed).length;
  const broken = results.filter(({ errors }) => errors.length > 0).length;
  const counts = [`${all.length - failed} passed`, `${failed} failed`];
  if (broken > 0) counts.push(`${broken} ${broken === 1 ? "file is" : "files are"} wrong`);
  out.write(`${paint(failed + broken === 0 ? "good" : "bad", counts.join(", "))}\n`);
}
