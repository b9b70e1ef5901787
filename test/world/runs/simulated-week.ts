import { DAY_MS, type DurationMs, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PLANS } from "../../../src/rate-limit/limits.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { rateLimitedCount, replyCounts } from "../../../src/simulator/http/service.ts";
import { createPlanLimits, everyMinuteSettings, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { Simulation, STEP_MS } from "../daemon/simulation.ts";
import type { PostAttempt, Violation } from "../daemon/simulation-parts.ts";
import { createFailureLog, type FailureLog, type NodeFailure } from "../invariants/outages/failure-log.ts";
import { figuresTable, quantiles, shares } from "./figures.ts";

/** Options of {@link simulateWeek}. */
export interface WeekOptions {
  readonly name: string;
  readonly seed: number;
  readonly nodes: number;
  readonly days: number;
  readonly plan: keyof typeof PLANS;
  readonly config: RemediationConfig;
}

/** The outcome of a simulated week. */
export interface WeekReport {
  readonly options: WeekOptions;
  readonly failures: readonly NodeFailure[];
  /** Number of timers that started firing after the node had recovered. */
  readonly lateFirings: number;
  readonly posts: readonly PostAttempt[];
  readonly violations: readonly Violation[];
  readonly simulation: Simulation;
  /** Number of calls answered with 429. */
  readonly limited: number;
  readonly calls: number;
  /** Real seconds that the run took. */
  readonly tookSeconds: number;
}

const SESSIONS_PER_NODE = 10;
/** Walks of many sessions are long, so they are requested less often than those of the nodes. */
const SESSIONS_EVERY_MS: DurationMs = 10 * MINUTE_MS;

/** Runs the daemon for `days` days on a fleet with the failure rates of the demo. */
export async function simulateWeek(options: WeekOptions): Promise<WeekReport> {
  const { seed, nodes, days, plan, config } = options;
  const began = performance.now();
  const { schedules } = everyMinuteSettings;
  const sessions = { kind: "every", intervalMs: SESSIONS_EVERY_MS } as const;
  let failureCensus: FailureLog | null = null;
  const simulation = new Simulation({
    seed,
    config,
    scenario: {
      ...demoScenario,
      seed,
      nodes,
      sessions: nodes * SESSIONS_PER_NODE,
      service: { ...demoScenario.service, plan },
    },
    settings: { ...everyMinuteSettings, limits: createPlanLimits(plan), schedules: { ...schedules, sessions } },
    onPost: (post) => failureCensus?.recordPost(post),
    onFirings: (firings) => {
      for (const { policy, node } of firings) failureCensus?.recordFiring(policy, node);
    },
  });
  failureCensus = createFailureLog(simulation.parts);
  for (let at = 0; at < days * DAY_MS; at += STEP_MS) {
    await simulation.advance(STEP_MS);
    failureCensus.observe();
  }
  const { service, posts, violations } = simulation.parts;
  await simulation.stop();
  return {
    options,
    simulation,
    posts,
    violations,
    failures: failureCensus.failures,
    lateFirings: failureCensus.lateFirings(),
    limited: rateLimitedCount(service),
    calls: replyCounts(service).reduce((sum, { count }) => sum + count, 0),
    tookSeconds: (performance.now() - began) / 1_000,
  };
}

/** Formats the report as a Markdown table. */
export function weekTable(week: WeekReport): string {
  const { failures, posts, options, simulation, violations } = week;
  const { postsOfStep, recordedState } = simulation.parts;
  const { actions, episodes, reasons } = recordedState;
  const sent = [...actions.values()].filter(({ dryRun }) => !dryRun);
  const fired = failures.filter((failure) => failure.firstFiring !== null);
  const actedOn = fired.filter((failure) => failure.posts.length > 0);
  const endsOf = (some: readonly NodeFailure[]) => shares(some, ({ endedBy }) => endedBy ?? "ongoing");
  const hours = options.days * 24;
  const violationsOf = (name: string) => violations.filter(({ invariant }) => invariant === name).length;
  const repaired = failures.filter(({ endedBy }) => endedBy === "daemon");
  return figuresTable(options.name, {
    "seed; nodes; days": `${options.seed}; ${options.nodes}; ${options.days}`,
    "failures, per hour": `${failures.length}, ${Math.round(failures.length / hours)}`,
    "failures, ended by": endsOf(failures),
    "failures that a policy fired on": `${fired.length} (and ${week.lateFirings} after their end)`,
    "with a firing policy, ended by": endsOf(fired),
    "acted on, ended by": endsOf(actedOn),
    episodes: `${episodes.size}: ${shares([...episodes.values()], ({ state }) => state)}`,
    "actions sent": `${posts.length}: ${shares(posts, ({ kind }) => kind)}`,
    outcomes: shares(sent, ({ outcome, state }) => outcome ?? state),
    "detection of an outage, less `for`": quantiles(detections(fired, options.config, "outage")),
    "detection of usage, less `for`": quantiles(detections(fired, options.config, "usage")),
    "from firing to repair": quantiles(
      repaired.flatMap(({ firstFiring, until }) => (firstFiring === null ? [] : [until! - firstFiring.at])),
    ),
    "from failure to repair": quantiles(repaired.map(({ from, until }) => until! - from)),
    "wrong actions (node healthy at its read)": String(violationsOf("healthy node")),
    "recovered between read and POST": String(
      posts.filter(({ truth, read }) => !truth.isFailing && read?.isFailing).length,
    ),
    "healthy while earlier sessions still failed; time since recovery": quantiles(timesSinceRecovery(week)),
    "duplicate actions": String(
      [...postsOfStep.values()].filter((same) => same.length > 1).length + violationsOf("sent twice"),
    ),
    "other violations": String(violations.length - violationsOf("healthy node") - violationsOf("sent twice")),
    "429s; calls a minute": `${week.limited}; ${(week.calls / hours / 60).toFixed(1)}`,
    "most frequent hold reasons": mostFrequent(reasons),
    "simulated hours a second": (hours / week.tookSeconds).toFixed(2),
  });
}

/** Returns how long nodes had been healthy that were acted on because sessions from before still failed. */
function timesSinceRecovery({ posts, failures, options: { config } }: WeekReport): readonly DurationMs[] {
  const sessionPolicies = new Set(
    config.policies.filter(({ when }) => when.includes("sessions.")).map(({ name }) => name),
  );
  return posts
    .filter(
      ({ truth, read, action }) => !truth.isFailing && !read?.isFailing && sessionPolicies.has(action?.policy ?? ""),
    )
    .map(({ node, at }) => {
      const ends = failures.filter((failure) => failure.node === node).map(({ until }) => until ?? Infinity);
      return START_MS + at - Math.max(...ends.filter((end) => end <= START_MS + at));
    });
}

/** Returns the times from failure to firing, less the `for` of the policy that fired. */
function detections(
  fired: readonly NodeFailure[],
  { policies }: RemediationConfig,
  kind: "outage" | "usage",
): DurationMs[] {
  const forMs = new Map(policies.map((policy) => [policy.name, policy.forMs]));
  return fired
    .filter(({ failureMode, offlineAt }) => (kind === "outage" ? failureMode === "outage" : offlineAt === null))
    .map(({ firstFiring, from }) => firstFiring!.at - from - forMs.get(firstFiring!.policy)!);
}

function mostFrequent(reasons: ReadonlyMap<string, number>): string {
  const sorted = [...reasons].sort((one, other) => other[1] - one[1]).slice(0, 4);
  return sorted.map(([reason, count]) => `${reason} ${count}`).join(", ");
}
