import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { type Constraint, type Demand, fill, type Grant } from "./max-min-fairness.ts";
import { spendable, spendableOfPlan } from "../rate-limit/ledger.ts";
import { CATEGORIES, type Category, type Limits } from "../rate-limit/limits.ts";
import { type LastRun, type MonthState, paidAhead, pollingLeft } from "../rate-limit/monthly-budget.ts";
import { SCOPES, type Scope } from "../rate-limit/external-usage/external-usage.ts";
import { ACTION_SHARE } from "../rate-limit/pacing.ts";
import { waitMax } from "./detail-priority.ts";
import type { RecentCalls } from "../rate-limit/recent-calls.ts";

/** What a collector was asked to do. */
export interface Wish {
  /** Between two runs; of details: the age that no node's detail should pass. */
  readonly intervalMs: DurationMs;
  /** It runs at the times of a cron schedule: a longer planned interval skips some of them. */
  readonly rung: boolean;
}

/** What the planner knows. Unknown counts are taken for the least that one call brings. */
export interface PlanInput {
  /** Null: not collected. */
  readonly wishes: Readonly<Record<Collector, Wish | null>>;
  readonly nodes: number;
  readonly nodePages: number;
  readonly sessionPages: number;
  readonly limits: Limits;
  readonly month: MonthState;
  /** By collector the run that began last; absent: none that is known. */
  readonly runs?: Readonly<Partial<Record<Collector, LastRun>>>;
  /** By collector how long its last complete run took; absent: not measured. */
  readonly measured?: Readonly<Partial<Record<Collector, DurationMs>>>;
  /** By collector the last {@link CollectorPlan.pacedMs}; absent: none. */
  readonly paced?: Readonly<Partial<Record<Collector, DurationMs>>>;
  /** Calls of actions of late; absent: none. */
  readonly actions?: Readonly<Record<Category, RecentCalls>>;
  /** Calls that other users of the key are expected to make in a window, of the plan in a minute; absent: none. */
  readonly others?: Readonly<Record<Scope, number>>;
  /** Calls a window that refusals have shown to be the most, by category; null: the stated limits hold. Absent: none is known. */
  readonly learned?: Readonly<Record<Category, number | null>>;
  /** Collectors whose data the loaded policies read to find what is unhealthy; absent: none. */
  readonly reads?: ReadonlySet<Collector>;
}

/** The limit that keeps a wish from being met. */
export type Bound = Scope | "month";
/** All of them. */
export const PLAN_BOUNDS: readonly Bound[] = [...SCOPES, "month"];

/** How old data are to be expected. */
export interface ExpectedAge {
  readonly medianMs: DurationMs;
  readonly worstMs: DurationMs;
}

