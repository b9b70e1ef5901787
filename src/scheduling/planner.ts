import { DAY_MS, type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { callsPaidAhead } from "../rate-limit/monthly-budget.ts";
import { readsBetweenMax } from "./detail-priority.ts";
import { type Constraint, type Demand, type Grant, shareFairly } from "./max-min-fairness.ts";
import {
  type Bound,
  CATEGORY_OF_COLLECTOR,
  callsPerRun,
  isLimitedBy,
  monthlyCallsLeft,
  PLAN_BOUNDS,
  type PlanInput,
  pagesOf,
  pollingCapacityOf,
  type RequestedInterval,
} from "./polling-capacity.ts";

/** Expected age of the data. */
export interface ExpectedAge {
  readonly medianMs: DurationMs;
  readonly worstMs: DurationMs;
}

/** Plan of one collector. */
export interface CollectorPlan {
  readonly requestedMs: DurationMs;
  /** Time between two runs; for details, one round of the fleet. Infinity if no calls are left. */
  readonly intervalMs: DurationMs;
  /**
   * The interval without a wait for the next month. Always finite: if no calls are left, the last finite one, or the
   * requested interval.
   */
  readonly pacedMs: DurationMs;
  /**
   * How long data of this collector counts as fresh: {@link FRESH_INTERVALS} times the longer of `pacedMs` and the measured
   * duration of a run, at most {@link FRESH_MS_MAX} or {@link FRESH_INTERVALS} requested intervals.
   */
  readonly freshMs: DurationMs;
  /** `intervalMs` divided by `requestedMs`, at least 1. */
  readonly slowdown: number;
  readonly boundBy: Bound | null;
  readonly callsPerMinute: number;
  readonly age: ExpectedAge;
}

/** Plan of each collector; null: not collected. */
export type Plan = Readonly<Record<Collector, CollectorPlan | null>>;

/**
 * Weights by which collectors share a scarce limit. Lists find offline nodes and everything else depends on them, details
 * show what lists do not, and statistics repeat what sessions show. With three quarters for lists against details, an outage
 * is found in at most 1.5 times the time that lists alone would take.
 */
const WEIGHTS: Readonly<Record<Collector, number>> = { nodes: 15, details: 5, sessions: 5, stats: 2, hourly: 2 };
/** Factor on the weight of collectors whose data policies read: late data delays remediation. */
const READ_WEIGHT = 2;

/** Data counts as stale after this many intervals: two runs may fail or be late. */
const FRESH_INTERVALS = 3;
/**
 * Maximum time that data counts as fresh, however slow the limits make polling, unless less frequent reads are configured. Sessions take many pages, and details one call per node: on the Starter plan a round of 5,000 nodes takes about ten
 * days.
 */
export const FRESH_MS_MAX: Readonly<Record<Collector, DurationMs>> = {
  nodes: DAY_MS,
  details: 14 * DAY_MS,
  sessions: 3 * DAY_MS,
  stats: DAY_MS,
  hourly: DAY_MS,
};

/** Iterations until the rates and the calls paid ahead converge. */
const PAID_AHEAD_ROUNDS = 8;
/** Maximum factor by which repeated pages and lookups lengthen the interval of a list. */
const REPAIR_SLOWDOWN_MAX = 1.15;
/** Maximum share of the calls left in the month that one run may spend on time after the end of the month. */
const OVERRUN_SHARE_MAX = 0.2;

/** Fits the requested intervals into the limits, by weighted max-min fairness over nested constraints. */
export function planPolling(input: PlanInput): Plan {
  const all = shareCalls(input, (collector) => callsPerRun(collector, input));
  const limitedBy = (collector: Collector) => bindingLimit(collector, all);
  const grants = shareCalls(input, (collector) => {
    const calls = callsPerRun(collector, input);
    if (limitedBy(collector) === null) return calls;
    // A list pays for its repeated pages and lookups with a longer interval, up to a bound. Otherwise the other
    // collectors would pay for all of them.
    return Math.max(pagesOf(collector, input), calls / REPAIR_SLOWDOWN_MAX);
  });
  const planOf = (collector: Collector): CollectorPlan | null => {
    const [requestedInterval, grant] = [input.requestedIntervals[collector], grants.get(collector)];
    if (requestedInterval === null || grant === undefined) return null;
    const hasRepairs = callsPerRun(collector, input) > pagesOf(collector, input);
    const boundBy = grant.boundBy ?? (hasRepairs ? limitedBy(collector) : null);
    return collectorPlan(collector, requestedInterval, { ...grant, boundBy }, grants, input);
  };
  return Object.fromEntries(COLLECTORS.map((collector) => [collector, planOf(collector)])) as Plan;
}

type Grants = ReadonlyMap<Collector, Grant<Bound>>;

/** Shares the limits out among the collectors. `callsOf`: calls that a collector wants per requested interval. */
function shareCalls(input: PlanInput, callsOf: (collector: Collector) => number): Grants {
  const demands = COLLECTORS.flatMap((collector): Demand<Collector>[] => {
    const requestedInterval = input.requestedIntervals[collector];
    if (requestedInterval === null) return [];
    const weight = WEIGHTS[collector] * (input.reads?.has(collector) === true ? READ_WEIGHT : 1);
    const wanted = (callsOf(collector) * MINUTE_MS) / requestedInterval.intervalMs;
    return [{ name: collector, weight, wanted }];
  });
  let grants = shareFairly(demands, planConstraints(input, 0));
  // Calls paid ahead depend on the rates, and the rates on them: iterate until they converge.
  for (let round = 0, paidAhead = 0; round < PAID_AHEAD_ROUNDS && input.runs !== undefined; round++) {
    paidAhead = (paidAhead + callsAheadOf(input, grants)) / 2;
    grants = shareFairly(demands, planConstraints(input, paidAhead));
  }
  return grants;
}

/** The limit that gives this collector, or another one under the same limit, less than it wants; null: none. */
function bindingLimit(collector: Collector, grants: Grants): Bound | null {
  const bounds = [...grants.values()].map(({ boundBy }) => boundBy);
  return bounds.find((bound) => bound !== null && isLimitedBy(collector, bound)) ?? null;
}

function callsAheadOf({ runs = {}, month }: PlanInput, grants: Grants): number {
  return COLLECTORS.reduce((sum, collector) => {
    const run = runs[collector];
    return run === undefined ? sum : sum + callsPaidAhead(run, grants.get(collector)?.given ?? 0, month);
  }, 0);
}

function planConstraints(input: PlanInput, paidAhead: number): Constraint<Collector, Bound>[] {
  const capacities = pollingCapacityOf(input, paidAhead);
  return PLAN_BOUNDS.flatMap((bound) => {
    const capacity = capacities[bound];
    return capacity === null ? [] : [{ bound, capacity, holds: (collector) => isLimitedBy(collector, bound) }];
  });
}

function collectorPlan(
  collector: Collector,
  requestedInterval: RequestedInterval,
  { given, boundBy }: Grant<Bound>,
  grants: Grants,
  input: PlanInput,
): CollectorPlan {
  const calls = callsPerRun(collector, input);
  const { intervalMs: requestedMs } = requestedInterval;
  const affordableMs = boundBy === null ? requestedMs : Math.max(requestedMs, (calls * MINUTE_MS) / given);
  const untilNextMonth = (input.runs?.[collector]?.sinceMs ?? 0) + input.month.leftMs;
  const intervalMs = isPostponed(collector, affordableMs, input)
    ? Math.max(affordableMs, untilNextMonth)
    : affordableMs;
  const pacedMs = Number.isFinite(affordableMs) ? affordableMs : (input.pacedIntervals?.[collector] ?? requestedMs);
  return {
    requestedMs,
    intervalMs,
    pacedMs,
    freshMs: freshMsOf(collector, requestedMs, Math.max(pacedMs, input.measuredDurations?.[collector] ?? 0)),
    slowdown: intervalMs / requestedMs,
    boundBy: intervalMs > affordableMs ? "month" : boundBy,
    callsPerMinute: given,
    age: expectedAgeOf(collector, intervalMs, grants, input),
  };
}

function freshMsOf(collector: Collector, requestedMs: DurationMs, actualMs: DurationMs): DurationMs {
  // A cron schedule may have no next time.
  const configuredMs = Number.isFinite(requestedMs) ? FRESH_INTERVALS * requestedMs : 0;
  return Math.min(FRESH_INTERVALS * actualMs, Math.max(FRESH_MS_MAX[collector], configuredMs));
}

/**
 * Whether to postpone a run to the next month: this month has too few calls to finish it, or it would spend calls of other
 * collectors on time after the end of the month. Details are read one by one, so they are never postponed.
 */
function isPostponed(collector: Collector, intervalMs: DurationMs, input: PlanInput): boolean {
  const left = monthlyCallsLeft(input);
  if (collector === "details" || left === null || left <= 0) return false;
  const calls = callsPerRun(collector, input);
  const promisedCalls = COLLECTORS.reduce((sum, other) => {
    const run = other === collector ? undefined : input.runs?.[other];
    return run === undefined ? sum : sum + run.calls - run.callsMade;
  }, 0);
  const callsAfterMonth = calls * Math.max(0, 1 - input.month.leftMs / intervalMs);
  return calls > left - promisedCalls || callsAfterMonth > left * OVERRUN_SHARE_MAX;
}

function expectedAgeOf(collector: Collector, intervalMs: DurationMs, grants: Grants, input: PlanInput): ExpectedAge {
  switch (collector) {
    case "details": {
      // If a limit binds, reads of suspects delay the others. This bounds the wait of every node.
      const nodes = Math.max(1, input.nodes);
      const worstMs =
        grants.get(collector)!.boundBy === null ? intervalMs : (intervalMs * readsBetweenMax(nodes, 0)) / nodes;
      return { medianMs: intervalMs / 2, worstMs };
    }
    case "sessions": {
      // Sessions are published when the walk ends. The walk gets what other collectors leave, and at least its share.
      const { session_monitoring, plan } = pollingCapacityOf(input);
      const others = COLLECTORS.filter((other) => other !== collector);
      const inCategory = others.filter((other) => CATEGORY_OF_COLLECTOR[other] === "session_monitoring");
      const given = (of: readonly Collector[]) => of.reduce((sum, other) => sum + (grants.get(other)?.given ?? 0), 0);
      const left = Math.min(
        session_monitoring! - given(inCategory),
        (plan ?? Number.POSITIVE_INFINITY) - given(others),
      );
      const rate = Math.max(left, grants.get(collector)!.given);
      const walkMs = Math.min(intervalMs, (callsPerRun(collector, input) * MINUTE_MS) / rate);
      return { medianMs: (intervalMs + walkMs) / 2, worstMs: intervalMs + walkMs };
    }
    case "nodes":
    case "stats":
    case "hourly":
      return { medianMs: intervalMs / 2, worstMs: intervalMs };
    default:
      return collector satisfies never;
  }
}
