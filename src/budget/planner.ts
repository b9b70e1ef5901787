import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { COLLECTORS, type Collector } from "../model/snapshot.ts";
import { spendable, spendableOfPlan } from "./ledger.ts";
import { type Category, type Limits, pollingMonth } from "./limits.ts";

/** What a collector was asked to do. */
export interface Wish {
  /** Between two runs; of details: the age that no node's detail should pass. */
  readonly intervalMs: DurationMs;
  /** A bell rings it: it runs when it rings, and nothing stretches it. */
  readonly rung: boolean;
}

/** What the planner knows of the fleet. Unknown counts are taken for the least that one call brings. */
export interface PlanInput {
  /** Null: not collected. */
  readonly wishes: Readonly<Record<Collector, Wish | null>>;
  readonly nodes: number;
  readonly nodePages: number;
  readonly sessionPages: number;
  readonly limits: Limits;
  readonly month: { readonly used: number; readonly leftMs: DurationMs };
}

/** The limit that keeps a wish from being met. */
export type Bound = Category | "plan" | "month";

/** What a collector will do. */
export interface CollectorPlan {
  readonly wishMs: DurationMs;
  /** Between two runs; of details: a whole round of the fleet. Infinity where nothing may be spent. */
  readonly intervalMs: DurationMs;
  /** intervalMs over wishMs, from 1. */
  readonly stretch: number;
  readonly boundBy: Bound | null;
  readonly callsPerMinute: number;
}

/** What will be polled how often. Null: not collected. */
export type Plan = Readonly<Record<Collector, CollectorPlan | null>>;

/**
 * Shares of a scarce limit, in calls: lists find what is offline and feed everything else, details find what lists
 * don't show, statistics repeat what sessions tell. Who needs less than its share leaves the rest to the others.
 */
const WEIGHTS: Readonly<Record<Collector, number>> = { nodes: 4, details: 3, sessions: 2, stats: 1, hourly: 1 };

const CATEGORY_OF: Readonly<Record<Collector, Category>> = {
  nodes: "node_management",
  details: "node_management",
  sessions: "session_monitoring",
  stats: "session_monitoring",
  hourly: "session_monitoring",
};

/** Rates closer than this, in calls a minute, are the same. */
const EPSILON = 1e-9;

/** Fits the wishes into the limits: weighted max-min fairness over nested constraints, by progressive filling. */
export function plan(input: PlanInput): Plan {
  const demands = COLLECTORS.flatMap((collector): Demand[] => {
    const wish = input.wishes[collector];
    if (wish === null) return [];
    const callsARun = callsOf(collector, input);
    return [
      { collector, wish, callsARun, wanted: (callsARun * MINUTE_MS) / wish.intervalMs, given: 0, boundBy: undefined },
    ];
  });
  fill(demands, constraintsOf(input));
  return Object.fromEntries(
    COLLECTORS.map((collector) => {
      const demand = demands.find((each) => each.collector === collector);
      return [collector, demand === undefined ? null : planOf(demand)];
    }),
  ) as Plan;
}

interface Demand {
  readonly collector: Collector;
  readonly wish: Wish;
  readonly callsARun: number;
  /** Calls a minute. */
  readonly wanted: number;
  given: number;
  /** Undefined while it may still be given more. */
  boundBy: Bound | null | undefined;
}

interface Constraint {
  readonly bound: Bound;
  readonly callsPerMinute: number;
  holds(collector: Collector): boolean;
}

/** Raises all together, each by its weight, until it has what it wants or a constraint that holds it is used up. */
function fill(demands: Demand[], constraints: readonly Constraint[]): void {
  for (const demand of demands) if (demand.wish.rung) grant(demand, demand.wanted, null);
  for (;;) {
    const open = demands.filter(({ boundBy }) => boundBy === undefined);
    if (open.length === 0) return;
    const rooms = constraints.map((constraint) => {
      const held = demands.filter(({ collector }) => constraint.holds(collector));
      const used = held.reduce((sum, { given }) => sum + given, 0);
      const weight = held.filter((each) => open.includes(each)).reduce((sum, each) => sum + WEIGHTS[each.collector], 0);
      return weight === 0 ? Number.POSITIVE_INFINITY : Math.max(0, constraint.callsPerMinute - used) / weight;
    });
    const wants = open.map((each) => (each.wanted - each.given) / WEIGHTS[each.collector]);
    const step = Math.min(...rooms, ...wants);
    for (const each of open) {
      const given = each.given + step * WEIGHTS[each.collector];
      if (given >= each.wanted - EPSILON) grant(each, each.wanted, null);
      else each.given = given;
    }
    constraints.forEach((constraint, index) => {
      if (rooms[index]! > step + EPSILON) return;
      for (const each of open) {
        if (each.boundBy === undefined && constraint.holds(each.collector)) grant(each, each.given, constraint.bound);
      }
    });
  }
}

function grant(demand: Demand, callsPerMinute: number, boundBy: Bound | null): void {
  demand.given = callsPerMinute;
  demand.boundBy = boundBy;
}

function constraintsOf({ limits, month }: PlanInput): Constraint[] {
  const ofCategory = (category: Category): Constraint => ({
    bound: category,
    callsPerMinute: (spendable(limits, category) * MINUTE_MS) / limits.categories[category].windowMs,
    holds: (collector) => CATEGORY_OF[collector] === category,
  });
  const constraints = [ofCategory("node_management"), ofCategory("session_monitoring")];
  const planCalls = spendableOfPlan(limits);
  if (planCalls !== null) constraints.push({ bound: "plan", callsPerMinute: planCalls, holds: () => true });
  const cap = limits.plan.callsPerMonth;
  if (cap !== null) {
    const left = Math.max(0, pollingMonth(cap) - month.used);
    constraints.push({
      bound: "month",
      callsPerMinute: left / Math.max(1, month.leftMs / MINUTE_MS),
      holds: () => true,
    });
  }
  return constraints;
}

function callsOf(collector: Collector, input: PlanInput): number {
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

function planOf({ wish, callsARun, given, boundBy }: Demand): CollectorPlan {
  const intervalMs = boundBy ? Math.max(wish.intervalMs, (callsARun * MINUTE_MS) / given) : wish.intervalMs;
  return {
    wishMs: wish.intervalMs,
    intervalMs,
    stretch: intervalMs / wish.intervalMs,
    boundBy: boundBy ?? null,
    callsPerMinute: given,
  };
}
