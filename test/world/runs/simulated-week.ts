import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PLANS } from "../../../src/rate-limit/limits.ts";
import type { Rules } from "../../../src/remediation/context.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { rateLimitedCount, replyCounts } from "../../../src/simulator/inspection.ts";
import { createPlanLimits, minuteSettings, START_MS } from "../../harness/virtual-daemon.ts";
import { type Census, createCensus, type Illness } from "../invariants/failure-census.ts";
import { beginPlay, type Play, STEP_MS } from "../daemon/simulation.ts";
import type { Breach, Post } from "../daemon/simulation-parts.ts";

/** Which week it is. */
export interface WeekOptions {
  readonly name: string;
  readonly seed: number;
  readonly nodes: number;
  readonly days: number;
  readonly plan: keyof typeof PLANS;
  readonly rules: Rules;
}

/** What came of it. */
export interface Week {
  readonly options: WeekOptions;
  readonly illnesses: readonly Illness[];
  /** Timers that began to fire on nodes that were well again by then. */
  readonly late: number;
  readonly posts: readonly Post[];
  readonly breaches: readonly Breach[];
  readonly play: Play;
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
export async function liveThroughWeek(options: WeekOptions): Promise<Week> {
  const { seed, nodes, days, plan, rules } = options;
  const began = performance.now();
  const { cadences } = minuteSettings;
  const sessions = { kind: "every", intervalMs: SESSIONS_EVERY_MS } as const;
  const census: { now: Census | null } = { now: null };
  const play = beginPlay({
    ...{ seed, rules },
    scenario: {
      ...demoScenario,
      ...{ seed, nodes, sessions: nodes * SESSIONS_PER_NODE },
      service: { ...demoScenario.service, plan },
    },
    settings: { ...minuteSettings, limits: createPlanLimits(plan), cadences: { ...cadences, sessions } },
    onPost: (post) => census.now?.posted(post),
    onFirings: (firings) => {
      for (const { policy, node } of firings) census.now?.fired(policy, node);
    },
  });
  census.now = createCensus(play.stage);
  for (let at = 0; at < days * DAY_MS; at += STEP_MS) {
    await play.pass(STEP_MS);
    census.now.look();
  }
  const { service, posts, breaches } = play.stage;
  await play.end();
  return {
    ...{ options, play, posts, breaches, illnesses: census.now.illnesses, late: census.now.late() },
    limited: rateLimitedCount(service),
    calls: replyCounts(service).reduce((sum, { count }) => sum + count, 0),
    tookSeconds: (performance.now() - began) / 1_000,
  };
}

/** The weeks as a table of Markdown, one column each. */
export function tableOf(weeks: readonly Week[]): string {
  const columns = weeks.map(figuresOf);
  const names = Object.keys(columns[0] ?? {});
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    row(["", ...weeks.map(({ options }) => options.name)]),
    row(["---", ...weeks.map(() => "---:")]),
    ...names.map((name) => row([name, ...columns.map((figures) => figures[name]!)])),
  ].join("\n");
}

