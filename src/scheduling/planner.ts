import { byName } from "../base/by-name.ts";
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
interface ExpectedAge {
  readonly medianMs: DurationMs;
  readonly worstMs: DurationMs;
}

/** Plan of one collector. */
export interface CollectorPlan {
  readonly requestedMs: DurationMs;
  /** Time between two runs or, for details, of one round of the fleet. Infinity if no calls are left. */
  readonly intervalMs: DurationMs;
  /**
   * The interval without a wait for the next month. It is always finite: if no calls are left, it is the last finite
   * one, or the requested interval.
   */
  readonly pacedMs: DurationMs;
  /**
   * Time for which data of this collector counts as fresh: {@link FRESH_INTERVALS} times the longer of the measured
   * duration of a run and the longest `pacedMs` under which data was read that may still be fresh, at most the longer of
   * {@link FRESH_MS_MAX} and {@link FRESH_INTERVALS} requested intervals. A faster plan therefore does not make data stale
   * that was read under a slower one, and the next data can be compared with it.
   */
  readonly freshMs: DurationMs;
  /** `intervalMs` divided by `requestedMs`, at least 1. */
  readonly slowdown: number;
  /** The limit that leaves fewer calls than the requested interval needs, or null if none does. */
  readonly boundBy: Bound | null;
  /** Calls per minute that the limits leave for it, at most those that the requested interval needs. */
  readonly callsPerMinute: number;
  readonly age: ExpectedAge;
}

/** Plan of each collector, or null if not collected. */
export type Plan = Readonly<Record<Collector, CollectorPlan | null>>;

/**
 * Weights by which collectors share a scarce limit. The node list finds offline nodes and everything else depends on
 * it, details show what it does not, and statistics repeat what sessions show. If policies read both or neither, the
 * node list gets three quarters of what it shares with details, so they lengthen its interval by at most a third.
 */
const WEIGHTS: Readonly<Record<Collector, number>> = { nodes: 15, details: 5, sessions: 5, stats: 2, hourly: 2 };
/** Factor on the weight of collectors whose data policies read, since late data delays remediation. */
const READ_WEIGHT = 2;

/** Data counts as stale after this many intervals, so two runs may fail or be late. */
export const FRESH_INTERVALS = 3;
/**
 * Maximum time for which data counts as fresh even if the limits slow down polling, unless less frequent reads are
 * configured. Sessions take many pages, and details one call per node. On the Starter plan a round of 5,000 nodes takes
 * about ten days.
 */
export const FRESH_MS_MAX: Readonly<Record<Collector, DurationMs>> = {
  nodes: DAY_MS,
  details: 14 * DAY_MS,
  sessions: 3 * DAY_MS,
  stats: DAY_MS,
  hourly: DAY_MS,
};

/** Maximum number of iterations until the rates and the calls paid ahead converge. */
const PAID_AHEAD_ROUNDS = 8;
/** Maximum factor by which repeated pages and lookups lengthen the interval of a list. */
const REPAIR_SLOWDOWN_MAX = 1.15;
/** A weight so small that the other demands are met first. */
const REPAIR_WEIGHT = 1e-9;
/** Maximum share of the calls left in the month that one run may spend on time after the end of the month. */
const OVERRUN_SHARE_MAX = 0.2;

/** Fits the requested intervals into the limits, by weighted max-min fairness over nested constraints. */
export function planPolling(input: PlanInput): Plan {
  const grants = shareCalls(input);
  return byName(COLLECTORS, (collector) => {
    const requestedInterval = input.requestedIntervals[collector];
    return requestedInterval && collectorPlan(collector, requestedInterval, grants, input);
  });
}

type Grants = ReadonlyMap<Collector, Grant<Bound>>;

/** A part of the calls of a collector. `repairs` gets what the others leave. */
interface CallShare {
  readonly collector: Collector;
  readonly part: "pages" | "repairs";
}

/** Divides the limits among the collectors. */
function shareCalls(input: PlanInput): Grants {
  const demands = COLLECTORS.flatMap((collector) => demandsOf(collector, input));
  const share = (paidAhead: number) => sumOfParts(shareFairly(demands, planConstraints(input, paidAhead)));
  let grants = share(0);
  // Calls paid ahead only add to the calls of the month, which change nothing for collectors that the month doesn't
  // limit.
  if (![...grants.values()].some(({ boundBy }) => boundBy === "month")) return grants;
  // Calls paid ahead depend on the rates, and the rates on them, so this iterates until they converge.
  for (let round = 0, paidAhead = 0; round < PAID_AHEAD_ROUNDS && input.runs !== undefined; round++) {
    const next = (paidAhead + callsAheadOf(input, grants)) / 2;
    if (next === paidAhead) break;
    paidAhead = next;
    grants = share(paidAhead);
  }
  return grants;
}

