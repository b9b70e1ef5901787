import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PLANS } from "../../../src/rate-limit/limits.ts";
import type { RemediationRules } from "../../../src/remediation/context.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { rateLimitedCount, replyCounts } from "../../../src/simulator/inspection.ts";
import { createPlanLimits, everyMinuteSettings, START_MS } from "../../harness/virtual-daemon.ts";
import { type Simulation, STEP_MS, startSimulation } from "../daemon/simulation.ts";
import type { PostAttempt, Violation } from "../daemon/simulation-parts.ts";
import { createFailureCensus, type FailureCensus, type NodeFailure } from "../invariants/failure-census.ts";

/** Which week it is. */
export interface WeekOptions {
  readonly name: string;
  readonly seed: number;
  readonly nodes: number;
  readonly days: number;
  readonly plan: keyof typeof PLANS;
  readonly rules: RemediationRules;
}

/** What came of it. */
export interface WeekReport {
  readonly options: WeekOptions;
  readonly failures: readonly NodeFailure[];
  /** Timers that began to fire on nodes that were well again by then. */
  readonly missed: number;
  readonly posts: readonly PostAttempt[];
  readonly violations: readonly Violation[];
  readonly play: Simulation;
  /** Calls answered with 429. */
  readonly limited: number;
  readonly calls: number;
  /** Real seconds that it took. */
  readonly tookSeconds: number;
}

const SESSIONS_PER_NODE = 10;
/** Long walks of many sessions are asked for less often than those of the nodes. */
const SESSIONS_EVERY_MS: DurationMs = 10 * MINUTE_MS;

/** Lives some days with a fleet that fails as that of the demo. */
export async function simulateWeek(options: WeekOptions): Promise<WeekReport> {
  const { seed, nodes, days, plan, rules } = options;
  const began = performance.now();
  const { schedules: cadences } = everyMinuteSettings;
  const sessions = { kind: "every", intervalMs: SESSIONS_EVERY_MS } as const;
  const failureCensus: { now: FailureCensus | null } = { now: null };
  const simulation = startSimulation({
    ...{ seed, rules },
    scenario: {
      ...demoScenario,
      ...{ seed, nodes, sessions: nodes * SESSIONS_PER_NODE },
      service: { ...demoScenario.service, plan },
    },
    settings: { ...everyMinuteSettings, limits: createPlanLimits(plan), schedules: { ...cadences, sessions } },
    onPost: (post) => failureCensus.now?.recordPost(post),
    onFirings: (firings) => {
      for (const { policy, node } of firings) failureCensus.now?.recordFiring(policy, node);
    },
  });
  failureCensus.now = createFailureCensus(simulation.parts);
  for (let at = 0; at < days * DAY_MS; at += STEP_MS) {
    await simulation.advance(STEP_MS);
    failureCensus.now.observe();
  }
  const { service, posts, violations } = simulation.parts;
  await simulation.stop();
  return {
    ...{
      options,
      play: simulation,
      posts,
      violations,
      failures: failureCensus.now.failures,
      missed: failureCensus.now.missed(),
    },
    limited: rateLimitedCount(service),
    calls: replyCounts(service).reduce((sum, { count }) => sum + count, 0),
    tookSeconds: (performance.now() - began) / 1_000,
  };
}

/** The weeks as a table of Markdown, one column each. */
export function tableOf(weeks: readonly WeekReport[]): string {
  const columns = weeks.map(figuresOf);
  const names = Object.keys(columns[0] ?? {});
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    row(["", ...weeks.map(({ options }) => options.name)]),
    row(["---", ...weeks.map(() => "---:")]),
    ...names.map((name) => row([name, ...columns.map((figures) => figures[name]!)])),
  ].join("\n");
}

