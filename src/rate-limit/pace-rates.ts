import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { LimitScope } from "./external-usage/external-usage.ts";
import { allowanceOf, type Category, type Limits } from "./limits.ts";
import { actionRate, evenRate, type PaceRate } from "./pacing.ts";

/** Rates at which calls under a limit are sent. */
export interface PaceRates {
  /** Polling calls per window. */
  readonly polling: number;
  readonly evenPace: PaceRate;
  /** Rate of actions among themselves. */
  readonly actionPace: PaceRate;
}

/** Rates of a plan without a limit: calls cost nothing. */
const UNLIMITED: PaceRates = {
  polling: 1,
  evenPace: { costMs: 0, capacity: 1 },
  actionPace: { costMs: 0, capacity: 1 },
};

/** Rates of a category. */
export const categoryPaceRates = (limits: Limits, category: Category): PaceRates => allPaceRates(limits)[category];

/** Rates of the plan over all categories. */
export const planPaceRates = (limits: Limits): PaceRates => allPaceRates(limits).plan;

const known = new WeakMap<Limits, Readonly<Record<LimitScope, PaceRates>>>();

/** Cached: read at every call, and constant while the limits are. */
function allPaceRates(limits: Limits): Readonly<Record<LimitScope, PaceRates>> {
  const before = known.get(limits);
  if (before !== undefined) return before;
  const { categories, plan, reserve } = limits;
  const ofCategory = (category: Category) =>
    paceRatesOf(categories[category].requests, reserve, categories[category].windowMs);
  const terms = {
    node_management: ofCategory("node_management"),
    session_monitoring: ofCategory("session_monitoring"),
    plan: plan.requestsPerMinute === null ? UNLIMITED : paceRatesOf(plan.requestsPerMinute, reserve, MINUTE_MS),
  };
  known.set(limits, terms);
  return terms;
}

function paceRatesOf(requests: number, reserve: Share, windowMs: DurationMs): PaceRates {
  const { polling, actionReserve } = allowanceOf(requests, reserve, 0);
  return { polling, evenPace: evenRate(polling, windowMs), actionPace: actionRate(polling, actionReserve, windowMs) };
}