/**
 * Returns the demands of a collector in calls per minute. If calls are scarce, a list pays for its repeated pages and
 * lookups with a longer interval, up to {@link REPAIR_SLOWDOWN_MAX}. Otherwise the other collectors would pay for all
 * of them. A cron schedule can't be slowed down a little, because it would skip runs.
 */
function demandsOf(collector: Collector, input: PlanInput): Demand<CallShare>[] {
  const requestedInterval = input.requestedIntervals[collector];
  if (requestedInterval === null) return [];
  const { intervalMs, isCron } = requestedInterval;
  const weight = WEIGHTS[collector] * (input.reads.has(collector) ? READ_WEIGHT : 1);
  const calls = callsPerRun(collector, input);
  const urgent = isCron ? calls : Math.max(pagesOf(collector, input), calls / REPAIR_SLOWDOWN_MAX);
  const rate = (callsPerInterval: number) => (callsPerInterval * MINUTE_MS) / intervalMs;
  const demand: Demand<CallShare> = { name: { collector, part: "pages" }, weight, wanted: rate(urgent) };
  if (calls <= urgent) return [demand];
  return [demand, { name: { collector, part: "repairs" }, weight: REPAIR_WEIGHT, wanted: rate(calls - urgent) }];
}

function sumOfParts(grants: ReadonlyMap<CallShare, Grant<Bound>>): Grants {
  const sums = new Map<Collector, Grant<Bound>>();
  for (const [{ collector }, { given, boundBy }] of grants) {
    const before = sums.get(collector);
    sums.set(collector, { given: (before?.given ?? 0) + given, boundBy: before?.boundBy ?? boundBy });
  }
  return sums;
}

function callsAheadOf({ runs = {}, month }: PlanInput, grants: Grants): number {
  return COLLECTORS.reduce((sum, collector) => {
    const run = runs[collector];
    return run ? sum + callsPaidAhead(run, grants.get(collector)?.given ?? 0, month) : sum;
  }, 0);
}

function planConstraints(input: PlanInput, paidAhead: number): Constraint<CallShare, Bound>[] {
  const capacities = pollingCapacityOf(input, paidAhead);
  return PLAN_BOUNDS.flatMap((bound) => {
    const capacity = capacities[bound];
    return capacity === null ? [] : [{ bound, capacity, appliesTo: ({ collector }) => isLimitedBy(collector, bound) }];
  });
}

function collectorPlan(
  collector: Collector,
  requestedInterval: RequestedInterval,
  grants: Grants,
  input: PlanInput,
): CollectorPlan {
  const { given, boundBy } = grants.get(collector)!;
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
    freshMs: freshMsOf(
      collector,
      requestedMs,
      Math.max(pacedMs, input.longestIntervals?.[collector] ?? 0, input.measuredDurations?.[collector] ?? 0),
    ),
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
 * Returns whether to postpone a run to the next month, because this month has too few calls to finish it, or because it
 * would spend too many calls, which other collectors need, on the time after the end of the month. Details are read one
 * by one, so they are never postponed.
 */
function isPostponed(collector: Collector, intervalMs: DurationMs, input: PlanInput): boolean {
  const left = monthlyCallsLeft(input);
  if (collector === "details" || left === null || left <= 0) return false;
  const calls = callsPerRun(collector, input);
  const promisedCalls = COLLECTORS.reduce((sum, other) => {
    const run = input.runs?.[other];
    return run && other !== collector ? sum + run.calls - run.callsMade : sum;
  }, 0);
  const callsAfterMonth = calls * Math.max(0, 1 - input.month.leftMs / intervalMs);
  return calls > left - promisedCalls || callsAfterMonth > left * OVERRUN_SHARE_MAX;
}

function expectedAgeOf(collector: Collector, intervalMs: DurationMs, grants: Grants, input: PlanInput): ExpectedAge {
  switch (collector) {
    case "details": {
      // If a limit applies, reads of suspects delay the others. This bounds the wait of every node.
      const nodes = Math.max(1, input.nodes);
      const worstMs =
        grants.get(collector)!.boundBy === null ? intervalMs : (intervalMs * readsBetweenMax(nodes)) / nodes;
      return { medianMs: intervalMs / 2, worstMs };
    }
    case "sessions": {
      // Sessions are published when the walk ends. The walk gets what other collectors leave, and at least its share.
      const { session_monitoring, plan } = pollingCapacityOf(input);
      const others = COLLECTORS.filter((other) => other !== collector);
      const inCategory = others.filter((other) => CATEGORY_OF_COLLECTOR[other] === "session_monitoring");
      const given = (collectors: readonly Collector[]) =>
        collectors.reduce((sum, other) => sum + (grants.get(other)?.given ?? 0), 0);
      const left = Math.min(session_monitoring - given(inCategory), (plan ?? Number.POSITIVE_INFINITY) - given(others));
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
