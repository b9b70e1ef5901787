import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { LIMIT_SCOPES, type LimitScope } from "../rate-limit/external-usage/external-usage.ts";
import {
  CATEGORIES,
  type Category,
  type Limits,
  pollingCallsPerMinute,
  pollingCallsPerWindow,
} from "../rate-limit/limits.ts";
import { callsPaidAhead, type LastRun, type MonthUsage, pollingCallsLeft } from "../rate-limit/monthly-budget.ts";
import { ACTION_SHARE } from "../rate-limit/pacing.ts";
import type { RecentCalls } from "../rate-limit/recent-calls.ts";
import { readsBetweenMax } from "./detail-priority.ts";
import { type Constraint, type Demand, type Grant, shareFairly } from "./max-min-fairness.ts";

/** The schedule that the configuration requests of a collector. */
export interface RequestedInterval {
  /** Between two runs; for details, the maximum age of a node's detail. */
  readonly intervalMs: DurationMs;
  /** Whether it runs at the times of a cron schedule: a longer planned interval skips some of them. */
  readonly isCron: boolean;
}

/** Input of the planner. An unknown count is taken as the minimum, one call. */
export interface PlanInput {
  /** Null: not collected. */
  readonly requestedIntervals: Readonly<Record<Collector, RequestedInterval | null>>;
  readonly nodes: number;
  readonly nodePages: number;
  readonly sessionPages: number;
  readonly limits: Limits;
  readonly month: MonthUsage;
  /** Last started run by collector; absent: none known. */
  readonly runs?: Readonly<Partial<Record<Collector, LastRun>>>;
  /** Mean calls of a walk, repeated pages and lookups included; absent: one call per page. */
  readonly walkCalls?: Readonly<Partial<Record<"nodes" | "sessions", number>>>;
  /** Duration of the last complete run by collector; absent: not measured. */
  readonly measuredDurations?: Readonly<Partial<Record<Collector, DurationMs>>>;
  /** Last {@link CollectorPlan.pacedMs} by collector; absent: none. */
  readonly pacedIntervals?: Readonly<Partial<Record<Collector, DurationMs>>>;
  /** Recent calls of actions; absent: none. */
  readonly actions?: Readonly<Record<Category, RecentCalls>>;
  /** Calls that other users of the key are expected to make in a window, of the plan in a minute; absent: none. */
  readonly externalCalls?: Readonly<Record<LimitScope, number>>;
  /** Limits learned from 429s, in calls per window; null: the stated limit applies. Absent: none known. */
  readonly learnedLimits?: Readonly<Record<Category, number | null>>;
  /** Collectors whose data the loaded policies read; absent: none. */
  readonly reads?: ReadonlySet<Collector>;
}

/** The limits that can slow a collector down. */
export type Bound = LimitScope | "month";
export const PLAN_BOUNDS: readonly Bound[] = [...LIMIT_SCOPES, "month"];

/** Expected age of the data. */
export interface ExpectedAge {
  readonly medianMs: DurationMs;
  readonly worstMs: DurationMs;
}

