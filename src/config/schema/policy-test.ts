import { z } from "zod";
import { fail, ok, type Result } from "../../base/result.ts";
import { NODE_STATUSES } from "../../model/node.ts";
import { HOLD_REASONS } from "../../model/remediation/decision.ts";
import { type ConfigSource, createCheckContext, type DefinedNames, readOptionsOf } from "../checks.ts";
import {
  type ConfigProblem,
  type Finding,
  listNames,
  mergeProblems,
  type Path,
  quote,
  toProblems,
} from "../diagnostics/problem.ts";
import { type LoadedPolicy, policiesInOrder, readPolicyFiles } from "../policy-file.ts";
import { readYaml } from "../schema-reader.ts";
import { type Marks, positionIn } from "../yaml/position.ts";
import { safetySchema } from "./safety.ts";
import { intervalsSchema } from "./time-intervals.ts";
import { numberUpTo, series, wholeUpTo, wordOf } from "./time-series.ts";
import {
  duration,
  list,
  nonBlankText,
  oneOf,
  rejectValue,
  section,
  text,
  valueKinds,
  wholeNumber,
} from "./value-types.ts";

const TESTS_MAX = 1_000;
const NODES_MAX = 1_000;
const EXPECTATIONS_MAX = 1_000;
/** Largest number of sessions of one node; each is a record. */
const SESSIONS_MAX = 1_000;

/** Ids of the healthy nodes that a test's fleet adds. */
const BACKGROUND_NODE_ID = /^fleet_\d+$/;

const requiredText = (what: string) => nonBlankText(what, { name: "string" });
const statuses = () => series("status", "online", wordOf(NODE_STATUSES));
const ratio = () => series("ratio from 0 to 1", "0.5", numberUpTo(1));
const count = (max: number) => series("whole number", "3", wholeUpTo(max));

/** A node of a test; every key but its id has a default, that of a healthy node. */
export const testNodeSchema = section({
  id: requiredText("a node's id").describe("Its id."),
  name: requiredText("a name").exactOptional().describe("Its name. Unset: its id."),
  country: requiredText("a country").exactOptional().describe("Its country. Unset: the fleet's."),
  region: requiredText("a region").exactOptional().describe("Its region. Unset: the fleet's."),
  version: requiredText("a version").default("1.0.0").describe("Its version."),
  status: statuses()
    .prefault("online")
    .describe(`Its status, as the service shows it: ${NODE_STATUSES.join(", ")}.`),
  last_seen: series("word, now or frozen", "now", wordOf(["now", "frozen"]))
    .exactOptional()
    .describe("Whether the service hears of it. Unset: while it is online."),
  uptime_hours: count(1_000_000)
    .exactOptional()
    .describe("Unset: it has been up for 1000 hours, and begins anew when a reboot is over."),
  active_sessions: count(1_000_000).prefault(0).describe("As the node list says."),
  bandwidth_gb: series("number", "1.5", numberUpTo(Number.MAX_VALUE)).prefault(0).describe("As the list says."),
  cpu_usage: ratio().prefault(0.2).describe("As its detail says."),
  memory_usage: ratio().prefault(0.2).describe("As its detail says."),
  disk_usage: ratio().prefault(0.2).describe("As its detail says."),
  sessions: section({
    active: count(SESSIONS_MAX).exactOptional().describe("Active ones."),
    connecting: count(SESSIONS_MAX).exactOptional().describe("Connecting ones."),
    closed: count(SESSIONS_MAX).exactOptional().describe("Closed ones, others at each walk."),
    error: count(SESSIONS_MAX).exactOptional().describe("Ended by an error, others at each walk."),
    timeout: count(SESSIONS_MAX).exactOptional().describe("Ended by a time-out, others at each walk."),
  })
    .prefault({})
    .describe("Its sessions in the session list, by status."),
});

const fleet = section({
  nodes: wholeNumber(0, NODES_MAX).default(20).describe("Nodes beside those of the test; all of them are well."),
  country: requiredText("a country").default("DE").describe("Where they are."),
  region: requiredText("a region").default("eu-central").describe("Where they are."),
})
  .prefault({})
  .describe("The fleet around the nodes of the test: limits by share are about it too.");

const expectation = section({
  at: duration("0s", "365d").describe("When, since the beginning of the test."),
  node: requiredText("a node's id").describe("Id of a node of the test."),
  policy: requiredText("the name of a policy").exactOptional().describe("May be left out where there is only one."),
  verdict: oneOf(["true", "false", "unknown"])
    .exactOptional()
    .describe('What it says of the node; in quotes: `"true"`.'),
  timer: oneOf(["inactive", "pending", "firing"]).exactOptional().describe("How its timer stands."),
  held: list(oneOf(HOLD_REASONS), "reasons", HOLD_REASONS.length)
    .exactOptional()
    .describe("Every reason that would hold an action now; `[]`: none."),
  actions: list(
    text("an action", { name: "action" }).regex(
      /^(?:disconnect|(?:forced )?reboot|quarantine)(?:: (?:verified|ineffective|refused|failed|in_doubt|dry_run))?$/,
      "must be disconnect, reboot, forced reboot or quarantine, with its outcome if that matters, as in reboot: verified",
    ),
    "actions",
    EXPECTATIONS_MAX,
  )
    .exactOptional()
    .describe(
      "Every action of the policy on the node so far, oldest first, as in `[reboot: ineffective, forced reboot]`.",
    ),
});

