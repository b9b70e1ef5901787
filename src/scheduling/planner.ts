import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { LIMIT_SCOPES, type LimitScope } from "../rate-limit/external-usage/external-usage.ts";
import { pollingCallsPerMinute, pollingCallsPerWindow } from "../rate-limit/ledger.ts";
import { CATEGORIES, type Category, type Limits } from "../rate-limit/limits.ts";
import { callsPaidAhead, type LastRun, type MonthUsage, pollingCallsLeft } from "../rate-limit/monthly-budget.ts";
import { ACTION_SHARE } from "../rate-limit/pacing.ts";
import type { RecentCalls } from "../rate-limit/recent-calls.ts";
import { readsBetweenMax } from "./detail-priority.ts";
import { type Constraint, type Demand, type Grant, shareFairly } from "./max-min-fairness.ts";

/** What a collector was asked to do. */
export interface RequestedInterval {
  /** Between two runs; of details: the age that no node's detail should pass. */
  readonly intervalMs: DurationMs;
  /** It runs at the times of a cron schedule: a longer planned interval skips some of them. */
  readonly isCron: boolean;
}

/** What the planner knows. Unknown counts are taken for the least that one call brings. */
export interface PlanInput {
  /** Null: not collected. */
  readonly requestedIntervals: Readonly<Record<Collector, RequestedInterval | null>>;
  readonly nodes: number;
  readonly nodePages: number;
  readonly sessionPages: number;
  readonly limits: Limits;
  readonly month: MonthUsage;
  /** By collector the run that began last; absent: none that is known. */
  readonly runs?: Readonly<Partial<Record<Collector, LastRun>>>;
  /** By collector how long its last complete run took; absent: not measured. */
  readonly measuredCalls?: Readonly<Partial<Record<Collector, DurationMs>>>;
  /** By collector the last {@link CollectorPlan.pacedMs}; absent: none. */
  readonly pacedIntervals?: Readonly<Partial<Record<Collector, DurationMs>>>;
  /** Calls of actions of late; absent: none. */
  readonly actions?: Readonly<Record<Category, RecentCalls>>;
  /** Calls that other users of the key are expected to make in a window, of the plan in a minute; absent: none. */
  readonly externalCalls?: Readonly<Record<LimitScope, number>>;
  /** Calls a window that refusals have shown to be the most, by category; null: the stated limits hold. Absent: none is known. */
  readonly learnedLimits?: Readonly<Record<Category, number | null>>;
  /** Collectors whose data the loaded policies read to find what is unhealthy; absent: none. */
  readonly reads?: ReadonlySet<Collector>;
}

/** The limit that keeps a wish from being met. */
export type Bound = LimitScope | "month";
/** All of them. */
export const PLAN_BOUNDS: readonly Bound[] = [...LIMIT_SCOPES, "month"];

/** How old data are to be expected. */
export interface ExpectedAge {
  readonly medianMs: DurationMs;
  readonly worstMs: DurationMs;
}

/** What a collector will do. */
export interface CollectorPlan {
  readonly requestedMs: DurationMs;
  /** Between two runs; of details: a whole round of the fleet. Infinity where nothing may be spent. */
  readonly intervalMs: DurationMs;
  /**
   * The interval without a wait for the next month. Always finite: where nothing may be spent, it is the last one at which
   * something could, or the wish.
   */
  readonly pacedMs: DurationMs;
  /**
   * For how long a datum of this collector counts as fresh, for every reader: {@link FRESH_INTERVALS} times the longer of
   * `pacedMs` and the measured duration of a run, at most {@link FRESH_MS_MAX} or {@link FRESH_INTERVALS} wishes.
   */
  readonly freshMs: DurationMs;
  /** intervalMs over wishMs, from 1. */
  readonly slowdown: number;
  readonly boundBy: Bound | null;
  readonly callsPerMinute: number;
  readonly age: ExpectedAge;
}

/** What will be polled how often. Null: not collected. */
export type Plan = Readonly<Record<Collector, CollectorPlan | null>>;

/**
 * Shares of a scarce limit, in calls: lists find what is offline and feed everything else, details find what lists
 * don't show, statistics repeat what sessions tell. Beside details alone lists get three quarters: an outage is then found
 * in at most one and a half times as long as if nothing else were read. Who needs less than its share leaves the rest to
 * the others.
 */
