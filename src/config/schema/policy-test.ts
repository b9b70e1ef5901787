import { z } from "zod";
import { type DurationMs, parseDuration } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { PolicySpec } from "../../model/policy/policy.ts";
import type { Series, Span } from "../../model/policy/policy-test.ts";
import { parseIsoTime } from "../../model/time.ts";
import { type ConfigSource, createCheckContext, readOptionsOf } from "../checks.ts";
import {
  type ConfigProblem,
  type Finding,
  listNames,
  mergeProblems,
  type Path,
  quote,
  toProblems,
} from "../diagnostics/problem.ts";
import { policiesInOrder, readPolicyFiles } from "../policy-file.ts";
import { type Marks, positionIn } from "../yaml/position.ts";
import { readYaml } from "../yaml-reader.ts";
import { safetySchema } from "./safety.ts";
import { intervalsSchema } from "./time-intervals.ts";
import {
  duration,
  list,
  nonBlankText,
  oneOf,
  parsedText,
  RUN_ALWAYS,
  rejectValue,
  section,
  text,
  valueKinds,
  wholeNumber,
} from "./value-types.ts";

const TESTS_MAX = 1_000;
const TEST_NODES_MAX = 1_000;
const EXPECTATIONS_MAX = 1_000;
/** Maximum number of sessions of one node. Each is a record. */
const SESSIONS_MAX = 1_000;

const SERIES_SPANS_MAX = 100;

/** A span is `VALUE for DURATION`; the last one may be only `VALUE`. */
const SPAN_PATTERN = /^\s*(\S.*?)(?:\s+for\s+(\S+))?\s*$/;

/**
 * A value over time, written as one value or a list of spans. `kind` is its name in the reference; `read` returns null
 * if a value is invalid.
 */
function series<Value>(kind: string, example: string, read: (text: string) => Value | null) {
  const expected = `must be a ${kind}, such as ${example}, or a list over time, such as [${example} for 10m, …]`;
  const scalar = z.union([z.string(), z.number().min(0, expected)], { error: expected });
  const written = z
    .union([scalar, z.array(scalar).min(1, expected).max(SERIES_SPANS_MAX)], { error: expected })
    .register(valueKinds, { name: `${kind}, or a list over time` });
  return written.transform((value, context): Series<Value> => {
    const spans = [value].flat().map((span) => spanOf(String(span), read));
    if (spans.includes(null)) return rejectValue(context, value, expected);
    const whole = spans as Span<Value>[];
    const isTimed = whole.slice(0, -1).every(({ forMs }) => Number.isFinite(forMs));
    return isTimed ? whole : rejectValue(context, value, "must have a duration for each value except the last one");
  });
}

function spanOf<Value>(written: string, read: (text: string) => Value | null): Span<Value> | null {
  const [, word, time] = SPAN_PATTERN.exec(written) ?? [];
  const value = word === undefined ? null : read(word);
  const forMs = time === undefined ? Number.POSITIVE_INFINITY : durationOf(time);
  return value === null || forMs === null ? null : { value, forMs };
}

function durationOf(written: string): DurationMs | null {
  const read = parseDuration(written);
  return read.ok && read.value > 0 ? read.value : null;
}

/** Returns a reader of the known words. */
const wordOf =
  <const Word extends string>(known: readonly Word[]) =>
  (written: string): Word | null =>
    known.find((word) => word === written) ?? null;

/** Returns a reader of numbers from 0 to `max`. */
const numberUpTo = (max: number) => (written: string) => {
  const value = Number(written);
  return value >= 0 && value <= max ? value : null;
};

/** Returns a reader of whole numbers from 0 to `max`. */
const wholeUpTo = (max: number) => (written: string) => {
  const value = numberUpTo(max)(written);
  return Number.isInteger(value) ? value : null;
};

/** Ids of the healthy nodes that the fleet of a test adds. */
const BACKGROUND_NODE_ID = /^fleet_\d+$/;

const statuses = () => series("status", "online", wordOf(NODE_STATUSES));
const ratio = () => series("ratio from 0 to 1", "0.5", numberUpTo(1));
const count = (max: number) => series("whole number", "3", wholeUpTo(max));

