import type { MonotonicMs } from "../model/time.ts";
import {
  currentLearnedLimit,
  hasLearnedLimit,
  type LimitBasis,
  learnedLimitAvailableAt,
  payLearnedLimit,
} from "./learned-limit.ts";
import type { Ledger } from "./ledger.ts";
import { CATEGORIES, type Category, type Lane } from "./limits.ts";
import { categoryPaceRates } from "./pace-rates.ts";
import { payForCall } from "./pacing.ts";

/** What the learned limit of `category` is measured against. */
export const limitBasisOf = ({ limits }: Ledger, category: Category): LimitBasis => ({
  most: categoryPaceRates(limits, category).polling,
  windowMs: limits.categories[category].windowMs,
});

/** Returns the limit that was learned from refusals in `category`, in calls a window; null: none was. */
export function learnedLimitOf(ledger: Ledger, category: Category, now: MonotonicMs): number | null {
  const { learned } = ledger.accounts[category];
  return hasLearnedLimit(learned) ? currentLearnedLimit(learned, limitBasisOf(ledger, category), now) : null;
}

/** Returns the first moment at which what limits calls in front of the service lets one go, as far as was learned. */
export function gatewayAvailableAt(ledger: Ledger, category: Category, lane: Lane): MonotonicMs {
  const opensAt = learnedLimitAvailableAt(ledger.accounts[category].learned, lane);
  return hasGatewayLimit(ledger) ? Math.max(opensAt, ledger.gatewayPace.paidUntil) : opensAt;
}

/** Pays for a call where something in front of the service limits calls. */
export function payGatewayLimit(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): void {
  payLearnedLimit(ledger.accounts[category].learned, lane, limitBasisOf(ledger, category), now);
  if (hasGatewayLimit(ledger))
    payForCall(ledger.gatewayPace, { costMs: 1 / gatewayRate(ledger, now), capacity: 1 }, now);
}

const hasGatewayLimit = ({ accounts }: Ledger): boolean =>
  CATEGORIES.some((category) => hasLearnedLimit(accounts[category].learned));

/** Calls a millisecond over all categories. */
function gatewayRate(ledger: Ledger, now: MonotonicMs): number {
  return CATEGORIES.reduce((sum, category) => {
    const { most, windowMs } = limitBasisOf(ledger, category);
    return sum + (learnedLimitOf(ledger, category, now) ?? most) / windowMs;
  }, 0);
}
