import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { ceilingOf } from "./front.ts";
import { learnAnswered, learnRefused } from "./learned.ts";
import type { Account, Ledger, Permit } from "./ledger.ts";
import { CATEGORIES, type Category } from "./limits.ts";
import { scopeOf } from "./others.ts";
import { categoryTerms } from "./terms.ts";
import { type Reading, ROUNDING_MS } from "./view.ts";

/** A refusal waits for a random part of 1 s, then of twice as long each time, up to this; or for a longer Retry-After. */
const BACKOFF_MS_MAX: DurationMs = 5 * MINUTE_MS;
/** No Retry-After is believed beyond this: a spent month is waited for, a longer wait is a fault and no limit. */
const RETRY_AFTER_MS_MAX: DurationMs = 31 * DAY_MS;
/** The Retry-After of a 5xx holds its category no longer than this: what is overloaded may recover sooner than it says. */
const OVERLOAD_MS_MAX: DurationMs = 15 * MINUTE_MS;

/** A 429. */
export interface Refusal {
  readonly reading: Reading | null;
  /** Null: it names no wait. */
  readonly retryAfterMs: DurationMs | null;
  /** Whether headers explain it: see {@link explainsRefusal}. */
  readonly isExplained: boolean;
  /** In [0, 1): spreads the backoff. */
  readonly jitter: number;
}

/** Takes in an answer other than 429. `retryAfterMs`: how long an overloaded service asks to be left alone; null: not at all. */
export function settleAnswered(
  ledger: Ledger,
  { category, at }: Permit,
  retryAfterMs: DurationMs | null,
  now: MonotonicMs,
): void {
  const account = ledger.accounts[category];
  if (at >= account.refusedAt) account.refusals = 0;
  account.answeredAt = Math.max(account.answeredAt, at);
  learnAnswered(account.learned, at, ceilingOf(ledger, category), now);
  if (retryAfterMs !== null) holdUntil(account, now + Math.min(OVERLOAD_MS_MAX, retryAfterMs + ROUNDING_MS));
}

/** Takes in a 429: holds what it may concern, and learns from it where headers don't explain it. */
export function settleRefused(ledger: Ledger, { category, at }: Permit, refusal: Refusal, now: MonotonicMs): void {
  const account = ledger.accounts[category];
  const othersAnsweredAt = Math.max(
    ...CATEGORIES.map((other) => (other === category ? Number.NEGATIVE_INFINITY : ledger.accounts[other].answeredAt)),
  );
  const isOwn =
    isOfCategory(ledger, category, refusal.reading) || (account.refusals > 0 && othersAnsweredAt > account.refusedAt);
  // Calls that were under way together are refused for one and the same reason: they double the wait once.
  if (at >= account.refusedAt) {
    account.refusals++;
    account.refusedAt = now;
  }
  const backoff = Math.min(BACKOFF_MS_MAX, SECOND_MS * 2 ** Math.min(account.refusals - 1, 30)) * refusal.jitter;
  const asked = refusal.retryAfterMs === null ? 0 : Math.min(RETRY_AFTER_MS_MAX, refusal.retryAfterMs + ROUNDING_MS);
  holdUntil(account, now + Math.max(SECOND_MS, backoff, asked));
  // One action may go as soon as the wait is over, and no more at once: how much was freed by then nobody said.
  const { actions } = categoryTerms(ledger.limits, category);
  const spent = account.refusedUntil + (actions.capacity - 1) * actions.costMs;
  account.actions.paidAt = Math.max(account.actions.paidAt, spent);
  if (!isOwn) ledger.planRefusedUntil = Math.max(ledger.planRefusedUntil, account.refusedUntil);
  if (refusal.isExplained) return;
  const ceiling = ceilingOf(ledger, category);
  const made = ledger.others[category].ownLately(ceiling.windowMs, now);
  learnRefused(account.learned, { sentAt: at, made, othersAnsweredAt }, ceiling, now);
}

/** Nothing of the category goes before `until`, and afterwards not everything at once. */
function holdUntil(account: Account, until: MonotonicMs): void {
  account.refusedUntil = Math.max(account.refusedUntil, until);
  account.pace.paidAt = Math.max(account.pace.paidAt, account.refusedUntil);
}

/** Whether headers say that a refusal concerns its category alone. One that states nothing may concern the whole account. */
const isOfCategory = ({ limits, others }: Ledger, category: Category, reading: Reading | null): boolean =>
  reading !== null &&
  reading.limit === limits.categories[category].requests &&
  scopeOf(others, limits, category, reading.limit) === category;

/** Whether headers explain a refusal: nothing is left of a limit that is configured, or that answers stated before it. */
export function explainsRefusal({ limits, accounts }: Ledger, category: Category, reading: Reading | null): boolean {
  if (reading === null || reading.remaining > 0) return false;
  const { requestsPerMinute, concurrentRequests, callsPerMonth } = limits.plan;
  const known = [limits.categories[category].requests, requestsPerMinute, concurrentRequests, callsPerMonth];
  return [...known, accounts[category].view.stated?.limit].includes(reading.limit);
}
