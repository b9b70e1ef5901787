import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { CategoryAccount, Ledger, Permit } from "./account.ts";
import { limitScopeOf } from "./external-usage/external-usage.ts";
import { limitBasisOf } from "./gateway-limit.ts";
import { learnFromAnswer, learnFromRejection } from "./learned-limit.ts";
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

/** Maximum backoff: a random part of 1 s, doubled with each 429 in a row. A longer Retry-After takes precedence. */
const BACKOFF_MS_MAX: DurationMs = 5 * MINUTE_MS;
/** Maximum Retry-After: the length of a month. Anything longer is taken for a fault. */
const RETRY_AFTER_MS_MAX: DurationMs = 31 * DAY_MS;
/** Maximum wait after a 5xx with Retry-After: an overloaded service may recover earlier. */
const OVERLOAD_MS_MAX: DurationMs = 15 * MINUTE_MS;

/** Maximum hold of routes that a 429 may not concern. */
const UNCERTAIN_HOLD_MS_MAX: DurationMs = 5 * MINUTE_MS;

/** A 429. */
export interface Rejection {
  readonly reading: LimitReading | null;
  /** Null: not stated. */
  readonly retryAfterMs: DurationMs | null;
  /** Whether headers explain it: see {@link headersExplainRejection}. */
  readonly isExplained: boolean;
  /** Random number from 0 to 1 for the backoff. */
  readonly jitter: number;
}

/** Records a response other than 429. `retryAfterMs`: wait requested by an overloaded service; null: none. */
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

/** Records a 429: holds what it may concern, and lowers the learned limit if headers do not explain it. */
export function recordTooManyRequests(ledger: Ledger, permit: Permit, rejection: Rejection, now: MonotonicMs): void {
  const { category, lane, at } = permit;
  const account = ledger.accounts[category];
  const route = account.routes[routeOf(lane)];
  const wasRejectedBefore = account.rejections > 0 ? account.rejectedAt : Number.POSITIVE_INFINITY;
  recordRouteRejected(route, at, now);
  account.lastTriedAt = Math.max(account.lastTriedAt, at);
  // 429s of concurrent calls have the same cause and double the wait once.
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

/** Returns when earlier 429s allow the next call. */
export function rejectedUntil({ accounts, planRejectedUntil }: Ledger, category: Category, lane: Lane): MonotonicMs {
  const { rejectedUntil: ofCategory, uncertainHold, routes } = accounts[category];
  return Math.max(planRejectedUntil, ofCategory, uncertainHold.until, routes[routeOf(lane)].rejectedUntil);
}

/** Wait after this many 429s in a row: the longest of a second, the backoff and Retry-After. */
function rejectionWaitMs({ retryAfterMs, jitter }: Rejection, rejections: number): DurationMs {
  const backoff = Math.min(BACKOFF_MS_MAX, SECOND_MS * 2 ** Math.max(0, Math.min(rejections - 1, 30))) * jitter;
  const asked = retryAfterMs === null ? 0 : Math.min(RETRY_AFTER_MS_MAX, retryAfterMs + ROUNDING_MS);
  return Math.max(SECOND_MS, backoff, asked);
}

const otherRoutesThan = ({ routes }: CategoryAccount, route: RouteHistory): RouteHistory[] =>
  Object.values(routes).filter((each) => each !== route);

/**
 * Holds a category that a 429 may concern, for {@link UNCERTAIN_HOLD_MS_MAX} at most. After such a hold the category stays
 * open for the same time, and until a call was tried, so that one route that always gets 429 cannot stop the others. Returns
 * whether the category is held.
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

/** Prevents a burst after a hold. */
function holdPace(account: CategoryAccount, until: MonotonicMs): void {
  account.pace.paidUntil = Math.max(account.pace.paidUntil, until);
}

/** Allows one action right after a hold, and spaces the others: how much is available by then is unknown. */
function holdActions(ledger: Ledger, category: Category, until: MonotonicMs): void {
  const account = ledger.accounts[category];
  holdPace(account, until);
  const { actionPace: actions } = categoryPaceRates(ledger.limits, category);
  account.actions.paidUntil = Math.max(account.actions.paidUntil, until + (actions.capacity - 1) * actions.costMs);
}

/** Whether headers say that a 429 concerns its category alone. Without headers it may concern the whole account. */
const isCategoryLimit = (
  { limits, externalUsage }: Ledger,
  category: Category,
  reading: LimitReading | null,
): boolean =>
  reading !== null &&
  reading.limit === limits.categories[category].requests &&
  limitScopeOf(externalUsage, limits, category, reading.limit) === category;

/** Whether headers explain a 429: nothing remains of a limit that is configured or was stated before. */
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
