import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { ServiceOptions } from "../../src/config/schema/scenario.ts";
import {
  type Limits,
  PLANS,
  type PlanLimits,
  pollingCallsPerMinute,
  pollingCallsPerMonth,
  pollingCallsPerWindow,
} from "../../src/rate-limit/limits.ts";
import type { CustomLimits } from "../../src/simulator/http/rate-limits.ts";

/** The limits of the service, as configured on both sides. */
export interface PlanVariant {
  readonly title: string;
  readonly limits: Limits;
  /** The plan of the simulated service. */
  readonly servicePlan: ServiceOptions["plan"];
  /** Limits that differ from those of the plan. */
  readonly contract: CustomLimits;
}

const WINDOW_MS = MINUTE_MS;
/** The default limits of the configuration, which are those of the spec (section 8.2). */
const limitsOf = (plan: PlanLimits, nodeCalls = 100): Limits => ({
  categories: {
    node_management: { requests: nodeCalls, burst: 2 * nodeCalls, windowMs: WINDOW_MS },
    session_monitoring: { requests: 500, burst: 1_000, windowMs: WINDOW_MS },
  },
  plan,
  reserve: 0.2,
});

const CUSTOM = 2_000;
const custom = { ...PLANS.enterprise, requestsPerMinute: CUSTOM };

/** The plans of the spec. Enterprise's limits are "custom": here 2,000 requests a minute, in two variants. */
export const PLAN_VARIANTS = {
  starter: { title: "Starter", limits: limitsOf(PLANS.starter), servicePlan: "starter", contract: {} },
  business: { title: "Business", limits: limitsOf(PLANS.business), servicePlan: "business", contract: {} },
  enterprise100: {
    title: "Enterprise, 100 node calls a minute",
    limits: limitsOf(custom),
    servicePlan: "enterprise",
    contract: { plan: { requestsPerMinute: CUSTOM } },
  },
  enterprise: {
    title: "Enterprise, 2,000 node calls a minute",
    limits: limitsOf(custom, CUSTOM),
    servicePlan: "enterprise",
    contract: {
      plan: { requestsPerMinute: CUSTOM },
      categories: { node_management: { limit: CUSTOM, burst: 2 * CUSTOM, windowMs: WINDOW_MS } },
    },
  },
} as const satisfies Record<string, PlanVariant>;
export type PlanVariantName = keyof typeof PLAN_VARIANTS;

/**
 * Conditions in addition to the faults. `churn`: nodes join and leave, and the list is sorted newest first.
 * `bad_details`: the details of some nodes are unreadable.
 */
export const CONDITIONS = ["plain", "churn", "bad_details"] as const;
export type Conditions = (typeof CONDITIONS)[number];

/** One fleet under one plan, run by every contender. */
export interface Cell {
  readonly nodes: number;
  readonly plan: PlanVariantName;
  readonly conditions: Conditions;
  readonly seed: number;
  /** Number of faults of each kind. */
  readonly faults: number;
  /** The longest simulated time. */
  readonly spanMsMax: DurationMs;
}

/** Sizes of the fleets. */
export const SIZES = [500, 5_000, 50_000] as const;
const FAULTS = 80;
/** Limits the simulated time of fleets whose round takes days. Faults not found by then are reported as such. */
const SPAN_MS_MAX: Readonly<Record<number, Partial<Record<PlanVariantName, DurationMs>>>> = {
  50000: { starter: 60 * HOUR_MS, business: 6 * HOUR_MS, enterprise100: 1.5 * HOUR_MS },
};

/** Returns a cell of the benchmark. */
export const cellOf = (nodes: number, plan: PlanVariantName, seed: number, conditions: Conditions = "plain"): Cell => ({
  nodes,
  plan,
  conditions,
  seed,
  faults: FAULTS,
  spanMsMax: SPAN_MS_MAX[nodes]?.[plan] ?? 20 * DAY_MS,
});

/** Returns all cells: every size under every plan, then those with other conditions. */
export const allCells = (seed: number): readonly Cell[] => [
  ...SIZES.flatMap((nodes) =>
    (Object.keys(PLAN_VARIANTS) as PlanVariantName[]).map((plan) => cellOf(nodes, plan, seed)),
  ),
  ...CONDITIONS.filter((each) => each !== "plain").map((each) => cellOf(5_000, "enterprise100", seed, each)),
];

/** Returns the plan and the conditions of a cell, for tables. */
export function titleOf({ plan, conditions }: Cell): string {
  const { title } = PLAN_VARIANTS[plan];
  switch (conditions) {
    case "plain":
      return title;
    case "churn":
      return `${title}; nodes join and leave`;
    case "bad_details":
      return `${title}; ${Math.round(BAD_DETAILS.at(-1)!.share * 100)}% of details fail`;
    default:
      return conditions satisfies never;
  }
}

