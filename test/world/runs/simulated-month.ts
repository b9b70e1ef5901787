import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import type { FleetRates } from "../../../src/config/schema/scenario.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { enforcedShippedPolicies } from "../../harness/shipped-policies.ts";
import { createRestartCount, type RestartCount } from "../daemon/restart-count.ts";
import { Simulation, STEP_MS } from "../daemon/simulation.ts";
import { alertsOf, createHoldRecord, type Hold } from "../invariants/hold-record.ts";
import { createFailureLog, type FailureLog, type NodeFailure } from "../invariants/outages/failure-log.ts";
import { figuresTable, quantiles, shares } from "./figures.ts";

/** Options of {@link runMonth}. */
export interface MonthOptions {
  readonly name: string;
  readonly seed: number;
  readonly nodes: number;
  readonly days: number;
  readonly rates: FleetRates;
}

/** The outcome of a simulated month. */
export interface MonthReport {
  readonly options: MonthOptions;
  /** Failures that a reboot ends. */
  readonly curable: readonly NodeFailure[];
  readonly holds: readonly Hold[];
  readonly simulation: Simulation;
  /** Actions on nodes that had no failure and were not flapping. */
  readonly wrongActions: readonly string[];
  /** Hours in which the circuit breaker was open. */
  readonly breakerHours: number;
  /** Real seconds that the run took. */
  readonly tookSeconds: number;
}

/** Fewer than on a real node, to save time: no shipped policy fires on the simulated share of failed sessions. */
const SESSIONS_PER_NODE = 2;
const SESSIONS_EVERY_MS: DurationMs = 10 * MINUTE_MS;
const CHECK_INTERVAL_MS: DurationMs = 5 * MINUTE_MS;

const isCurable = ({ remedy }: NodeFailure): boolean => remedy === "reboot" || remedy === "forced_reboot";

/** Runs the daemon with the shipped policies for `days` days. */
export async function runMonth(options: MonthOptions): Promise<MonthReport> {
  const { seed, nodes, days, rates } = options;
  const began = performance.now();
  const { config, settings } = enforcedShippedPolicies();
  let failureCensus: FailureLog | null = null;
  const sessions = { kind: "every", intervalMs: SESSIONS_EVERY_MS } as const;
  const simulation = new Simulation({
    seed,
    config,
    settings: { ...settings, schedules: { ...settings.schedules, sessions, stats: null, hourly: null } },
    scenario: { ...demoScenario, seed, nodes, rates, sessions: nodes * SESSIONS_PER_NODE },
    onPost: (post) => failureCensus?.recordPost(post),
    onFirings: (firings) => {
      for (const { policy, node } of firings) failureCensus?.recordFiring(policy, node);
    },
  });
  failureCensus = createFailureLog(simulation.parts);
  const restarts = createRestartCount(simulation.parts);
  const record = createHoldRecord(CHECK_INTERVAL_MS);
  let breakerHours = 0;
  for (let at = 0; at < days * DAY_MS; at += STEP_MS) {
    await simulation.advance(STEP_MS);
    failureCensus.observe();
    restarts.observe();
    const daemonProcess = simulation.process();
    if (at % CHECK_INTERVAL_MS > 0 || daemonProcess === null) continue;
    const { view } = daemonProcess.remediation;
    if (view.status().breaker !== null) breakerHours += CHECK_INTERVAL_MS / HOUR_MS;
    const failing = failureCensus.failures.filter(
      (each) => each.until === null && each.firstFiring !== null && isCurable(each),
    );
    const explained = failing.map(({ node }) => runAtOnce(view.explain(node)));
    record.observe(at, explained, alertsOf(await daemonProcess.metrics.render("text")));
  }
  await simulation.stop();
  return {
    options,
    simulation,
    breakerHours,
    holds: record.holds,
    // Failures that started before the daemon have no observable start.
    curable: failureCensus.failures.filter((failure) => isCurable(failure) && failure.from >= START_MS),
    wrongActions: wrongActions(simulation, restarts),
    tookSeconds: (performance.now() - began) / 1_000,
  };
}

/** Invariants whose violation is a wrong action. The others concern limits and are tested elsewhere. */
const ACTION_INVARIANTS: ReadonlySet<string> = new Set([
  "healthy node",
  "sent twice",
  "not journaled",
  "no fresh read",
]);
/** Restarts that keep a node's uptime below an hour for the `for` of the shipped policy about flapping. */
const RESTARTS_MIN = 3;