/** A node of a test. By default it is healthy. */
export const testNodeSchema = section({
  id: nonBlankText("a node's id").describe("Id of the node."),
  name: nonBlankText("a name").exactOptional().describe("Name of the node. Defaults to its id."),
  country: nonBlankText("a country").exactOptional().describe("Country of the node. Defaults to that of the fleet."),
  region: nonBlankText("a region").exactOptional().describe("Region of the node. Defaults to that of the fleet."),
  version: nonBlankText("a version").default("1.0.0").describe("Software version of the node."),
  status: statuses()
    .prefault("online")
    .describe(`Status that the service reports: ${NODE_STATUSES.join(", ")}.`),
  last_seen: series("word (now or frozen)", "now", wordOf(["now", "frozen"]))
    .exactOptional()
    .describe("Whether last_seen advances. By default it advances while the node is online."),
  uptime_hours: count(1_000_000)
    .exactOptional()
    .describe("Hours of uptime. Defaults to 1000 at the start, and to 0 after a reboot."),
  active_sessions: count(1_000_000).prefault(0).describe("Sessions in the node list."),
  bandwidth_gb: series("number", "1.5", numberUpTo(Number.MAX_VALUE))
    .prefault(0)
    .describe("Bandwidth in the node list, in gigabytes."),
  cpu_usage: ratio().prefault(0.2).describe("CPU usage in the node detail."),
  memory_usage: ratio().prefault(0.2).describe("Memory usage in the node detail."),
  disk_usage: ratio().prefault(0.2).describe("Disk usage in the node detail."),
  sessions: section({
    active: count(SESSIONS_MAX).exactOptional().describe("Active sessions."),
    connecting: count(SESSIONS_MAX).exactOptional().describe("Connecting sessions."),
    closed: count(SESSIONS_MAX).exactOptional().describe("Closed sessions; each walk shows new ones."),
    error: count(SESSIONS_MAX).exactOptional().describe("Failed sessions; each walk shows new ones."),
    timeout: count(SESSIONS_MAX).exactOptional().describe("Sessions that timed out; each walk shows new ones."),
  })
    .prefault({})
    .describe("Sessions in the session list, by status."),
});

const fleet = section({
  nodes: wholeNumber(0, TEST_NODES_MAX).default(20).describe("Number of additional nodes, all healthy."),
  country: nonBlankText("a country").default("DE").describe("Their country."),
  region: nonBlankText("a region").default("eu-central").describe("Their region."),
})
  .prefault({})
  .describe("Additional nodes, which count toward limits given as percentages.");

/** YAML reads `true` and `false` without quotes as booleans. */
function verdict() {
  const words = ["true", "false", "unknown"] as const;
  const names = words.join(", ");
  return z
    .literal([...words, true, false], { error: `must be one of ${names}` })
    .register(valueKinds, { name: names })
    .transform((value) => String(value) as (typeof words)[number]);
}

/** What an expectation may state. */
const STATED_KEYS = ["verdict", "timer", "held", "actions"];

const expectation = (holdReasons: readonly string[]) =>
  section({
    at: duration("0s", "365d").describe("Time since the start of the test."),
    node: nonBlankText("a node's id").describe("Id of a node in this test."),
    policy: nonBlankText("the name of a policy")
      .exactOptional()
      .describe("Name of the policy. May be left out if there is only one."),
    verdict: verdict().exactOptional().describe("Verdict of the policy on the node."),
    timer: oneOf(["inactive", "pending", "firing"]).exactOptional().describe("State of the timer."),
    held: list(oneOf(holdReasons), "reasons", holdReasons.length)
      .exactOptional()
      .describe("All reasons that would hold an action at that time; `[]` if there are none."),
    actions: list(
      text("an action", { name: "action" }).regex(
        /^(?:disconnect|(?:forced )?reboot|quarantine)(?:: (?:verified|ineffective|refused|failed|in_doubt|dry_run))?$/,
        "must be disconnect, reboot, forced reboot or quarantine, or one with its outcome, as in reboot: verified",
      ),
      "actions",
      EXPECTATIONS_MAX,
    )
      .exactOptional()
      .describe(
        'All actions of the policy on the node so far, oldest first, as in `["reboot: ineffective", forced reboot]`.',
      ),
  })
    .refine((value) => STATED_KEYS.some((key) => key in value), {
      ...RUN_ALWAYS,
      error: `must have at least one of ${STATED_KEYS.join(", ")}`,
    })
    .meta({ anyOf: STATED_KEYS.map((key) => ({ required: [key] })) });

const policyTest = (holdReasons: readonly string[]) =>
  section({
    name: nonBlankText("a sentence").describe("What the test shows, as a sentence."),
    fleet,
    nodes: list(testNodeSchema, "nodes", TEST_NODES_MAX)
      .min(1, "must have at least one node")
      .describe("Nodes under test."),
    blocked: series("word (no or yes)", "no", (written) => (written === "yes" ? true : written === "no" ? false : null))
      .prefault("no")
      .describe("Whether the queries and alerts of `blocked_by` block."),
    expect: list(expectation(holdReasons), "expectations", EXPECTATIONS_MAX)
      .min(1, "must have at least one expectation")
      .describe("Expectations, each for a point in time."),
  });