const WEIGHTS: Readonly<Record<Collector, number>> = { nodes: 15, details: 5, sessions: 5, stats: 2, hourly: 2 };
/** What policies read to find the unhealthy counts so many times as much: there a late look is a late cure. */
const READ_WEIGHT = 2;

/** Two runs may fail or come late before what a collector brought counts as stale. */
const FRESH_INTERVALS = 3;
/**
 * The longest that a datum counts as fresh, however slowly the limits let it be read, unless the configuration itself asks
 * for rarer reads. Lists and statistics say what is so now. Sessions are walked in many pages, and details are read node by
 * node: a month of the Starter plan has one round over 5,000 nodes in about ten days.
 */
export const FRESH_MS_MAX: Readonly<Record<Collector, DurationMs>> = {
  nodes: DAY_MS,
  details: 14 * DAY_MS,
  sessions: 3 * DAY_MS,
  stats: DAY_MS,
  hourly: DAY_MS,
};

/** Rounds in which what was paid ahead and the rates settle. */
const PAID_AHEAD_ROUNDS = 8;
/** Share of what is left of a month that one run may spend on time beyond it. */
const OVERRUN_SHARE_MAX = 0.2;

/** The category that a collector's calls are of. */
export const CATEGORY_OF_COLLECTOR: Readonly<Record<Collector, Category>> = {
  nodes: "node_management",
  details: "node_management",
  sessions: "session_monitoring",
  stats: "session_monitoring",
  hourly: "session_monitoring",
};

/** Fits the wishes into the limits: weighted max-min fairness over nested constraints. */
export function planPolling(input: PlanInput): Plan {
  const demands = COLLECTORS.flatMap((collector): Demand<Collector>[] => {
    const requestedInterval = input.requestedIntervals[collector];
    if (requestedInterval === null) return [];
    const weight = WEIGHTS[collector] * (input.reads?.has(collector) === true ? READ_WEIGHT : 1);
    const wanted = (callsPerRun(collector, input) * MINUTE_MS) / requestedInterval.intervalMs;
    return [{ name: collector, weight, wanted }];
  });
  let grants = shareFairly(demands, planConstraints(input, 0));
  // What runs paid ahead follows from the rates, and those from it: a few rounds settle it.
  for (let round = 0, paidAheadCalls = 0; round < PAID_AHEAD_ROUNDS && input.runs !== undefined; round++) {
    paidAheadCalls = (paidAheadCalls + callsAheadOf(input, grants)) / 2;
    grants = shareFairly(demands, planConstraints(input, paidAheadCalls));
  }
  const planOf = (collector: Collector): CollectorPlan | null => {
    const [requestedInterval, grant] = [input.requestedIntervals[collector], grants.get(collector)];
    return requestedInterval === null || grant === undefined
      ? null
      : collectorPlan(collector, requestedInterval, grants, input);
  };
  return Object.fromEntries(COLLECTORS.map((collector) => [collector, planOf(collector)])) as Plan;
}

type Grants = ReadonlyMap<Collector, Grant<Bound>>;

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
    const holds = (collector: Collector) =>
      bound === "plan" || bound === "month" || CATEGORY_OF_COLLECTOR[collector] === bound;
    return capacity === null ? [] : [{ bound, capacity, holds }];
  });
}

/** How often actions call: as often as in the last hour or the last day, whichever was more. */
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

/** Calls of a run; of details, of a round. */
export function callsPerRun(
  collector: Collector,
  input: Pick<PlanInput, "nodes" | "nodePages" | "sessionPages">,
): number {
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
  grants: Grants,
  input: PlanInput,
): CollectorPlan {
  const { given, boundBy } = grants.get(collector)!;
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
    freshMs: freshMsOf(collector, requestedInterval, Math.max(pacedMs, input.measuredCalls?.[collector] ?? 0)),
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
 * Whether a run is better put off to the next month: this one can't pay it to its end, so that it would come to nothing,
 * or it would take from the others what it pays for time beyond the month.
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
      // Where a limit binds, suspects take the place of others: nobody waits longer than that.
      const nodes = Math.max(1, input.nodes);
      const worstMs =
        grants.get(collector)!.boundBy === null ? intervalMs : (intervalMs * readsBetweenMax(nodes, 0)) / nodes;
      return { medianMs: intervalMs / 2, worstMs };
    }
    case "sessions": {
      // They are taken over as a whole once the walk ends. It gets what the others leave, and its own share at least.
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