function figuresOf(week: Week): Record<string, string> {
  const { illnesses, posts, options, play, breaches } = week;
  const { actions, episodes, postsOfStep, reasons } = { ...play.stage.chronicle, ...play.stage };
  const sent = [...actions.values()].filter(({ shadow }) => !shadow);
  const fired = illnesses.filter((illness) => illness.fired !== null);
  const touched = fired.filter((illness) => illness.posts.length > 0);
  const endedBy = (some: readonly Illness[]) => shares(some, ({ endedBy: by }) => by ?? "lasts");
  const hours = options.days * 24;
  const law = (name: string) => breaches.filter((breach) => breach.law === name).length;
  const healed = illnesses.filter(({ endedBy: by }) => by === "us");
  return {
    "seed; nodes; days": `${options.seed}; ${options.nodes}; ${options.days}`,
    "faults (crashes left out), per hour": `${illnesses.length}, ${Math.round(illnesses.length / hours)}`,
    "all faults, ended by": endedBy(illnesses),
    "faults that a policy fired on": `${fired.length} (and ${week.late} were over by then)`,
    "of these, ended by": endedBy(fired),
    "of those that were acted on, ended by": endedBy(touched),
    episodes: `${episodes.size}: ${shares([...episodes.values()], ({ state }) => state)}`,
    "actions sent": `${posts.length}: ${shares(posts, ({ kind }) => kind)}`,
    outcomes: shares(sent, ({ outcome, state }) => outcome ?? state),
    "detection of an outage, less `for`": spread(detections(fired, options.rules, "outage")),
    "detection of usage, less `for`": spread(detections(fired, options.rules, "usage")),
    "recovery, from firing until well by us": spread(
      healed.flatMap(({ fired: at, until }) => (at ? [until! - at.at] : [])),
    ),
    "recovery, from fault until well by us": spread(healed.map(({ from, until }) => until! - from)),
    "wrong actions (on a node well before its read)": String(law("healthy node")),
    "healed between read and POST": String(posts.filter(({ truth, read }) => !truth.isIll && read?.isIll).length),
    "well, while sessions from before its cure still failed; for so long": spread(wellAgain(week)),
    "duplicate actions": String([...postsOfStep.values()].filter((same) => same.length > 1).length + law("once")),
    "other laws broken": String(breaches.length - law("healthy node") - law("once")),
    "429s; calls a minute": `${week.limited}; ${(week.calls / hours / 60).toFixed(1)}`,
    "reasons to hold, most frequent": most(reasons),
    "simulated hours a second": (hours / week.tookSeconds).toFixed(2),
  };
}

/** How long nodes were well that were touched because the sessions that had begun before went on to fail. */
function wellAgain({ posts, illnesses, options: { rules } }: Week): readonly DurationMs[] {
  const reading = new Set(rules.policies.filter(({ when }) => when.includes("sessions.")).map(({ name }) => name));
  return posts
    .filter(({ truth, read, action }) => !truth.isIll && !read?.isIll && reading.has(action?.policy ?? ""))
    .map(({ node, at }) => {
      const ends = illnesses.filter((illness) => illness.node === node).map(({ until }) => until ?? Infinity);
      return START_MS + at - Math.max(...ends.filter((end) => end <= START_MS + at));
    });
}

/** From the fault to the firing, less the `for` of the policy that fired. */
function detections(fired: readonly Illness[], { policies }: Rules, what: "outage" | "usage"): DurationMs[] {
  const forMs = new Map(policies.map((policy) => [policy.name, policy.forMs]));
  return fired
    .filter(({ ailment, offlineAt }) => (what === "outage" ? ailment === "outage" : offlineAt === null))
    .map(({ fired: at, from }) => at!.at - from - forMs.get(at!.policy)!);
}

/** Counts and shares by name, the most frequent first. */
export function shares<T>(all: readonly T[], of: (one: T) => string): string {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(of(one), (counts.get(of(one)) ?? 0) + 1);
  const sorted = [...counts].sort((one, other) => other[1] - one[1]);
  return sorted.map(([name, count]) => `${name} ${count} (${((100 * count) / all.length).toFixed(1)} %)`).join(", ");
}

function most(reasons: ReadonlyMap<string, number>): string {
  const sorted = [...reasons].sort((one, other) => other[1] - one[1]).slice(0, 4);
  return sorted.map(([reason, count]) => `${reason} ${count}`).join(", ");
}

/** Median and 95th percentile. */
export function spread(durations: readonly DurationMs[]): string {
  if (durations.length === 0) return "-";
  const sorted = durations.toSorted((one, other) => one - other);
  const at = (share: number) => minutes(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!);
  return `${at(0.5)} / ${at(0.95)} (n ${sorted.length})`;
}

const minutes = (ms: DurationMs): string =>
  ms < HOUR_MS ? `${(ms / MINUTE_MS).toFixed(1)} min` : `${(ms / HOUR_MS).toFixed(1)} h`;