/** Mean time between joins, and between leaves, under churn. */
export const CHURN_EVERY_MS: DurationMs = 40_000;
/** Shares of nodes whose details fail. Each share includes the previous ones. */
export const BAD_DETAILS = [
  { share: 0.03, answer: "not_found" },
  { share: 0.06, answer: "unreadable" },
  { share: 0.1, answer: "server_error" },
] as const;

/** Requested intervals of all contenders. The limits rarely allow them, so every call is useful. */
export const REQUESTED_INTERVALS = { listMs: MINUTE_MS, detailMs: MINUTE_MS } as const;
/** The largest page of the service. */
export const PAGE_SIZE = 1_000;
/** With small pages a walk of 5,000 nodes takes 50 calls, so that the list often changes meanwhile. */
export const PAGE_SIZE_OF_CHURN = 100;

/** Returns the number of nodes on a page. */
export const pageSizeOf = ({ conditions }: Pick<Cell, "conditions">): number =>
  conditions === "churn" ? PAGE_SIZE_OF_CHURN : PAGE_SIZE;

export const MONTH_MS: DurationMs = 30 * DAY_MS;

/** Maximum share of calls that the even poller and proxywarden make for lists, so that their details are comparable. */
export const LIST_SHARE = 0.75;

/** The calls that polling may make for a fleet, and the resulting intervals. Rates are calls a minute. */
export interface PollingBudget {
  readonly pages: number;
  /** Sustained rate: the limits less the reserve, and the month. */
  readonly rate: number;
  /** Whether the requested intervals exceed the rate. */
  readonly isScarce: boolean;
  /** Time between two walks if all calls are for lists. */
  readonly fastestWalkMs: DurationMs;
  /** Time between two walks of the even poller. */
  readonly evenWalkMs: DurationMs;
  /** Rate of detail reads of the even poller. */
  readonly evenDetailRate: number;
  /** Time in which the even poller reads the details of all nodes. */
  readonly roundMs: DurationMs;
}

/** Returns the polling budget of a cell. */
export function pollingBudgetOf({ nodes, plan, conditions }: Cell): PollingBudget {
  const { limits } = PLAN_VARIANTS[plan];
  const pages = Math.ceil(nodes / pageSizeOf({ conditions }));
  const cap = limits.plan.callsPerMonth;
  const rate = Math.min(
    pollingCallsPerWindow(limits, "node_management"),
    pollingCallsPerMinute(limits) ?? Number.POSITIVE_INFINITY,
    cap === null ? Number.POSITIVE_INFINITY : (pollingCallsPerMonth(cap) * MINUTE_MS) / MONTH_MS,
  );
  const walkMs = (share: number) => Math.max(REQUESTED_INTERVALS.listMs, (pages * MINUTE_MS) / (rate * share));
  const evenWalkMs = walkMs(LIST_SHARE);
  const requestedRate = (nodes * MINUTE_MS) / REQUESTED_INTERVALS.detailMs;
  const evenDetailRate = Math.min(requestedRate, rate - (pages * MINUTE_MS) / evenWalkMs);
  return {
    pages,
    rate,
    isScarce: requestedRate + (pages * MINUTE_MS) / REQUESTED_INTERVALS.listMs > rate,
    fastestWalkMs: walkMs(1),
    evenWalkMs,
    evenDetailRate,
    roundMs: (nodes * MINUTE_MS) / evenDetailRate,
  };
}

/** The times of a cell, from its start. */
export interface Timetable {
  /** Time without visible faults, in which the ages of the details spread out. */
  readonly leadMs: DurationMs;
  /** Duration of the following window in which faults become visible, evenly distributed. */
  readonly windowMs: DurationMs;
  /** Duration of each fault. A fault that is not found within it counts as not found. */
  readonly lastsMs: DurationMs;
  readonly endMs: DurationMs;
}

/** Duration of a slow rise from the healthy usage to the threshold, in rounds of the even poller. */
export const CREEP_ROUNDS = { min: 1.5, max: 3.5 } as const;
const LASTS_ROUNDS = 1.5;
const LASTS_MS_MIN: DurationMs = 10 * MINUTE_MS;
/** The largest share of nodes whose usage rises at the same time. */
const CREEPING_SHARE = 0.04;
const WINDOW_ROUNDS_MIN = 0.25;

/** Returns the timetable of a cell. */
export function timetableOf(cell: Cell): Timetable {
  const { roundMs } = pollingBudgetOf(cell);
  const lastsMs = Math.min(Math.max(LASTS_MS_MIN, LASTS_ROUNDS * roundMs), 0.4 * cell.spanMsMax);
  const leadMs = Math.min(roundMs, 0.2 * cell.spanMsMax);
  const creepMs = ((CREEP_ROUNDS.min + CREEP_ROUNDS.max) / 2) * roundMs + lastsMs;
  const windowMs = Math.min(
    Math.max(WINDOW_ROUNDS_MIN * roundMs, (cell.faults * creepMs) / (CREEPING_SHARE * cell.nodes)),
    cell.spanMsMax - leadMs - lastsMs,
  );
  return { leadMs, windowMs, lastsMs, endMs: leadMs + windowMs + lastsMs };
}