/** Plan of one collector. */
export interface CollectorPlan {
  readonly requestedMs: DurationMs;
  /** Between two runs; for details, one round of the fleet. Infinity if no calls are left. */
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
 * Weights by which collectors share a scarce limit. Lists find offline nodes and feed everything else, details show what
 * lists do not, statistics repeat what sessions show. With lists at three quarters against details, an outage is found in at
 * most 1.5 times the time that lists alone would take. A collector that needs less than its share leaves the rest to others.
 */
const WEIGHTS: Readonly<Record<Collector, number>> = { nodes: 15, details: 5, sessions: 5, stats: 2, hourly: 2 };
/** Factor on the weight of collectors that policies read: late data delays remediation. */
const READ_WEIGHT = 2;

/** Data counts as stale after this many intervals: two runs may fail or be late. */
const FRESH_INTERVALS = 3;
/**
 * Maximum time that data counts as fresh, however slow the limits make polling, unless the configuration requests rarer
 * reads. Sessions take many pages, and details one call per node: on the Starter plan a round of 5,000 nodes takes about ten
 * days.
 */
export const FRESH_MS_MAX: Readonly<Record<Collector, DurationMs>> = {
  nodes: DAY_MS,
  details: 14 * DAY_MS,
  sessions: 3 * DAY_MS,
  stats: DAY_MS,
  hourly: DAY_MS,
};

/** Iterations after which the rates and the calls paid ahead have converged. */
const PAID_AHEAD_ROUNDS = 8;
/** Share of the calls left in the month that one run may spend on time after its end. */
const OVERRUN_SHARE_MAX = 0.2;

/** Rate limit category of each collector. */
export const CATEGORY_OF_COLLECTOR: Readonly<Record<Collector, Category>> = {
  nodes: "node_management",
  details: "node_management",
  sessions: "session_monitoring",
  stats: "session_monitoring",
  hourly: "session_monitoring",
};

/** Fits the requested intervals into the limits, by weighted max-min fairness over nested constraints. */
export function planPolling(input: PlanInput): Plan {
  const all = shareCalls(input, (collector) => callsPerRun(collector, input));
  // Where a limit binds, a list pays for its repeated pages and lookups with a longer interval. Otherwise the other
  // collectors would pay for them.
  const limitedBy = (collector: Collector) => bindingLimit(collector, all);
  const grants = shareCalls(input, (collector) =>
    (limitedBy(collector) === null ? callsPerRun : pagesOf)(collector, input),
  );
  const planOf = (collector: Collector): CollectorPlan | null => {
    const [requestedInterval, grant] = [input.requestedIntervals[collector], grants.get(collector)];
    if (requestedInterval === null || grant === undefined) return null;
    const paysForRepairs = callsPerRun(collector, input) > pagesOf(collector, input);
    const boundBy = grant.boundBy ?? (paysForRepairs ? limitedBy(collector) : null);
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
  for (let round = 0, paidAheadCalls = 0; round < PAID_AHEAD_ROUNDS && input.runs !== undefined; round++) {
    paidAheadCalls = (paidAheadCalls + callsAheadOf(input, grants)) / 2;
    grants = shareFairly(demands, planConstraints(input, paidAheadCalls));
  }
  return grants;
}

/** The limit that gives this collector, or another one that shares it, less than it wants; null: none does. */
function bindingLimit(collector: Collector, grants: Grants): Bound | null {
  const bounds = [...grants.values()].map(({ boundBy }) => boundBy);
  return bounds.find((bound) => bound !== null && isLimitedBy(collector, bound)) ?? null;
}

const isLimitedBy = (collector: Collector, bound: Bound): boolean =>
  bound === "plan" || bound === "month" || CATEGORY_OF_COLLECTOR[collector] === bound;

function callsAheadOf({ runs = {}, month }: PlanInput, grants: Grants): number {
  return COLLECTORS.reduce((sum, collector) => {
    const run = runs[collector];
    return run === undefined ? sum : sum + callsPaidAhead(run, grants.get(collector)?.given ?? 0, month);
  }, 0);
}

/**
 * Calls a minute that polling may make under each limit, what actions and others take off it aside; null: no such cap.
 * `ahead`: calls of the month that runs made for the time to come.
 */
export function pollingCapacityOf(input: PlanInput, ahead = 0): Readonly<Record<Bound, number | null>> {
  const { limits, month, externalCalls } = input;
  const { perMinute, aDay } = actionRates(input);
  const left = pollingCallsLeft(limits, month, aDay);
  const beside = (calls: number, actions: number) => Math.max(calls * (1 - ACTION_SHARE), calls - actions);
  const ofCategory = (category: Category) => {
    const calls =
      (pollingCallsPerWindow(limits, category, externalCalls?.[category], input.learnedLimits?.[category]) *
        MINUTE_MS) /
      limits.categories[category].windowMs;
    return beside(calls, perMinute[category]);
  };
  const planCalls = pollingCallsPerMinute(limits, externalCalls?.plan);
  const actions = CATEGORIES.reduce((sum, category) => sum + perMinute[category], 0);
  return {
    node_management: ofCategory("node_management"),
    session_monitoring: ofCategory("session_monitoring"),
    plan: planCalls === null ? null : beside(planCalls, actions),
    month: left === null ? null : (left + (left > 0 ? ahead : 0)) / Math.max(1, month.leftMs / MINUTE_MS),
  };
}

function planConstraints(input: PlanInput, ahead: number): Constraint<Collector, Bound>[] {
  const room = pollingCapacityOf(input, ahead);
  return (Object.keys(room) as Bound[]).flatMap((bound) => {
    const capacity = room[bound];
    const holds = (collector: Collector) => isLimitedBy(collector, bound);
    return capacity === null ? [] : [{ bound, capacity, holds }];
  });
}

/** Rate of action calls: that of the last hour or the last day, whichever is higher. */
function actionRates({ actions }: PlanInput): { perMinute: Readonly<Record<Category, number>>; aDay: number } {
  const rate = (category: Category) => {
    const { hour, day } = actions?.[category] ?? { hour: 0, day: 0 };
    return Math.max((hour * MINUTE_MS) / HOUR_MS, (day * MINUTE_MS) / DAY_MS);
  };
  return {
    perMinute: { node_management: rate("node_management"), session_monitoring: rate("session_monitoring") },
    aDay: CATEGORIES.reduce((sum, category) => sum + (actions?.[category].day ?? 0), 0),
  };
}

/** Mean calls of one run, never less than its pages; for details, of one round. */
export function callsPerRun(
  collector: Collector,
  input: Pick<PlanInput, "nodes" | "nodePages" | "sessionPages" | "walkCalls">,
): number {
  const walkCalls = collector === "nodes" || collector === "sessions" ? (input.walkCalls?.[collector] ?? 0) : 0;
  return Math.max(pagesOf(collector, input), walkCalls);
}

/** Calls of one run in which nothing is repeated or looked up. */
function pagesOf(collector: Collector, input: Pick<PlanInput, "nodes" | "nodePages" | "sessionPages">): number {
  switch (collector) {
    case "nodes":
      return Math.max(1, input.nodePages);
    case "details":
      return Math.max(1, input.nodes);
    case "sessions":
      return Math.max(1, input.sessionPages);
    case "stats":
    case "hourly":
      return 1;
    default:
      return collector satisfies never;
  }
}

function collectorPlan(
  collector: Collector,
  requestedInterval: RequestedInterval,
  { given, boundBy }: Grant<Bound>,
  grants: Grants,
  input: PlanInput,
): CollectorPlan {
  const calls = callsPerRun(collector, input);
  const left = pollingCallsLeft(input.limits, input.month, actionRates(input).aDay);
  const shared =
    boundBy === null
      ? requestedInterval.intervalMs
      : Math.max(requestedInterval.intervalMs, (calls * MINUTE_MS) / given);
  const isPostponed = collector !== "details" && left !== null && isTooLate(collector, shared, left, input);
  const untilNext = (input.runs?.[collector]?.sinceMs ?? 0) + input.month.leftMs;
  const intervalMs = isPostponed ? Math.max(shared, untilNext) : shared;
  const pacedMs = Number.isFinite(shared)
    ? shared
    : (input.pacedIntervals?.[collector] ?? requestedInterval.intervalMs);
  return {
    requestedMs: requestedInterval.intervalMs,
    intervalMs,
    pacedMs,
    freshMs: freshMsOf(collector, requestedInterval, Math.max(pacedMs, input.measuredDurations?.[collector] ?? 0)),
    slowdown: intervalMs / requestedInterval.intervalMs,
    boundBy: intervalMs > shared ? "month" : boundBy,
    callsPerMinute: given,
    age: expectedAgeOf(collector, intervalMs, grants, input),
  };
}

function freshMsOf(collector: Collector, { intervalMs }: RequestedInterval, everyMs: DurationMs): DurationMs {
  // A cron schedule may have no next time.
  const requestedMs = Number.isFinite(intervalMs) ? FRESH_INTERVALS * intervalMs : 0;
  return Math.min(FRESH_INTERVALS * everyMs, Math.max(FRESH_MS_MAX[collector], requestedMs));
}

/**
 * Whether to postpone a run to the next month: this month has too few calls to finish it, or it would spend calls of other
 * collectors on time after the month's end.
 */
function isTooLate(collector: Collector, intervalMs: DurationMs, left: number, input: PlanInput): boolean {
  const calls = callsPerRun(collector, input);
  const promisedCalls = COLLECTORS.reduce((sum, other) => {
    const run = other === collector ? undefined : input.runs?.[other];
    return run === undefined ? sum : sum + run.calls - run.callsMade;
  }, 0);
  const beyond = calls * Math.max(0, 1 - input.month.leftMs / intervalMs);
  return left > 0 && (calls > left - promisedCalls || beyond > left * OVERRUN_SHARE_MAX);
}

function expectedAgeOf(collector: Collector, intervalMs: DurationMs, grants: Grants, input: PlanInput): ExpectedAge {
  switch (collector) {
    case "details": {
      // If a limit binds, suspects take the place of other reads; this bounds the wait of every node.
      const nodes = Math.max(1, input.nodes);
      const worstMs =
        grants.get(collector)!.boundBy === null ? intervalMs : (intervalMs * readsBetweenMax(nodes, 0)) / nodes;
      return { medianMs: intervalMs / 2, worstMs };
    }
    case "sessions": {
      // Sessions are published when the walk ends. The walk gets what others leave, and at least its own share.
      const { session_monitoring, plan: ofPlan } = pollingCapacityOf(input);
      const given = (other: Collector) => (other === collector ? 0 : (grants.get(other)?.given ?? 0));
      const total = (of: readonly Collector[]) => of.reduce((sum, other) => sum + given(other), 0);
      const left = Math.min(
        session_monitoring! -
          total(COLLECTORS.filter((other) => CATEGORY_OF_COLLECTOR[other] === "session_monitoring")),
        (ofPlan ?? Number.POSITIVE_INFINITY) - total(COLLECTORS),
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