/** The simulator does not count flapping as a failure: an action on a flapping node is right if the node restarted. */
function wrongActions({ parts: { violations, posts, config } }: Simulation, restarts: RestartCount): readonly string[] {
  const flapping = config.policies.find(({ name }) => name === "quarantine-flapping")!;
  return violations
    .filter(({ invariant }) => ACTION_INVARIANTS.has(invariant))
    .filter(({ invariant, at }) => {
      const post = posts.find((each) => each.at === at);
      const isFlapping = invariant === "healthy node" && post?.action?.policy === flapping.name;
      return !isFlapping || restarts.countOf(post.node, at - flapping.forMs - HOUR_MS, at) < RESTARTS_MIN;
    })
    .map(({ invariant, detail }) => `${invariant}: ${detail}`);
}

/** Returns failures that a policy fired on and that were neither repaired, acted on, given up nor held. */
export function unexplained({ curable, holds, simulation }: MonthReport): readonly NodeFailure[] {
  const episodes = [...simulation.parts.recordedState.episodes.values()];
  return curable.filter(({ node, firstFiring, endedBy, until, posts }) => {
    if (firstFiring === null || endedBy === "daemon" || posts.length > 0) return false;
    const endedSoon = (until ?? Number.POSITIVE_INFINITY) - firstFiring.at < 2 * CHECK_INTERVAL_MS;
    const isGivenUp = episodes.some((episode) => episode.node === node && episode.state === "given_up");
    return !endedSoon && !isGivenUp && !holds.some((hold) => hold.node === node);
  });
}

/** Returns holds of more than 6 h during which no alert fired for any of their reasons. */
export const holdsWithoutAlert = ({ holds }: MonthReport): readonly Hold[] =>
  holds.filter(({ hasNoAlert }) => hasNoAlert);

/** Formats the report as a Markdown table. */
export function monthTable(month: MonthReport): string {
  const { curable, holds, simulation, options, breakerHours, tookSeconds } = month;
  const { episodes, actions } = simulation.parts.recordedState;
  const fired = curable.filter((each) => each.firstFiring !== null);
  const repaired = curable.filter(({ endedBy }) => endedBy === "daemon");
  const hours = new Map<string, number>();
  for (const { reasons } of holds) {
    for (const [reason, checks] of reasons) {
      hours.set(reason, (hours.get(reason) ?? 0) + (checks * CHECK_INTERVAL_MS) / HOUR_MS);
    }
  }
  const longest = holds.toSorted((one, other) => other.until - other.from - (one.until - one.from))[0];
  return figuresTable(options.name, {
    "seed; nodes; days": `${options.seed}; ${options.nodes}; ${options.days}`,
    "curable failures, ended by": endsOf(curable),
    "with a firing policy, ended by": endsOf(fired),
    "without a firing policy, by failure mode": shares(
      curable.filter((each) => each.firstFiring === null),
      ({ failureMode }) => failureMode,
    ),
    "from failure to repair": quantiles(repaired.map(({ from, until }) => until! - from)),
    "from offline to repair": quantiles(
      repaired.flatMap(({ offlineAt, until }) => (offlineAt === null ? [] : [until! - offlineAt])),
    ),
    "from firing to repair": quantiles(
      repaired.flatMap(({ firstFiring, until }) => (firstFiring === null ? [] : [until! - firstFiring.at])),
    ),
    "held hours of curable nodes, by reason": [...hours]
      .toSorted((one, other) => other[1] - one[1])
      .map(([reason, sum]) => `${reason} ${sum.toFixed(1)}`)
      .join(", "),
    "longest hold, hours": longest === undefined ? "-" : longestOf(longest),
    "hours with the breaker open": breakerHours.toFixed(1),
    episodes: shares([...episodes.values()], ({ policy, state }) => `${policy} ${state}`),
    actions: shares([...actions.values()], ({ request, outcome, state }) => `${request.kind} ${outcome ?? state}`),
    "wrong actions": String(month.wrongActions.length),
    "run time, seconds": tookSeconds.toFixed(0),
  });
}

const endsOf = (some: readonly NodeFailure[]): string =>
  `${some.length}: ${shares(some, ({ endedBy, posts }) => endedBy ?? (posts.length > 0 ? "acted on, ongoing" : "ongoing"))}`;

const longestOf = ({ from, until, policy, reasons }: Hold): string =>
  `${((until - from) / HOUR_MS).toFixed(1)} (${policy}: ${[...reasons.keys()].join(", ")})`;
