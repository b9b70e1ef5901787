import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../base/duration.ts";
import type { Collector } from "../model/snapshot.ts";
import { LIMIT_SCOPES, type LimitScope } from "../rate-limit/external-usage/external-usage.ts";
import {
  CATEGORIES,
  type Category,
  type Limits,
  pollingCallsPerMinute,
  pollingCallsPerWindow,
} from "../rate-limit/limits.ts";
import { type LastRun, type MonthUsage, monthlyPace, pollingCallsLeft } from "../rate-limit/monthly-budget.ts";
import type { RecentActions } from "../rate-limit/permits.ts";
import { ACTION_SHARE } from "../rate-limit/window-pace.ts";

/** Schedule of a collector as configured. */
export interface RequestedInterval {
  /** Time between two runs or, for details, the maximum age of a node's detail. */
  readonly intervalMs: DurationMs;
  /** Whether it is a cron schedule, in which case a longer planned interval skips some of its times. */
  readonly isCron: boolean;
}

/** Input of the planner. An unknown count is assumed to be the minimum, one call. */
export interface PlanInput {
  /** Requested interval of each collector, or null if not collected. */
  readonly requestedIntervals: Readonly<Record<Collector, RequestedInterval | null>>;
  readonly nodes: number;
  readonly nodePages: number;
  readonly sessionPages: number;
  readonly limits: Limits;
  readonly month: MonthUsage;
  /** The last run of each collector, which may be in progress. Absent or null if none is known. */
  readonly runs?: Readonly<Partial<Record<Collector, LastRun | null>>>;
  /** Mean calls of a walk, including repeated pages and lookups. Absent means one call per page. */
  readonly walkCalls?: Readonly<Partial<Record<"nodes" | "sessions", number>>>;
  /** Duration of the last complete run by collector. Absent if not measured. */
  readonly measuredDurations?: Readonly<Partial<Record<Collector, DurationMs>>>;
  /** The `pacedMs` of each collector in the last plan. Absent or null if there is none. */
  readonly pacedIntervals?: Readonly<Partial<Record<Collector, DurationMs | null>>>;
  /** The longest `pacedMs` under which data was read that may still be fresh, by collector. Absent if there is none. */
  readonly longestIntervals?: Readonly<Partial<Record<Collector, DurationMs>>>;
  /** Recent calls for actions. Absent if there are none. */
  readonly actions?: Readonly<Record<Category, RecentActions>>;
  /** Calls expected from other users of the key per window; for the plan, per minute. Absent if there are none. */
  readonly externalCalls?: Readonly<Record<LimitScope, number>>;
  /** Limits learned from 429s, in calls per window, or null if the stated limit applies. Absent if none is known. */
  readonly learnedLimits?: Readonly<Record<Category, number | null>>;
  /** Collectors whose data the loaded policies read. */
  readonly reads: ReadonlySet<Collector>;
}

/** A limit that can slow down a collector. */
export type Bound = LimitScope | "month";
export const PLAN_BOUNDS: readonly Bound[] = [...LIMIT_SCOPES, "month"];

/** Polling calls per minute under each limit. Null means that there is no such limit. */
type PollingCapacity = Readonly<Record<Category, number> & Record<"plan" | "month", number | null>>;

/** Rate limit category of each collector. */
export const CATEGORY_OF_COLLECTOR: Readonly<Record<Collector, Category>> = {
  nodes: "node_management",
  details: "node_management",
  sessions: "session_monitoring",
  stats: "session_monitoring",
  hourly: "session_monitoring",
};

/** Returns the mean calls of one run or, for details, of one round, which are at least its pages. */
export function callsPerRun(
  collector: Collector,
  input: Pick<PlanInput, "nodes" | "nodePages" | "sessionPages" | "walkCalls">,
): number {
  const walkCalls = collector === "nodes" || collector === "sessions" ? (input.walkCalls?.[collector] ?? 0) : 0;
  return Math.max(pagesOf(collector, input), walkCalls);
}

/** Returns the calls of one run without repeated pages and lookups. */
export function pagesOf(collector: Collector, input: Pick<PlanInput, "nodes" | "nodePages" | "sessionPages">): number {
  const { nodes, nodePages, sessionPages } = input;
  return Math.max(1, { nodes: nodePages, details: nodes, sessions: sessionPages, stats: 1, hourly: 1 }[collector]);
}

/** Returns whether a limit applies to a collector. */
export const isLimitedBy = (collector: Collector, bound: Bound): boolean =>
  bound === "plan" || bound === "month" || CATEGORY_OF_COLLECTOR[collector] === bound;

/**
 * Returns the polling calls per minute under each limit, after those of actions and other users. `paidAhead` is the
 * number of calls of the month that runs have made ahead of their rate.
 */
export function pollingCapacityOf(input: PlanInput, paidAhead = 0): PollingCapacity {
  const { limits, month, externalCalls } = input;
  const left = monthlyCallsLeft(input);
  const withoutActions = (calls: number, actions: number) => Math.max(calls * (1 - ACTION_SHARE), calls - actions);
  const ofCategory = (category: Category) => {
    const learned = input.learnedLimits?.[category];
    const calls = pollingCallsPerWindow(limits, category, externalCalls?.[category], learned) * MINUTE_MS;
    return withoutActions(calls / limits.categories[category].windowMs, actionsPerMinute(input, category));
  };
  const planCalls = pollingCallsPerMinute(limits, externalCalls?.plan);
  const actions = CATEGORIES.reduce((sum, category) => sum + actionsPerMinute(input, category), 0);
  return {
    node_management: ofCategory("node_management"),
    session_monitoring: ofCategory("session_monitoring"),
    plan: planCalls === null ? null : withoutActions(planCalls, actions),
    month: left === null ? null : monthlyPace(left, month, paidAhead),
  };
}

/** Returns the calls that polling may still make in the month, or null if the plan has no such cap. */
export function monthlyCallsLeft({ limits, month, actions }: PlanInput): number | null {
  const actionsPerDay = CATEGORIES.reduce((sum, category) => sum + (actions?.[category].day ?? 0), 0);
  return pollingCallsLeft(limits, month, actionsPerDay);
}

/** Returns the rate of actions in the last hour or the last day, whichever is higher. */
function actionsPerMinute({ actions }: PlanInput, category: Category): number {
  const { hour, day } = actions?.[category] ?? { hour: 0, day: 0 };
  return Math.max((hour * MINUTE_MS) / HOUR_MS, (day * MINUTE_MS) / DAY_MS);
}
