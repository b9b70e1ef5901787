import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { ServiceOptions } from "../../src/model/scenario.ts";
import {
  type Limits,
  PLANS,
  type PlanLimits,
  pollingCallsPerMinute,
  pollingCallsPerMonth,
  pollingCallsPerWindow,
} from "../../src/rate-limit/limits.ts";
import type { CustomLimits } from "../../src/simulator/http/rate-limits.ts";

/** What a service allows, as both sides know it. */
export interface Terms {
  readonly title: string;
  readonly limits: Limits;
  /** The plan as the simulated service has it, and what a contract changes about it. */
  readonly servicePlan: ServiceOptions["plan"];
  readonly contract: CustomLimits;
}

const WINDOW_MS = MINUTE_MS;
/** The default of the configuration, and the table of the spec (section 8.2). */
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

/** The plans of the spec. What Enterprise allows is "custom": the bench takes 2,000 a minute, in two readings. */
export const TERMS = {
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
} as const satisfies Record<string, Terms>;
export type TermsName = keyof typeof TERMS;

/**
 * What a cell has beside its faults. `churn`: nodes join and leave while the list, newest first, is walked;
 * `bad_details`: the details of some nodes can't be read.
 */
export const CONDITIONS = ["plain", "churn", "bad_details"] as const;
export type Conditions = (typeof CONDITIONS)[number];

/** One fleet under one plan: all contenders run it. */
export interface Cell {
  readonly nodes: number;
  readonly terms: TermsName;
  readonly conditions: Conditions;
  readonly seed: number;
  /** Faults of each kind. */
  readonly faults: number;
  /** Virtual time that the cell may take at most. */
  readonly spanMsMax: DurationMs;
}

/** The sizes of the fleets. */
export const SIZES = [500, 5_000, 50_000] as const;
const FAULTS = 80;
/** A fleet whose round takes days is looked at for as long as there is patience; what was not found by then is said so. */
const SPAN_MS_MAX: Readonly<Record<number, Partial<Record<TermsName, DurationMs>>>> = {
  50000: { starter: 60 * HOUR_MS, business: 6 * HOUR_MS, enterprise100: 1.5 * HOUR_MS },
};

/** A cell of the bench. */
export const cellOf = (nodes: number, terms: TermsName, seed: number, conditions: Conditions = "plain"): Cell => ({
  nodes,
  terms,
  conditions,
  seed,
  faults: FAULTS,
  spanMsMax: SPAN_MS_MAX[nodes]?.[terms] ?? 20 * DAY_MS,
});

/** All cells: every size under every plan, then those of the other conditions. */
export const allCells = (seed: number): readonly Cell[] => [
  ...SIZES.flatMap((nodes) => (Object.keys(TERMS) as TermsName[]).map((terms) => cellOf(nodes, terms, seed))),
  ...CONDITIONS.filter((each) => each !== "plain").map((each) => cellOf(5_000, "enterprise100", seed, each)),
];

/** The plan and the conditions of a cell, for tables. */
export function titleOf({ terms, conditions }: Cell): string {
  const { title } = TERMS[terms];
  switch (conditions) {
    case "plain":
      return title;
    case "churn":
      return `${title}; nodes join and leave`;
    case "bad_details":
      return `${title}; ${Math.round(BAD_DETAILS.at(-1)!.share * 100)} % of details fail`;
    default:
      return conditions satisfies never;
  }
}

/** Mean time between joins, and between leaves, under churn. */
export const CHURN_EVERY_MS: DurationMs = 40_000;
/** Nodes whose details fail, as shares of the fleet; each holds the ones before it. */
export const BAD_DETAILS = [
  { share: 0.03, answer: "not_found" },
  { share: 0.06, answer: "unreadable" },
  { share: 0.1, answer: "server_error" },
] as const;

/** What everybody wishes for: more than the limits carry nearly everywhere, so that there is use for every call. */
export const WISHES = { listMs: MINUTE_MS, detailMs: MINUTE_MS } as const;
/** Largest page that the service gives. */
export const PAGE_SIZE = 1_000;
/** Under churn pages are small: a walk of 5,000 nodes takes 50 calls, and the list often changes meanwhile. */
export const PAGE_SIZE_OF_CHURN = 100;