/** What a collector will do. */
export interface CollectorPlan {
  readonly wishMs: DurationMs;
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
  readonly stretch: number;
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
const AHEAD_ROUNDS = 8;
/** Share of what is left of a month that one run may spend on time beyond it. */
const BEYOND_SHARE_MAX = 0.2;

/** The category that a collector's calls are of. */
export const CATEGORY_OF: Readonly<Record<Collector, Category>> = {
  nodes: "node_management",
  details: "node_management",
  sessions: "session_monitoring",
  stats: "session_monitoring",
  hourly: "session_monitoring",
};

/** Fits the wishes into the limits: weighted max-min fairness over nested constraints. */
export function plan(input: PlanInput): Plan {
  const demands = COLLECTORS.flatMap((collector): Demand<Collector>[] => {
    const wish = input.wishes[collector];
    if (wish === null) return [];
    const weight = WEIGHTS[collector] * (input.reads?.has(collector) === true ? READ_WEIGHT : 1);
    const wanted = (callsOf(collector, input) * MINUTE_MS) / wish.intervalMs;
    return [{ name: collector, weight, wanted }];
  });
  let grants = fill(demands, constraintsOf(input, 0));
  // What runs paid ahead follows from the rates, and those from it: a few rounds settle it.
  for (let round = 0, ahead = 0; round < AHEAD_ROUNDS && input.runs !== undefined; round++) {
    ahead = (ahead + aheadOf(input, grants)) / 2;
    grants = fill(demands, constraintsOf(input, ahead));
  }
  const planOf = (collector: Collector): CollectorPlan | null => {
    const [wish, grant] = [input.wishes[collector], grants.get(collector)];
    return wish === null || grant === undefined ? null : collectorPlan(collector, wish, grants, input);
  };
  return Object.fromEntries(COLLECTORS.map((collector) => [collector, planOf(collector)])) as Plan;
}

type Grants = ReadonlyMap<Collector, Grant<Bound>>;

function aheadOf({ runs = {}, month }: PlanInput, grants: Grants): number {
  return COLLECTORS.reduce((sum, collector) => {
    const run = runs[collector];
    return run === undefined ? sum : sum + paidAhead(run, grants.get(collector)?.given ?? 0, month);
  }, 0);
}

/**
 * Calls a minute that polling may make under each limit, what actions and others take off it aside; null: no such cap.
 * `ahead`: calls of the month that runs made for the time to come.
 */
export function roomOf(input: PlanInput, ahead = 0): Readonly<Record<Bound, number | null>> {
  const { limits, month, others } = input;
  const { perMinute, aDay } = actionRates(input);
  const left = pollingLeft(limits, month, aDay);
  const beside = (calls: number, actions: number) => Math.max(calls * (1 - ACTION_SHARE), calls - actions);
  const ofCategory = (category: Category) => {
    const calls =
      (spendable(limits, category, others?.[category], input.learned?.[category]) * MINUTE_MS) /
      limits.categories[category].windowMs;
    return beside(calls, perMinute[category]);
  };
  const planCalls = spendableOfPlan(limits, others?.plan);
  const actions = CATEGORIES.reduce((sum, category) => sum + perMinute[category], 0);
  return {
    node_management: ofCategory("node_management"),
    session_monitoring: ofCategory("session_monitoring"),
    plan: planCalls === null ? null : beside(planCalls, actions),
    month: left === null ? null : (left + (left > 0 ? ahead : 0)) / Math.max(1, month.leftMs / MINUTE_MS),
  };
}

function constraintsOf(input: PlanInput, ahead: number): Constraint<Collector, Bound>[] {
  const room = roomOf(input, ahead);
  return (Object.keys(room) as Bound[]).flatMap((bound) => {
    const capacity = room[bound];
    const holds = (collector: Collector) => bound === "plan" || bound === "month" || CATEGORY_OF[collector] === bound;
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
export function callsOf(collector: Collector, input: Pick<PlanInput, "nodes" | "nodePages" | "sessionPages">): number {
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

function collectorPlan(collector: Collector, wish: Wish, grants: Grants, input: PlanInput): CollectorPlan {
  const { given, boundBy } = grants.get(collector)!;
  const calls = callsOf(collector, input);
  const left = pollingLeft(input.limits, input.month, actionRates(input).aDay);
  const shared = boundBy === null ? wish.intervalMs : Math.max(wish.intervalMs, (calls * MINUTE_MS) / given);
  const isPutOff = collector !== "details" && left !== null && comesTooLate(collector, shared, left, input);
  const untilNext = (input.runs?.[collector]?.sinceMs ?? 0) + input.month.leftMs;
  const intervalMs = isPutOff ? Math.max(shared, untilNext) : shared;
  const pacedMs = Number.isFinite(shared) ? shared : (input.paced?.[collector] ?? wish.intervalMs);
  return {
    wishMs: wish.intervalMs,
    intervalMs,
    pacedMs,
    freshMs: freshOf(collector, wish, Math.max(pacedMs, input.measured?.[collector] ?? 0)),
    stretch: intervalMs / wish.intervalMs,
    boundBy: intervalMs > shared ? "month" : boundBy,
    callsPerMinute: given,
    age: ageOf(collector, intervalMs, grants, input),
  };
}

function freshOf(collector: Collector, { intervalMs }: Wish, everyMs: DurationMs): DurationMs {
  // A cron schedule may have no next time.
  const wished = Number.isFinite(intervalMs) ? FRESH_INTERVALS * intervalMs : 0;
  return Math.min(FRESH_INTERVALS * everyMs, Math.max(FRESH_MS_MAX[collector], wished));
}

/**
 * Whether a run is better put off to the next month: this one can't pay it to its end, so that it would come to nothing,
 * or it would take from the others what it pays for time beyond the month.
 */
function comesTooLate(collector: Collector, intervalMs: DurationMs, left: number, input: PlanInput): boolean {
  const calls = callsOf(collector, input);
  const promised = COLLECTORS.reduce((sum, other) => {
    const run = other === collector ? undefined : input.runs?.[other];
    return run === undefined ? sum : sum + run.calls - run.made;
  }, 0);
  const beyond = calls * Math.max(0, 1 - input.month.leftMs / intervalMs);
  return left > 0 && (calls > left - promised || beyond > left * BEYOND_SHARE_MAX);
}

function ageOf(collector: Collector, intervalMs: DurationMs, grants: Grants, input: PlanInput): ExpectedAge {
  switch (collector) {
    case "details": {
      // Where a limit binds, suspects take the place of others: nobody waits longer than that.
      const nodes = Math.max(1, input.nodes);
      const worstMs = grants.get(collector)!.boundBy === null ? intervalMs : (intervalMs * waitMax(nodes, 0)) / nodes;
      return { medianMs: intervalMs / 2, worstMs };
    }
    case "sessions": {
      // They are taken over as a whole once the walk ends. It gets what the others leave, and its own share at least.
      const { session_monitoring, plan: ofPlan } = roomOf(input);
      const given = (other: Collector) => (other === collector ? 0 : (grants.get(other)?.given ?? 0));
      const total = (of: readonly Collector[]) => of.reduce((sum, other) => sum + given(other), 0);
      const left = Math.min(
        session_monitoring! - total(COLLECTORS.filter((other) => CATEGORY_OF[other] === "session_monitoring")),
        (ofPlan ?? Number.POSITIVE_INFINITY) - total(COLLECTORS),
      );
      const rate = Math.max(left, grants.get(collector)!.given);
      const walkMs = Math.min(intervalMs, (callsOf(collector, input) * MINUTE_MS) / rate);
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
