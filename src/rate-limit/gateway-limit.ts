import type { MonotonicMs } from "../model/time.ts";
import { type Ceiling, hasLearned, learnedLimit, learnedOpensAt, payLearned } from "./learned-limit.ts";
import type { Ledger } from "./ledger.ts";
import { CATEGORIES, type Category, type Lane } from "./limits.ts";
import { payPace } from "./pacing.ts";
import { categoryTerms } from "./pace-rates.ts";

/** What the learned limit of `category` is measured against. */
export const ceilingOf = ({ limits }: Ledger, category: Category): Ceiling => ({
  most: categoryTerms(limits, category).polling,
  windowMs: limits.categories[category].windowMs,
});

/** Returns the limit that was learned from refusals in `category`, in calls a window; null: none was. */
export function learnedOf(ledger: Ledger, category: Category, now: MonotonicMs): number | null {
  const { learned } = ledger.accounts[category];
  return hasLearned(learned) ? learnedLimit(learned, ceilingOf(ledger, category), now) : null;
}

/** Returns the first moment at which what limits calls in front of the service lets one go, as far as was learned. */
export function frontOpensAt(ledger: Ledger, category: Category, lane: Lane): MonotonicMs {
  const opensAt = learnedOpensAt(ledger.accounts[category].learned, lane);
  return isLimitedInFront(ledger) ? Math.max(opensAt, ledger.front.paidAt) : opensAt;
}

/** Pays for a call where something in front of the service limits calls. */
export function payFront(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): void {
  payLearned(ledger.accounts[category].learned, lane, ceilingOf(ledger, category), now);
  if (isLimitedInFront(ledger)) payPace(ledger.front, { costMs: 1 / rateInFront(ledger, now), capacity: 1 }, now);
}

const isLimitedInFront = ({ accounts }: Ledger): boolean =>
  CATEGORIES.some((category) => hasLearned(accounts[category].learned));

/** Calls a millisecond over all categories. */
function rateInFront(ledger: Ledger, now: MonotonicMs): number {
  return CATEGORIES.reduce((sum, category) => {
    const { most, windowMs } = ceilingOf(ledger, category);
    return sum + (learnedOf(ledger, category, now) ?? most) / windowMs;
  }, 0);
}