/** Nodes on a page of a cell's list. */
export const pageSizeOf = ({ conditions }: Pick<Cell, "conditions">): number =>
  conditions === "churn" ? PAGE_SIZE_OF_CHURN : PAGE_SIZE;

export const MONTH_MS: DurationMs = 30 * DAY_MS;

/** Of what may be spent, lists get so much at most, with the even poller as with ours: details compare on the same calls. */
export const LIST_SHARE = 0.75;

/** How much may be spent on a fleet, and what that comes to. Rates are calls a minute. */
export interface Means {
  readonly pages: number;
  /** What polling may spend in the long run: the window and the plan's minute less the reserve, and the month. */
  readonly rate: number;
  /** Whether the wishes would take more than that. */
  readonly isScarce: boolean;
  /** Between two walks: of somebody who spends all on lists, and of the even poller. */
  readonly fastestWalkMs: DurationMs;
  readonly evenWalkMs: DurationMs;
  /** The even poller's details. */
  readonly evenDetailRate: number;
  readonly roundMs: DurationMs;
}

/** The means of a cell. */
export function meansOf({ nodes, terms, conditions }: Cell): Means {
  const { limits } = TERMS[terms];
  const pages = Math.ceil(nodes / pageSizeOf({ conditions }));
  const cap = limits.plan.callsPerMonth;
  const rate = Math.min(
    pollingCallsPerWindow(limits, "node_management"),
    pollingCallsPerMinute(limits) ?? Number.POSITIVE_INFINITY,
    cap === null ? Number.POSITIVE_INFINITY : (pollingCallsPerMonth(cap) * MINUTE_MS) / MONTH_MS,
  );
  const walkMs = (share: number) => Math.max(WISHES.listMs, (pages * MINUTE_MS) / (rate * share));
  const evenWalkMs = walkMs(LIST_SHARE);
  const wanted = (nodes * MINUTE_MS) / WISHES.detailMs;
  const evenDetailRate = Math.min(wanted, rate - (pages * MINUTE_MS) / evenWalkMs);
  return {
    pages,
    rate,
    isScarce: wanted + (pages * MINUTE_MS) / WISHES.listMs > rate,
    fastestWalkMs: walkMs(1),
    evenWalkMs,
    evenDetailRate,
    roundMs: (nodes * MINUTE_MS) / evenDetailRate,
  };
}

/** When what happens in a cell, from its start. */
export interface Timetable {
  /** Nothing shows before: what was read just before the start has come to differ in age by then. */
  readonly leadMs: DurationMs;
  /** Faults show within this, evenly. */
  readonly windowMs: DurationMs;
  /** How long each lasts from then on: after that it was not found. */
  readonly lastsMs: DurationMs;
  readonly endMs: DurationMs;
}

/** Rounds of the even poller that a creeping usage takes from its healthy level to the threshold: less is a jump to it. */
export const CREEP_ROUNDS = { min: 1.5, max: 3.5 } as const;
const LASTS_ROUNDS = 1.5;
const LASTS_MS_MIN: DurationMs = 10 * MINUTE_MS;
/** Nodes that creep at a time, as a share of the fleet: more would be no fault of nodes. */
const CREEPING_SHARE = 0.04;
const WINDOW_ROUNDS_MIN = 0.25;

/** The timetable of a cell. */
export function timetableOf(cell: Cell): Timetable {
  const { roundMs } = meansOf(cell);
  const lastsMs = Math.min(Math.max(LASTS_MS_MIN, LASTS_ROUNDS * roundMs), 0.4 * cell.spanMsMax);
  const leadMs = Math.min(roundMs, 0.2 * cell.spanMsMax);
  const creepMs = ((CREEP_ROUNDS.min + CREEP_ROUNDS.max) / 2) * roundMs + lastsMs;
  const windowMs = Math.min(
    Math.max(WINDOW_ROUNDS_MIN * roundMs, (cell.faults * creepMs) / (CREEPING_SHARE * cell.nodes)),
    cell.spanMsMax - leadMs - lastsMs,
  );
  return { leadMs, windowMs, lastsMs, endMs: leadMs + windowMs + lastsMs };
}