const policyTest = section({
  name: requiredText("a sentence").describe("What holds, as a sentence."),
  fleet,
  nodes: list(testNodeSchema, "nodes", NODES_MAX)
    .min(1, "must have at least one node")
    .describe("What the test is about."),
  blocked: series("word, no or yes", "no", (written) => (written === "yes" ? true : written === "no" ? false : null))
    .prefault("no")
    .describe("Whether what `blocked_by` asks about is there."),
  expect: list(expectation, "expectations", EXPECTATIONS_MAX)
    .min(1, "must expect something")
    .describe("What is expected when."),
});

const START_EXPECTED = "must be a time such as 2026-11-20T23:30:00Z";

/** A file of policy tests. */
export const policyTestSchema = section({
  policies: list(
    requiredText("a glob of policy files").register(valueKinds, { name: "glob", check: "glob" }),
    "globs of policy files",
    20,
  )
    .min(1, "must have at least one glob")
    .describe("The policies under test: globs, relative to this file."),
  mode: oneOf(["enforce", "as_written"])
    .default("enforce")
    .describe("`enforce`: as if every policy, and `safety.mode`, said so; `as_written`: as they say."),
  start: z
    .string({ error: START_EXPECTED })
    .register(valueKinds, { name: "time" })
    .transform((value, context): number => {
      const at = /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : Number.NaN;
      return Number.isNaN(at) ? rejectValue(context, value, START_EXPECTED) : at;
    })
    .prefault("2026-01-05T12:00:00Z")
    .describe("When each test begins: windows depend on it."),
  interval: duration("10s", "1h").prefault("1m").describe("Between two walks of the lists, and two reads of a detail."),
  safety: safetySchema,
  time_intervals: intervalsSchema,
  tests: list(policyTest, "tests", TESTS_MAX).min(1, "must have at least one test").describe("The tests."),
});

/** A file of policy tests as it was read, and the policies that it names. */
export interface LoadedPolicyTests {
  readonly file: z.output<typeof policyTestSchema>;
  readonly policies: readonly LoadedPolicy[];
  readonly marks: Marks;
}

/** Reads a file of policy tests, and the policies that it names. Fails with every error of all of them. */
export function loadPolicyTests(source: ConfigSource): Result<LoadedPolicyTests, readonly ConfigProblem[]> {
  const checkContext = createCheckContext(source);
  const main = readYaml(policyTestSchema, source, readOptionsOf(checkContext));
  const paths = [...checkContext.found].toSorted();
  const first = readPolicyFiles(paths, checkContext);
  if (!main.ok || !first.ok) {
    return fail(mergeProblems([main, first].map((read) => (read.ok ? [] : read.error))));
  }
  const policies = policiesInOrder(first.value);
  // Tests define time intervals, but no receivers.
  const names = { receivers: receiversOf(policies), windows: main.value.value.time_intervals.map(({ name }) => name) };
  const second = readPolicyFiles(paths, { ...checkContext, names: { ...names, ...ANY_INTEGRATION } });
  if (!second.ok) return second;
  const { value, marks } = main.value;
  const unknown = nameFindings(source.file, value, policies, marks);
  return unknown.length > 0 ? fail(unknown) : ok({ file: value, policies, marks });
}

const ANY_INTEGRATION = { prometheus: true, alertmanager: true } satisfies Partial<DefinedNames>;

const receiversOf = (policies: readonly LoadedPolicy[]): readonly string[] =>
  policies.flatMap(({ policy }) => policy.steps.flatMap((step) => (step.action === "notify" ? [step.receiver] : [])));

/** Rejects unknown and ambiguous names in expectations. */
function nameFindings(
  file: string,
  { tests }: LoadedPolicyTests["file"],
  policies: readonly LoadedPolicy[],
  marks: Marks,
): readonly ConfigProblem[] {
  const known = policies.map(({ policy }) => policy.name);
  const problem = (path: Path, found: string, expected: string): Finding => {
    return { ...positionIn(marks, path), path, found, expected };
  };
  const findings = tests.flatMap(({ nodes, expect }, test) => {
    const ids = nodes.map(({ id }) => id);
    const doubles = ids.flatMap((id, index) =>
      ids.indexOf(id) === index && !BACKGROUND_NODE_ID.test(id)
        ? []
        : [
            problem(
              ["tests", test, "nodes", index, "id"],
              quote(id),
              "must be an id of its own, and not fleet_1 and so on",
            ),
          ],
    );
    const unknownNodes = expect.flatMap(({ node: id, policy }, index) => {
      const path = ["tests", test, "expect", index];
      if (!ids.includes(id)) {
        return [problem([...path, "node"], quote(id), `must be a node of the test: ${listNames(ids)}`)];
      }
      if (policy === undefined) {
        return known.length === 1
          ? []
          : [problem(path, "no policy", `must name one of the policies: ${listNames(known)}`)];
      }
      if (known.includes(policy)) return [];
      return [problem([...path, "policy"], quote(policy), `must be one of the policies: ${listNames(known)}`)];
    });
    return [...doubles, ...unknownNodes];
  });
  return toProblems(file, findings);
}
