import type { MonotonicMs } from "../model/time.ts";
import type { Ledger } from "./account.ts";
import {
  currentLearnedLimit,
  hasLearnedLimit,
  type LimitBasis,
  learnedLimitAvailableAt,
  payLearnedLimit,
} from "./learned-limit.ts";
import { CATEGORIES, type Category, type Lane } from "./limits.ts";
import { categoryPaceRates } from "./pace-rates.ts";
import { payForCall } from "./pacing.ts";

/** Upper bound and window of the learned limit of `category`. */
export const limitBasisOf = ({ limits }: Ledger, category: Category): LimitBasis => ({
  most: categoryPaceRates(limits, category).polling,
  windowMs: limits.categories[category].windowMs,
});

/** Returns the limit learned from 429s in `category`, in calls per window; null: none. */
export function learnedLimitOf(ledger: Ledger, category: Category, now: MonotonicMs): number | null {
  const { learned } = ledger.accounts[category];
  return hasLearnedLimit(learned) ? currentLearnedLimit(learned, limitBasisOf(ledger, category), now) : null;
}

/** Returns when the learned limits allow the next call. */
export function gatewayAvailableAt(ledger: Ledger, category: Category, lane: Lane): MonotonicMs {
  const opensAt = learnedLimitAvailableAt(ledger.accounts[category].learned, lane);
  return hasGatewayLimit(ledger) ? Math.max(opensAt, ledger.gatewayPace.paidUntil) : opensAt;
}

/** Charges a call to the learned limits. */
export function payGatewayLimit(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): void {
  payLearnedLimit(ledger.accounts[category].learned, lane, limitBasisOf(ledger, category), now);
  if (hasGatewayLimit(ledger))
    payForCall(ledger.gatewayPace, { costMs: 1 / gatewayRate(ledger, now), capacity: 1 }, now);
}

const hasGatewayLimit = ({ accounts }: Ledger): boolean =>
  CATEGORIES.some((category) => hasLearnedLimit(accounts[category].learned));

/** Calls per millisecond over all categories. */
function gatewayRate(ledger: Ledger, now: MonotonicMs): number {
  return CATEGORIES.reduce((sum, category) => {
    const { most, windowMs } = limitBasisOf(ledger, category);
    return sum + (learnedLimitOf(ledger, category, now) ?? most) / windowMs;
  }, 0);
}
