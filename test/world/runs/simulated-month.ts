import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { FleetRates } from "../../../src/model/scenario.ts";
import { demoScenario } from "../../../src/simulator/default-scenarios.ts";
import { enforcedShippedPolicies } from "../../harness/shipped-policies.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";
import { createRestartCount, type RestartCount } from "../daemon/restart-count.ts";
import { type Simulation, STEP_MS, startSimulation } from "../daemon/simulation.ts";
import { createFailureCensus, type FailureCensus, type NodeFailure } from "../invariants/failure-census.ts";
import { alertsOf, createHoldRecord, type Hold } from "../invariants/hold-record.ts";
import { quantiles, shares } from "./simulated-week.ts";

/** A month, or as many days of it, of a fleet under the shipped policies. */
export interface MonthOptions {
  readonly name: string;
  readonly seed: number;
  readonly nodes: number;
  readonly days: number;
  readonly rates: FleetRates;
}

/** What came of it. */
export interface MonthReport {
  readonly options: MonthOptions;
  /** Faults that a reboot heals. */
  readonly curable: readonly NodeFailure[];
  readonly holds: readonly Hold[];
  readonly play: Simulation;
  /** Actions on nodes that had no fault and did not restart again and again. */
  readonly wrongActions: readonly string[];
  /** Hours in which the circuit breaker was open. */
  readonly breakerHours: number;
  /** Real seconds that it took. */
  readonly tookSeconds: number;
}

/** Fewer than on a real node: no policy fires for the share of sessions that fails here, and each walk of them takes time. */
const SESSIONS_PER_NODE = 2;
const SESSIONS_EVERY_MS: DurationMs = 10 * MINUTE_MS;
const CHECK_INTERVAL_MS: DurationMs = 5 * MINUTE_MS;

const isCurable = ({ remedy: cure }: NodeFailure): boolean => cure === "reboot" || cure === "forced_reboot";

/** Runs the daemon over the fleet for so many days. */
export async function runMonth(options: MonthOptions): Promise<MonthReport> {
  const { seed, nodes, days, rates } = options;
  const began = performance.now();
  const { rules, settings } = enforcedShippedPolicies();
  const watch: { census: FailureCensus | null } = { census: null };
  const sessions = { kind: "every", intervalMs: SESSIONS_EVERY_MS } as const;
  const simulation = startSimulation({
    ...{ seed, rules },
    settings: { ...settings, schedules: { ...settings.schedules, sessions, stats: null, hourly: null } },
    scenario: { ...demoScenario, ...{ seed, nodes, rates }, sessions: nodes * SESSIONS_PER_NODE },
    onPost: (post) => watch.census?.recordPost(post),
    onFirings: (firings) => {
      for (const { policy, node } of firings) watch.census?.recordFiring(policy, node);
    },
  });
  const failureCensus = createFailureCensus(simulation.parts);
  watch.census = failureCensus;
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
      (each) => each.until === null && each.firings !== null && isCurable(each),
    );
    const explained = failing.map(({ node }) => view.explain(node));
    record.observe(at, explained, alertsOf(await daemonProcess.metrics.render("text")));
  }
  await simulation.stop();
  return {
    ...{ options, play: simulation, breakerHours, holds: record.holds },
    // The fleet begins with faults that nothing could see begin.
    curable: failureCensus.failures.filter((each) => isCurable(each) && each.from >= START_MS),
    wrongActions: wrongActions(simulation, restarts),
    tookSeconds: (performance.now() - began) / 1_000,
  };
}

/** Laws whose breach is an action that should not have been. The others are about limits, and tested elsewhere. */
const ACTION_INVARIANTS: ReadonlySet<string> = new Set(["healthy node", "once", "journalled", "fresh read"]);
/** Restarts within `for` of the shipped policy without which a node was not below an hour of uptime for so long. */
const RESTARTS_MIN = 3;

/** A node that restarts again and again has no fault in the simulator, and needs no other witness than its boots. */
function wrongActions({ parts: { violations, posts, rules } }: Simulation, restarts: RestartCount): readonly string[] {
  const flapping = rules.policies.find(({ name }) => name === "quarantine-flapping")!;
  return violations
    .filter(({ invariant }) => ACTION_INVARIANTS.has(invariant))
    .filter(({ invariant, at }) => {
      const post = posts.find((each) => each.at === at);
      const isFlapping = invariant === "healthy node" && post?.action?.policy === flapping.name;
      return !isFlapping || restarts.countOf(post.node, at - flapping.forMs - HOUR_MS, at) < RESTARTS_MIN;
    })
    .map(({ invariant, detail }) => `${invariant}: ${detail}`);
}

