import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { type Constraint, type Demand, fill, type Grant } from "./filling.ts";
import { spendable, spendableOfPlan } from "./ledger.ts";
import { CATEGORIES, type Category, type Limits } from "./limits.ts";
import { type LastRun, type MonthState, paidAhead, pollingLeft } from "./monthleft.ts";
import { SCOPES, type Scope } from "./others.ts";
import { ACTION_SHARE } from "./pace.ts";
import { waitMax } from "./priority.ts";
import type { RecentCalls } from "./recent.ts";

/** What a collector was asked to do. */
export interface Wish {
  /** Between two runs; of details: the age that no node's detail should pass. */
  readonly intervalMs: DurationMs;
  /** A bell rings it: it runs when it rings, and nothing stretches it. */
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
  /** Calls of actions of late; absent: none. */
  readonly actions?: Readonly<Record<Category, RecentCalls>>;
  /** Calls that other users of the key are expected to make in a window, of the plan in a minute; absent: none. */
  readonly others?: Readonly<Record<Scope, number>>;
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
    return [{ name: collector, weight, wanted, isFixed: wish.rung }];
  });
  let grants = fill(demands, constraintsOf(input, 0));
  // What runs paid ahead follows from the rates, and those from it: a few rounds settle it.
  for (let round = 0, ahead = 0; round < AHEAD_ROUNDS && input.runs !== undefined; round++) {
    ahead = (ahead + aheadOf(input, grants)) / 2;
    grants = fill(demands, constraintsOf(input, ahead));
  }
  const planOf = (collector: Collector): CollectorPlan | null => {
    const [wish, grant] = [input.wishes[collector], grants.get(collector)];
    return wish === null || grant === undefined ? null : collectorPlan(collector, wish, grant, input);
  };
  return Object.fromEntries(COLLECTORS.map((collector) => [collector, planOf(collector)])) as Plan;
}

function aheadOf({ runs = {}, month }: PlanInput, grants: ReadonlyMap<Collector, Grant<Bound>>): number {
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
    const calls = (spendable(limits, category, others?.[category]) * MINUTE_MS) / limits.categories[category].windowMs;
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

function collectorPlan(
  collector: Collector,
  wish: Wish,
  { given, boundBy }: Grant<Bound>,
  input: PlanInput,
): CollectorPlan {
  const calls = callsOf(collector, input);
  const left = pollingLeft(input.limits, input.month, actionRates(input).aDay);
  const shared = boundBy === null ? wish.intervalMs : Math.max(wish.intervalMs, (calls * MINUTE_MS) / given);
  const isPutOff =
    collector !== "details" && !wish.rung && left !== null && comesTooLate(collector, shared, left, input);
  const untilNext = (input.runs?.[collector]?.sinceMs ?? 0) + input.month.leftMs;
  const intervalMs = isPutOff ? Math.max(shared, untilNext) : shared;
  return {
    wishMs: wish.intervalMs,
    intervalMs,
    stretch: intervalMs / wish.intervalMs,
    boundBy: intervalMs > shared ? "month" : boundBy,
    callsPerMinute: given,
    age: ageOf(collector, intervalMs, boundBy, input),
  };
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

function ageOf(collector: Collector, intervalMs: DurationMs, boundBy: Bound | null, input: PlanInput): ExpectedAge {
  switch (collector) {
    case "details": {
      // Where a limit binds, suspects take the place of others: nobody waits longer than that.
      const nodes = Math.max(1, input.nodes);
      const worstMs = boundBy === null ? intervalMs : (intervalMs * waitMax(nodes, 0)) / nodes;
      return { medianMs: intervalMs / 2, worstMs };
    }
    case "sessions": {
      // They are taken over as a whole once the walk ends.
      const room = roomOf(input);
      const rate = Math.min(room.session_monitoring!, room.plan ?? Number.POSITIVE_INFINITY);
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