const START_PATTERN = /^\d{4}-\d\d-\d\dT/;
const START_EXPECTED = "must be a time such as 2026-11-20T23:30:00Z";

/** Returns the schema of a file of policy tests, given every reason to hold a node. */
export const policyTestSchema = (holdReasons: readonly string[]) =>
  section({
    policies: list(nonBlankText("a glob of policy files", { name: "glob", check: "glob" }), "globs of policy files", 20)
      .min(1, "must have at least one glob")
      .describe("Globs of the policy files under test, relative to this file."),
    mode: oneOf(["enforce", "as_written"])
      .default("enforce")
      .describe("`enforce`: every policy and `safety.mode` are set to enforce; `as_written`: they are used unchanged."),
    start: parsedText({ name: "time" }, START_EXPECTED, START_PATTERN.source, (text) => {
      const at = START_PATTERN.test(text) ? parseIsoTime(text) : Number.NaN;
      return Number.isNaN(at) ? fail(START_EXPECTED) : ok(at);
    })
      .prefault("2026-01-05T12:00:00Z")
      .describe("Start time of each test, which matters for windows."),
    interval: duration("10s", "1h").prefault("1m").describe("Interval of walks, and of the detail reads of each node."),
    safety: safetySchema,
    time_intervals: intervalsSchema,
    tests: list(policyTest(holdReasons), "tests", TESTS_MAX).min(1, "must have at least one test").describe("Tests."),
  });

/** A file of policy tests and its policies. */
export interface LoadedPolicyTests {
  readonly file: z.output<ReturnType<typeof policyTestSchema>>;
  readonly policies: readonly PolicySpec[];
  readonly marks: Marks;
}

/** Reads a file of policy tests and its policies. Fails with every error of all files. */
export function loadPolicyTests(source: ConfigSource): Result<LoadedPolicyTests, readonly ConfigProblem[]> {
  const checkContext = createCheckContext(source);
  const main = readYaml(policyTestSchema(source.checks.holdReasons), source, readOptionsOf(checkContext));
  const windows = main.ok ? main.value.value.time_intervals.map(({ name }) => name) : null;
  // Tests define time intervals, but neither receivers nor integrations.
  const names = windows && { receivers: null, windows, prometheus: true, alertmanager: true };
  const files = readPolicyFiles([...checkContext.found].toSorted(), { ...checkContext, names });
  if (!main.ok || !files.ok) {
    return fail(mergeProblems([main, files].map((read) => (read.ok ? [] : read.error))));
  }
  const policies = policiesInOrder(files.value);
  const { value, marks } = main.value;
  const unknown = nameFindings(source.file, value, policies, marks);
  return unknown.length > 0 ? fail(unknown) : ok({ file: value, policies, marks });
}

/** Rejects unknown and ambiguous names in expectations. */
function nameFindings(
  file: string,
  { tests }: LoadedPolicyTests["file"],
  policies: readonly PolicySpec[],
  marks: Marks,
): readonly ConfigProblem[] {
  const known = policies.map(({ name }) => name);
  const findings: Finding[] = [];
  const reject = (path: Path, found: string, expected: string) =>
    findings.push({ ...positionIn(marks, path), path, found, expected });
  for (const [test, { nodes, expect }] of tests.entries()) {
    const ids = nodes.map(({ id }) => id);
    for (const [index, id] of ids.entries()) {
      if (ids.indexOf(id) === index && !BACKGROUND_NODE_ID.test(id)) continue;
      const expected = "must be unique, and not an id such as fleet_1, which the fleet uses";
      reject(["tests", test, "nodes", index, "id"], quote(id), expected);
    }
    for (const [index, { node: id, policy }] of expect.entries()) {
      const path = ["tests", test, "expect", index];
      if (!ids.includes(id)) {
        reject([...path, "node"], quote(id), `must be a node of the test: ${listNames(ids)}`);
      } else if (policy === undefined && known.length !== 1) {
        reject(path, "no policy", `must name one of the policies: ${listNames(known)}`);
      } else if (policy !== undefined && !known.includes(policy)) {
        reject([...path, "policy"], quote(policy), `must be one of the policies: ${listNames(known)}`);
      }
    }
  }
  return toProblems(file, findings);
}
