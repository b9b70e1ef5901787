import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import { allowanceOf, type Category, type Limits } from "./limits.ts";
import type { Scope } from "./external-usage/external-usage.ts";
import { actionRate, evenRate, type PaceRate } from "./pacing.ts";

/** At what paces a limit is spent. */
export interface Terms {
  /** What polling may spend in a window. */
  readonly polling: number;
  readonly even: PaceRate;
  /** What actions keep among themselves. */
  readonly actions: PaceRate;
}

/** What a plan without such a cap has for terms: calls cost nothing. */
const FREE: Terms = { polling: 1, even: { costMs: 0, capacity: 1 }, actions: { costMs: 0, capacity: 1 } };

/** The terms of a category. */
export const categoryTerms = (limits: Limits, category: Category): Terms => allTerms(limits)[category];

/** The terms of the plan over all categories. */
export const planTerms = (limits: Limits): Terms => allTerms(limits).plan;

const known = new WeakMap<Limits, Readonly<Record<Scope, Terms>>>();

/** Asked for at every call, and the same for as long as the limits are. */
function allTerms(limits: Limits): Readonly<Record<Scope, Terms>> {
  const before = known.get(limits);
  if (before !== undefined) return before;
  const { categories, plan, reserve } = limits;
  const ofCategory = (category: Category) =>
    termsOf(categories[category].requests, reserve, categories[category].windowMs);
  const terms = {
    node_management: ofCategory("node_management"),
    session_monitoring: ofCategory("session_monitoring"),
    plan: plan.requestsPerMinute === null ? FREE : termsOf(plan.requestsPerMinute, reserve, MINUTE_MS),
  };
  known.set(limits, terms);
  return terms;
}

function termsOf(requests: number, reserve: Share, windowMs: DurationMs): Terms {
  const { polling, dip } = allowanceOf(requests, reserve, 0);
  return { polling, even: evenRate(polling, windowMs), actions: actionRate(polling, dip, windowMs) };
}
