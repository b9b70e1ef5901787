import { z } from "zod";
import { type DurationMs, parseDuration } from "../../base/duration.ts";
import { fail, ok } from "../../base/result.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import type { Series, Span } from "../../model/policy/series.ts";
import { type EpochMs, parseIsoTime } from "../../model/time.ts";
import { safetySchema } from "./safety.ts";
import { intervalsSchema } from "./time-intervals.ts";
import {
  atLeastOneOf,
  camelKeys,
  duration,
  list,
  oneOf,
  parsedText,
  policyGlobs,
  rejectValue,
  section,
  text,
  valueKinds,
  wholeNumber,
} from "./value-types.ts";

const TESTS_MAX = 1_000;
const TEST_NODES_MAX = 1_000;
const EXPECTATIONS_MAX = 1_000;
/** Maximum number of sessions of one node in one status. Each is a record. */
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
    const given = [value].flat();
    const spans = given.map((span) => spanOf(String(span), read));
    const reject = (index: number, message: string) =>
      rejectValue(context, value, message, Array.isArray(value) ? [index] : []);
    if (spans.includes(null)) return reject(spans.indexOf(null), expected);
    const whole = spans as Span<Value>[];
    const untimed = whole.slice(0, -1).findIndex(({ forMs }) => !Number.isFinite(forMs));
    if (untimed < 0) return whole;
    const advice = `as in "${given[untimed]} for 10m"; only the last value of a list needs none`;
    return reject(untimed, `must have a duration, ${advice}`);
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

/** Matches the ids of the healthy nodes that the fleet of a test adds. */
export const BACKGROUND_NODE_ID = /^fleet_\d+$/;

const ratio = () => series("ratio from 0 to 1", "0.5", numberUpTo(1));
const count = (max: number) => series("whole number", "3", wholeUpTo(max));

/** A node of a test. By default it is healthy. */
const testNode = section({
  id: text("a node's id").describe("Id of the node."),
  name: text("a name").exactOptional().describe("Name of the node. Defaults to its id."),
  country: text("a country").exactOptional().describe("Country of the node. Defaults to that of the fleet."),
  region: text("a region").exactOptional().describe("Region of the node. Defaults to that of the fleet."),
  version: text("a version").default("1.0.0").describe("Software version of the node."),
  status: series("status", "online", wordOf(NODE_STATUSES))
    .prefault("online")
    .describe(`Status that the service reports: ${NODE_STATUSES.join(", ")}.`),
  last_seen: series("word (now or frozen)", "now", wordOf(["now", "frozen"]))
    .exactOptional()
    .describe("Whether last_seen advances. By default it advances while the node is online."),
  uptime_hours: count(1_000_000)
    .exactOptional()
    .describe(
      "Hours of uptime. By default 1000 at the start and 0 when the status `rebooting` ends, increasing with time.",
    ),
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
    closed: count(SESSIONS_MAX).exactOptional().describe("Closed sessions; each walk returns new ones."),
    error: count(SESSIONS_MAX).exactOptional().describe("Failed sessions; each walk returns new ones."),
    timeout: count(SESSIONS_MAX).exactOptional().describe("Sessions that timed out; each walk returns new ones."),
  })
    .prefault({})
    .describe("Sessions in the session list, by status."),
}).transform((node) => ({ name: node.id, lastSeen: null, uptimeHours: null, ...camelKeys(node) }));

const fleet = section({
  nodes: wholeNumber(0, TEST_NODES_MAX).default(20).describe("Number of additional nodes, all healthy."),
  country: text("a country").default("DE").describe("Their country."),
  region: text("a region").default("eu-central").describe("Their region."),
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
const STATED_KEYS = ["verdict", "timer", "held", "actions"] as const;

const expectation = (holdReasons: readonly string[]) =>
  atLeastOneOf(STATED_KEYS, `must have at least one of ${STATED_KEYS.join(", ")}`, {
    at: duration("0s", "365d").describe("Time since the start of the test."),
    node: text("a node's id").describe("Id of a node in this test."),
    policy: text("the name of a policy")
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
  }).transform((expected) => camelKeys(expected, "at"));

const policyTest = (holdReasons: readonly string[]) =>
  section({
    name: text("a sentence").describe("What the test shows, as a sentence."),
    fleet,
    nodes: list(testNode, "nodes", TEST_NODES_MAX).min(1, "must have at least one node").describe("Nodes under test."),
    blocked: series("word (no or yes)", "no", (written) => (written === "yes" ? true : written === "no" ? false : null))
      .prefault("no")
      .describe("Whether the queries and alerts in `blocked_by` block."),
    expect: list(expectation(holdReasons), "expectations", EXPECTATIONS_MAX)
      .min(1, "must have at least one expectation")
      .describe("Expectations, each for a point in time."),
  }).transform(({ fleet: { nodes: count, ...location }, ...test }) => ({
    ...test,
    /** Number of nodes under test, which come before the additional ones. */
    testedCount: test.nodes.length,
    nodes: [...test.nodes, ...backgroundNodes(count)].map((node) => ({ ...location, ...node })),
  }));

/** Returns the healthy nodes that a fleet of this size adds. */
function backgroundNodes(count: number) {
  const healthy = testNode.parse({ id: "fleet" });
  return Array.from({ length: count }, (_, index) => {
    const id = `fleet_${index + 1}`;
    return { ...healthy, id, name: id };
  });
}

const START_PATTERN = /^\d{4}-\d\d-\d\dT/;
const START_EXPECTED = "must be a time such as 2026-11-20T23:30:00Z";

/** Returns the schema of a file of policy tests, given every reason to hold a node. */
export const policyTestSchema = (holdReasons: readonly string[]) =>
  section({
    policies: policyGlobs()
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

/** A file of policy tests. */
export type PolicyTestFile = z.output<ReturnType<typeof policyTestSchema>>;
type WrittenTest = PolicyTestFile["tests"][number];

/** A policy test: a fleet over time, and the expected states. */
export interface PolicyTest extends Readonly<Pick<WrittenTest, "name" | "blocked">> {
  readonly startsAt: EpochMs;
  /** Interval between two walks. */
  readonly intervalMs: DurationMs;
  readonly nodes: readonly ScriptedNode[];
  readonly expectations: readonly Expectation[];
}

/**
 * What the service reports about a node over time, without reacting to actions. If `lastSeen` is null, it is current
 * while the node is online. If `uptimeHours` is null, it increases, and restarts at 0 when the status `rebooting` ends.
 */
export type ScriptedNode = Readonly<WrittenTest["nodes"][number]>;

/** The expected state of a node at a time; absent fields are not compared. */
export interface Expectation extends Readonly<Omit<WrittenTest["expect"][number], "policy" | "held" | "actions">> {
  readonly policy: string;
  readonly held?: readonly string[];
  readonly actions?: readonly string[];
}
