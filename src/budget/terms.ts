import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import { allowanceOf, type Category, type Limits } from "./limits.ts";
import { actionRate, evenRate, type PaceRate } from "./pace.ts";

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
export function categoryTerms(limits: Limits, category: Category): Terms {
  const { requests, windowMs } = limits.categories[category];
  return termsOf(requests, limits.reserve, windowMs);
}

/** The terms of the plan over all categories. */
export function planTerms(limits: Limits): Terms {
  const requests = limits.plan.requestsPerMinute;
  return requests === null ? FREE : termsOf(requests, limits.reserve, MINUTE_MS);
}

function termsOf(requests: number, reserve: Share, windowMs: DurationMs): Terms {
  const { polling, dip } = allowanceOf(requests, reserve, 0);
  return { polling, even: evenRate(polling, windowMs), actions: actionRate(polling, dip, windowMs) };
}