/** Faults that a reboot heals and for which a policy fired, that were not healed by us. */
export const notHealed = ({ curable }: MonthReport): readonly NodeFailure[] =>
  curable.filter(({ firings: fired, endedBy }) => fired !== null && endedBy !== "us");

/** Of these, those that were neither acted on nor given up nor held for a reason: nothing says why they were not healed. */
export function unexplained(month: MonthReport): readonly NodeFailure[] {
  const episodes = [...month.play.parts.recordedState.episodes.values()];
  return notHealed(month).filter(({ node, firings: fired, until, posts }) => {
    const isOver = (until ?? Number.POSITIVE_INFINITY) - fired!.at < 2 * CHECK_INTERVAL_MS;
    const isGivenUp = episodes.some((each) => each.node === node && each.state === "given_up");
    return posts.length === 0 && !isOver && !isGivenUp && !month.holds.some((hold) => hold.node === node);
  });
}

/** Holds of more than 6 h during which no alert fired for any of their reasons. */
export const holdsWithoutAlert = ({ holds }: MonthReport): readonly Hold[] =>
  holds.filter(({ hasNoAlert: isUnnoticed }) => isUnnoticed);

/** The months as a table of Markdown, one column each. */
export function monthTable(months: readonly MonthReport[]): string {
  const columns = months.map(figuresOf);
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    row(["", ...months.map(({ options }) => options.name)]),
    row(["---", ...months.map(() => "---:")]),
    ...Object.keys(columns[0] ?? {}).map((name) => row([name, ...columns.map((figures) => figures[name]!)])),
  ].join("\n");
}

function figuresOf(month: MonthReport): Record<string, string> {
  const { curable, holds, play: simulation, options, breakerHours, tookSeconds } = month;
  const { episodes, actions } = simulation.parts.recordedState;
  const fired = curable.filter((each) => each.firings !== null);
  const healed = curable.filter(({ endedBy }) => endedBy === "us");
  const hours = new Map<string, number>();
  for (const { reasons } of holds) {
    for (const [reason, looks] of reasons) {
      hours.set(reason, (hours.get(reason) ?? 0) + (looks * CHECK_INTERVAL_MS) / HOUR_MS);
    }
  }
  const longest = holds.toSorted((one, other) => other.until - other.from - (one.until - one.from))[0];
  return {
    "seed; nodes; days": `${options.seed}; ${options.nodes}; ${options.days}`,
    "curable faults, ended by": endsOf(curable),
    "of these, a policy fired": endsOf(fired),
    "not fired, by fault": shares(
      curable.filter((each) => each.firings === null),
      ({ failureMode: ailment }) => ailment,
    ),
    "from fault to healed by us": quantiles(healed.map(({ from, until }) => until! - from)),
    "from offline to healed by us": quantiles(
      healed.flatMap(({ offlineAt, until }) => (offlineAt === null ? [] : [until! - offlineAt])),
    ),
    "from firing to healed by us": quantiles(healed.flatMap(({ firings: at, until }) => (at ? [until! - at.at] : []))),
    "held hours of curable nodes, by reason": [...hours]
      .toSorted((one, other) => other[1] - one[1])
      .map(([reason, sum]) => `${reason} ${sum.toFixed(1)}`)
      .join(", "),
    "longest hold, hours": longest === undefined ? "-" : longestOf(longest),
    "hours with the breaker open": breakerHours.toFixed(1),
    episodes: shares([...episodes.values()], ({ policy, state }) => `${policy} ${state}`),
    actions: shares([...actions.values()], ({ request, outcome, state }) => `${request.kind} ${outcome ?? state}`),
    "wrong actions": String(month.wrongActions.length),
    "seconds it took": tookSeconds.toFixed(0),
  };
}

const endsOf = (some: readonly NodeFailure[]): string =>
  `${some.length}: ${shares(some, ({ endedBy, posts }) => endedBy ?? (posts.length > 0 ? "being treated" : "lasts"))}`;

const longestOf = ({ from, until, policy, reasons }: Hold): string =>
  `${((until - from) / HOUR_MS).toFixed(1)} (${policy}: ${[...reasons.keys()].join(", ")})`;
