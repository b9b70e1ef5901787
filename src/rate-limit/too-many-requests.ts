import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { limitScopeOf } from "./external-usage/external-usage.ts";
import { limitBasisOf } from "./gateway-limit.ts";
import { learnFromAnswer, learnFromRejection } from "./learned-limit.ts";
import type { CategoryAccount, Ledger, Permit } from "./ledger.ts";
import { type LimitReading, ROUNDING_MS } from "./limit-headers.ts";
import { CATEGORIES, type Category, type Lane } from "./limits.ts";
import { categoryPaceRates } from "./pace-rates.ts";
import {
  isRejectedAlone,
  type RouteHistory,
  recordRouteAnswered,
  recordRouteRejected,
  routeOf,
} from "./route-rejections.ts";

/** A refusal waits for a random part of 1 s, then of twice as long each time, up to this; or for a longer Retry-After. */
const BACKOFF_MS_MAX: DurationMs = 5 * MINUTE_MS;
/** No Retry-After is believed beyond this: a spent month is waited for, a longer wait is a fault and no limit. */
const RETRY_AFTER_MS_MAX: DurationMs = 31 * DAY_MS;
/** The Retry-After of a 5xx holds its category no longer than this: what is overloaded may recover sooner than it says. */
const OVERLOAD_MS_MAX: DurationMs = 15 * MINUTE_MS;

/** A refusal that may or may not concern other routes holds them no longer than this at a time. */
const UNCERTAIN_HOLD_MS_MAX: DurationMs = 5 * MINUTE_MS;

/** A 429. */
export interface Rejection {
  readonly reading: LimitReading | null;
  /** Null: it names no wait. */
  readonly retryAfterMs: DurationMs | null;
  /** Whether headers explain it: see {@link headersExplainRejection}. */
  readonly isExplained: boolean;
  /** In [0, 1): spreads the backoff. */
  readonly jitter: number;
}

/** Takes in an answer other than 429. `retryAfterMs`: how long an overloaded service asks to be left alone; null: not at all. */
export function recordAnswer(
  ledger: Ledger,
  { category, lane, at }: Permit,
  retryAfterMs: DurationMs | null,
  now: MonotonicMs,
): void {
  const account = ledger.accounts[category];
  recordRouteAnswered(account.routes[routeOf(lane)], at);
  if (at >= account.rejectedAt) account.rejections = 0;
  account.answeredAt = Math.max(account.answeredAt, at);
  account.lastTriedAt = Math.max(account.lastTriedAt, at);
  learnFromAnswer(account.learned, at, limitBasisOf(ledger, category), now);
  if (retryAfterMs === null) return;
  account.rejectedUntil = Math.max(account.rejectedUntil, now + Math.min(OVERLOAD_MS_MAX, retryAfterMs + ROUNDING_MS));
  holdPace(account, account.rejectedUntil);
}

/** Takes in a 429: holds what it may concern, and learns from it where headers don't explain it. */
export function recordTooManyRequests(ledger: Ledger, permit: Permit, rejection: Rejection, now: MonotonicMs): void {
  const { category, lane, at } = permit;
  const account = ledger.accounts[category];
  const route = account.routes[routeOf(lane)];
  const wasRejectedBefore = account.rejections > 0 ? account.rejectedAt : Number.POSITIVE_INFINITY;
  recordRouteRejected(route, at, now);
  account.lastTriedAt = Math.max(account.lastTriedAt, at);
  // Calls that were under way together are refused for one and the same reason: they double the wait once.
  if (at >= account.rejectedAt) {
    account.rejections++;
    account.rejectedAt = now;
  }
  route.rejectedUntil = Math.max(route.rejectedUntil, now + rejectionWaitMs(rejection, route.rejectionsInRow));
  if (!rejection.isExplained && isRejectedAlone([route], otherRoutesThan(account, route))) return;
  const otherRoutes = CATEGORIES.filter((other) => other !== category).map((other) => ledger.accounts[other]);
  const otherRoutesAnsweredAt = Math.max(...otherRoutes.map(({ answeredAt }) => answeredAt));
  const isOfOne =
    isCategoryLimit(ledger, category, rejection.reading) ||
    otherRoutesAnsweredAt > wasRejectedBefore ||
    isRejectedAlone(
      Object.values(account.routes),
      otherRoutes.flatMap(({ routes }) => Object.values(routes)),
    );
  const until = now + rejectionWaitMs(rejection, account.rejections);
  if (rejection.isExplained) {
    account.rejectedUntil = Math.max(account.rejectedUntil, until);
    if (!isOfOne) ledger.planRejectedUntil = Math.max(ledger.planRejectedUntil, until);
    holdActions(ledger, category, until);
    return;
  }
  if (holdUncertain(account, until, now) || lane === "action") holdActions(ledger, category, until);
  if (!isOfOne) for (const other of otherRoutes) holdUncertain(other, until, now);
  const basis = limitBasisOf(ledger, category);
  const callsMade = ledger.externalUsage[category].ownRecentCalls(basis.windowMs, now);
  learnFromRejection(account.learned, { sentAt: at, callsMade, otherRoutesAnsweredAt }, basis, now);
}

