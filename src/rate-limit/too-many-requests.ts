import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { ceilingOf } from "./gateway-limit.ts";
import { learnAnswered, learnRefused } from "./learned-limit.ts";
import type { Account, Ledger, Permit } from "./ledger.ts";
import { CATEGORIES, type Category, type Lane } from "./limits.ts";
import { scopeOf } from "./external-usage/external-usage.ts";
import { noteAnswered, noteRefused, type RouteRecord, refusesAlone, routeOf } from "./route-rejections.ts";
import { categoryTerms } from "./pace-rates.ts";
import { type Reading, ROUNDING_MS } from "./limit-headers.ts";

/** A refusal waits for a random part of 1 s, then of twice as long each time, up to this; or for a longer Retry-After. */
const BACKOFF_MS_MAX: DurationMs = 5 * MINUTE_MS;
/** No Retry-After is believed beyond this: a spent month is waited for, a longer wait is a fault and no limit. */
const RETRY_AFTER_MS_MAX: DurationMs = 31 * DAY_MS;
/** The Retry-After of a 5xx holds its category no longer than this: what is overloaded may recover sooner than it says. */
const OVERLOAD_MS_MAX: DurationMs = 15 * MINUTE_MS;

/** A refusal that may or may not concern other routes holds them no longer than this at a time. */
const DOUBT_MS_MAX: DurationMs = 5 * MINUTE_MS;

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
  { category, lane, at }: Permit,
  retryAfterMs: DurationMs | null,
  now: MonotonicMs,
): void {
  const account = ledger.accounts[category];
  noteAnswered(account.routes[routeOf(lane)], at);
  if (at >= account.refusedAt) account.refusals = 0;
  account.answeredAt = Math.max(account.answeredAt, at);
  account.triedAt = Math.max(account.triedAt, at);
  learnAnswered(account.learned, at, ceilingOf(ledger, category), now);
  if (retryAfterMs === null) return;
  account.refusedUntil = Math.max(account.refusedUntil, now + Math.min(OVERLOAD_MS_MAX, retryAfterMs + ROUNDING_MS));
  holdPace(account, account.refusedUntil);
}

/** Takes in a 429: holds what it may concern, and learns from it where headers don't explain it. */
export function settleRefused(ledger: Ledger, permit: Permit, refusal: Refusal, now: MonotonicMs): void {
  const { category, lane, at } = permit;
  const account = ledger.accounts[category];
  const route = account.routes[routeOf(lane)];
  const wasRefused = account.refusals > 0 ? account.refusedAt : Number.POSITIVE_INFINITY;
  noteRefused(route, at, now);
  account.triedAt = Math.max(account.triedAt, at);
  // Calls that were under way together are refused for one and the same reason: they double the wait once.
  if (at >= account.refusedAt) {
    account.refusals++;
    account.refusedAt = now;
  }
  route.refusedUntil = Math.max(route.refusedUntil, now + waitOf(refusal, route.refusals));
  if (!refusal.isExplained && refusesAlone([route], routesBut(account, route))) return;
  const others = CATEGORIES.filter((other) => other !== category).map((other) => ledger.accounts[other]);
  const othersAnsweredAt = Math.max(...others.map(({ answeredAt }) => answeredAt));
  const isOfOne =
    isOfCategory(ledger, category, refusal.reading) ||
    othersAnsweredAt > wasRefused ||
    refusesAlone(
      Object.values(account.routes),
      others.flatMap(({ routes }) => Object.values(routes)),
    );
  const until = now + waitOf(refusal, account.refusals);
  if (refusal.isExplained) {
    account.refusedUntil = Math.max(account.refusedUntil, until);
    if (!isOfOne) ledger.planRefusedUntil = Math.max(ledger.planRefusedUntil, until);
    holdActions(ledger, category, until);
    return;
  }
  if (holdInDoubt(account, until, now) || lane === "action") holdActions(ledger, category, until);
  if (!isOfOne) for (const other of others) holdInDoubt(other, until, now);
  const ceiling = ceilingOf(ledger, category);
  const made = ledger.others[category].ownLately(ceiling.windowMs, now);
  learnRefused(account.learned, { sentAt: at, made, othersAnsweredAt }, ceiling, now);
}

/** Returns the first moment at which earlier refusals let a call go. */
export function refusedUntil({ accounts, planRefusedUntil }: Ledger, category: Category, lane: Lane): MonotonicMs {
  const { refusedUntil: ofCategory, doubt, routes } = accounts[category];
  return Math.max(planRefusedUntil, ofCategory, doubt.until, routes[routeOf(lane)].refusedUntil);
}

/** The wait after so many refusals in a row: at least a second, the backoff, and what the refusal names. */
function waitOf({ retryAfterMs, jitter }: Refusal, refusals: number): DurationMs {
  const backoff = Math.min(BACKOFF_MS_MAX, SECOND_MS * 2 ** Math.max(0, Math.min(refusals - 1, 30))) * jitter;
  const asked = retryAfterMs === null ? 0 : Math.min(RETRY_AFTER_MS_MAX, retryAfterMs + ROUNDING_MS);
  return Math.max(SECOND_MS, backoff, asked);
}

const routesBut = ({ routes }: Account, route: RouteRecord): RouteRecord[] =>
  Object.values(routes).filter((each) => each !== route);

/**
 * Holds a category that a refusal may concern, for {@link DOUBT_MS_MAX} at most. After such a hold the category stays
 * open for as long, and until a call was tried: a route that is always refused can't stop the others. Returns whether the
 * category is held.
 */
function holdInDoubt(account: Account, until: MonotonicMs, now: MonotonicMs): boolean {
  const { doubt } = account;
  if (now >= doubt.until) {
    const wasHeld = doubt.until !== Number.NEGATIVE_INFINITY;
    if (wasHeld && (now < 2 * doubt.until - doubt.at || account.triedAt < doubt.until)) return false;
    doubt.at = now;
  }
  doubt.until = Math.max(doubt.until, Math.min(until, doubt.at + DOUBT_MS_MAX));
  holdPace(account, doubt.until);
  return true;
}

/** After a hold not everything goes at once. */
function holdPace(account: Account, until: MonotonicMs): void {
  account.pace.paidAt = Math.max(account.pace.paidAt, until);
}

/** One action may go as soon as a hold is over, and no more at once: how much has been freed by then is unknown. */
function holdActions(ledger: Ledger, category: Category, until: MonotonicMs): void {
  const account = ledger.accounts[category];
  holdPace(account, until);
  const { actions } = categoryTerms(ledger.limits, category);
  account.actions.paidAt = Math.max(account.actions.paidAt, until + (actions.capacity - 1) * actions.costMs);
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