function figuresOf(week: WeekReport): Record<string, string> {
  const { failures, posts, options, play: simulation, violations } = week;
  const { actions, episodes, postsOfStep, reasons } = { ...simulation.parts.recordedState, ...simulation.parts };
  const sent = [...actions.values()].filter(({ shadow: dryRun }) => !dryRun);
  const fired = failures.filter((failure) => failure.firings !== null);
  const touched = fired.filter((failure) => failure.posts.length > 0);
  const endedBy = (some: readonly NodeFailure[]) => shares(some, ({ endedBy: by }) => by ?? "lasts");
  const hours = options.days * 24;
  const invariant = (name: string) => violations.filter((breach) => breach.invariant === name).length;
  const healed = failures.filter(({ endedBy: by }) => by === "us");
  return {
    "seed; nodes; days": `${options.seed}; ${options.nodes}; ${options.days}`,
    "faults (crashes left out), per hour": `${failures.length}, ${Math.round(failures.length / hours)}`,
    "all faults, ended by": endedBy(failures),
    "faults that a policy fired on": `${fired.length} (and ${week.missed} were over by then)`,
    "of these, ended by": endedBy(fired),
    "of those that were acted on, ended by": endedBy(touched),
    episodes: `${episodes.size}: ${shares([...episodes.values()], ({ state }) => state)}`,
    "actions sent": `${posts.length}: ${shares(posts, ({ kind }) => kind)}`,
    outcomes: shares(sent, ({ outcome, state }) => outcome ?? state),
    "detection of an outage, less `for`": quantiles(detections(fired, options.rules, "outage")),
    "detection of usage, less `for`": quantiles(detections(fired, options.rules, "usage")),
    "recovery, from firing until well by us": quantiles(
      healed.flatMap(({ firings: at, until }) => (at ? [until! - at.at] : [])),
    ),
    "recovery, from fault until well by us": quantiles(healed.map(({ from, until }) => until! - from)),
    "wrong actions (on a node well before its read)": String(invariant("healthy node")),
    "healed between read and POST": String(
      posts.filter(({ truth, read }) => !truth.isFailing && read?.isFailing).length,
    ),
    "well, while sessions from before its cure still failed; for so long": quantiles(recoveries(week)),
    "duplicate actions": String([...postsOfStep.values()].filter((same) => same.length > 1).length + invariant("once")),
    "other laws broken": String(violations.length - invariant("healthy node") - invariant("once")),
    "429s; calls a minute": `${week.limited}; ${(week.calls / hours / 60).toFixed(1)}`,
    "reasons to hold, most frequent": mostFrequent(reasons),
    "simulated hours a second": (hours / week.tookSeconds).toFixed(2),
  };
}

/** How long nodes were well that were touched because the sessions that had begun before went on to fail. */
function recoveries({ posts, failures, options: { rules } }: WeekReport): readonly DurationMs[] {
  const reading = new Set(rules.policies.filter(({ when }) => when.includes("sessions.")).map(({ name }) => name));
  return posts
    .filter(({ truth, read, action }) => !truth.isFailing && !read?.isFailing && reading.has(action?.policy ?? ""))
    .map(({ node, at }) => {
      const ends = failures.filter((failure) => failure.node === node).map(({ until }) => until ?? Infinity);
      return START_MS + at - Math.max(...ends.filter((end) => end <= START_MS + at));
    });
}

/** From the fault to the firing, less the `for` of the policy that fired. */
function detections(
  fired: readonly NodeFailure[],
  { policies }: RemediationRules,
  what: "outage" | "usage",
): DurationMs[] {
  const forMs = new Map(policies.map((policy) => [policy.name, policy.forMs]));
  return fired
    .filter(({ failureMode: ailment, offlineAt }) => (what === "outage" ? ailment === "outage" : offlineAt === null))
    .map(({ firings: at, from }) => at!.at - from - forMs.get(at!.policy)!);
}

/** Counts and shares by name, the most frequent first. */
export function shares<T>(all: readonly T[], of: (one: T) => string): string {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(of(one), (counts.get(of(one)) ?? 0) + 1);
  const sorted = [...counts].sort((one, other) => other[1] - one[1]);
  return sorted.map(([name, count]) => `${name} ${count} (${((100 * count) / all.length).toFixed(1)} %)`).join(", ");
}

function mostFrequent(reasons: ReadonlyMap<string, number>): string {
  const sorted = [...reasons].sort((one, other) => other[1] - one[1]).slice(0, 4);
  return sorted.map(([reason, count]) => `${reason} ${count}`).join(", ");
}

/** Median and 95th percentile. */
export function quantiles(durations: readonly DurationMs[]): string {
  if (durations.length === 0) return "-";
  const sorted = durations.toSorted((one, other) => one - other);
  const at = (share: number) => minutes(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!);
  return `${at(0.5)} / ${at(0.95)} (n ${sorted.length})`;
}

const minutes = (ms: DurationMs): string =>
  ms < HOUR_MS ? `${(ms / MINUTE_MS).toFixed(1)} min` : `${(ms / HOUR_MS).toFixed(1)} h`;