/** Returns the first moment at which earlier refusals let a call go. */
export function rejectedUntil(
  { accounts, planRejectedUntil: planRefusedUntil }: Ledger,
  category: Category,
  lane: Lane,
): MonotonicMs {
  const { rejectedUntil: ofCategory, uncertainHold, routes } = accounts[category];
  return Math.max(planRefusedUntil, ofCategory, uncertainHold.until, routes[routeOf(lane)].rejectedUntil);
}

/** The wait after so many refusals in a row: at least a second, the backoff, and what the refusal names. */
function rejectionWaitMs({ retryAfterMs, jitter }: Rejection, rejections: number): DurationMs {
  const backoff = Math.min(BACKOFF_MS_MAX, SECOND_MS * 2 ** Math.max(0, Math.min(rejections - 1, 30))) * jitter;
  const asked = retryAfterMs === null ? 0 : Math.min(RETRY_AFTER_MS_MAX, retryAfterMs + ROUNDING_MS);
  return Math.max(SECOND_MS, backoff, asked);
}

const otherRoutesThan = ({ routes }: CategoryAccount, route: RouteHistory): RouteHistory[] =>
  Object.values(routes).filter((each) => each !== route);

/**
 * Holds a category that a refusal may concern, for {@link UNCERTAIN_HOLD_MS_MAX} at most. After such a hold the category stays
 * open for as long, and until a call was tried: a route that is always refused can't stop the others. Returns whether the
 * category is held.
 */
function holdUncertain(account: CategoryAccount, until: MonotonicMs, now: MonotonicMs): boolean {
  const { uncertainHold } = account;
  if (now >= uncertainHold.until) {
    const wasHeld = uncertainHold.until !== Number.NEGATIVE_INFINITY;
    if (wasHeld && (now < 2 * uncertainHold.until - uncertainHold.at || account.lastTriedAt < uncertainHold.until))
      return false;
    uncertainHold.at = now;
  }
  uncertainHold.until = Math.max(uncertainHold.until, Math.min(until, uncertainHold.at + UNCERTAIN_HOLD_MS_MAX));
  holdPace(account, uncertainHold.until);
  return true;
}

/** After a hold not everything goes at once. */
function holdPace(account: CategoryAccount, until: MonotonicMs): void {
  account.pace.paidUntil = Math.max(account.pace.paidUntil, until);
}

/** One action may go as soon as a hold is over, and no more at once: how much has been freed by then is unknown. */
function holdActions(ledger: Ledger, category: Category, until: MonotonicMs): void {
  const account = ledger.accounts[category];
  holdPace(account, until);
  const { actionPace: actions } = categoryPaceRates(ledger.limits, category);
  account.actions.paidUntil = Math.max(account.actions.paidUntil, until + (actions.capacity - 1) * actions.costMs);
}

/** Whether headers say that a refusal concerns its category alone. One that states nothing may concern the whole account. */
const isCategoryLimit = (
  { limits, externalUsage }: Ledger,
  category: Category,
  reading: LimitReading | null,
): boolean =>
  reading !== null &&
  reading.limit === limits.categories[category].requests &&
  limitScopeOf(externalUsage, limits, category, reading.limit) === category;

/** Whether headers explain a refusal: nothing is left of a limit that is configured, or that answers stated before it. */
export function headersExplainRejection(
  { limits, accounts }: Ledger,
  category: Category,
  reading: LimitReading | null,
): boolean {
  if (reading === null || reading.remaining > 0) return false;
  const { requestsPerMinute, concurrentRequests, callsPerMonth } = limits.plan;
  const known = [limits.categories[category].requests, requestsPerMinute, concurrentRequests, callsPerMonth];
  return [...known, accounts[category].headers.lastStatement?.limit].includes(reading.limit);
}
