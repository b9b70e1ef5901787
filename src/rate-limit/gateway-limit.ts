import type { MonotonicMs } from "../model/time.ts";
import {
  currentLearnedLimit,
  hasLearnedLimit,
  type LimitBasis,
  learnedLimitAvailableAt,
  payLearnedLimit,
} from "./learned-limit.ts";
import type { Ledger } from "./ledger.ts";
import { CATEGORIES, type Category, type Lane, pollingCallsPerWindow } from "./limits.ts";

/** Returns the maximum and the window of the learned limit of `category`. */
export const limitBasisOf = ({ limits }: Ledger, category: Category): LimitBasis => ({
  maximum: pollingCallsPerWindow(limits, category),
  windowMs: limits.categories[category].windowMs,
});

/** Returns the limit learned from 429s in `category`, in calls per window, or null if there is none. */
export function learnedLimitOf(ledger: Ledger, category: Category, now: MonotonicMs): number | null {
  const { learned } = ledger.categories[category];
  return hasLearnedLimit(learned) ? currentLearnedLimit(learned, limitBasisOf(ledger, category), now) : null;
}

/** Returns when the learned limits allow the next call. */
export function gatewayAvailableAt(ledger: Ledger, category: Category, lane: Lane): MonotonicMs {
  const availableAt = learnedLimitAvailableAt(ledger.categories[category].learned, lane);
  return hasGatewayLimit(ledger) ? Math.max(availableAt, ledger.gatewayPaidUntil) : availableAt;
}

/** Charges a call to the learned limits. */
export function payGatewayLimit(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): void {
  payLearnedLimit(ledger.categories[category].learned, lane, limitBasisOf(ledger, category), now);
  if (hasGatewayLimit(ledger))
    ledger.gatewayPaidUntil = Math.max(ledger.gatewayPaidUntil, now) + 1 / gatewayRate(ledger, now);
}

const hasGatewayLimit = ({ categories }: Ledger): boolean =>
  CATEGORIES.some((category) => hasLearnedLimit(categories[category].learned));

/** Returns the calls per millisecond over all categories. */
function gatewayRate(ledger: Ledger, now: MonotonicMs): number {
  return CATEGORIES.reduce((sum, category) => {
    const { maximum, windowMs } = limitBasisOf(ledger, category);
    return sum + (learnedLimitOf(ledger, category, now) ?? maximum) / windowMs;
  }, 0);
}
