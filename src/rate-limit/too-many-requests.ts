import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { limitScopeOf } from "./external-usage/external-usage.ts";
import { learnFromAnswer, learnFromRejection, limitBasisOf } from "./learned-limit.ts";
import type { CategoryState, Ledger, Permit } from "./ledger.ts";
import { CATEGORIES, type Category, type Lane } from "./limits.ts";
import { isRejectedAlone, recordRouteAnswered, recordRouteRejected, routeOf } from "./route-rejections.ts";
import { type LimitReading, ROUNDING_MS } from "./stated-limit.ts";
import { categoryPaceRates } from "./window-pace.ts";

/**
 * Maximum backoff. It starts at 1 s and is doubled with each 429 in a row, with full jitter. A longer Retry-After takes
 * precedence.
 */
const BACKOFF_MS_MAX: DurationMs = 5 * MINUTE_MS;
/**
 * Maximum hold. After a longer Retry-After, such as until the end of a month whose calls are used up, a call is sent
 * earlier, because the limit may have been raised.
 */
export const HOLD_MS_MAX: DurationMs = 6 * HOUR_MS;
/** Maximum wait after a 5xx with Retry-After, since an overloaded service may recover earlier. */
const OVERLOAD_MS_MAX: DurationMs = 15 * MINUTE_MS;

/** Maximum hold of routes that a 429 may not concern. */
const UNCERTAIN_HOLD_MS_MAX: DurationMs = 5 * MINUTE_MS;

/**
 * Records a response other than 429. `retryAfterMs` is the wait requested by an overloaded service, or null if there is
 * none.
 */
export function recordAnswer(
  ledger: Ledger,
  { category, lane, at }: Permit,
  retryAfterMs: DurationMs | null,
  now: MonotonicMs,
): void {
  const state = ledger.categories[category];
  recordRouteAnswered(state.routes[routeOf(lane)], at);
  if (at >= state.rejectedAt) state.rejections = 0;
  state.answeredAt = Math.max(state.answeredAt, at);
  state.lastTriedAt = Math.max(state.lastTriedAt, at);
  learnFromAnswer(state.learned, at, limitBasisOf(ledger, category), now);
  if (retryAfterMs === null) return;
  state.heldUntil = Math.max(state.heldUntil, now + Math.min(OVERLOAD_MS_MAX, retryAfterMs + ROUNDING_MS));
}

/**
 * Records a 429. Holds the calls that it may concern, and lowers the learned limit if headers do not explain it and it
 * does not concern a single route. `retryAfterMs` is the stated wait, or null if there is none; `jitter`, 0 to 1,
 * randomizes the backoff. `policy/episodes/episode.ts` decides what follows for an action that was answered 429.
 */
export function recordTooManyRequests(
  ledger: Ledger,
  permit: Permit,
  { reading, retryAfterMs }: { readonly reading: LimitReading | null; readonly retryAfterMs: DurationMs | null },
  jitter: number,
  now: MonotonicMs,
): void {
  const { category, lane, at } = permit;
  const state = ledger.categories[category];
  const route = state.routes[routeOf(lane)];
  recordRouteRejected(route, at, now);
  const isExplained = headersExplainRejection(ledger, category, reading);
  const scope = rejectionScopeOf(ledger, permit, reading, isExplained);
  state.lastTriedAt = Math.max(state.lastTriedAt, at);
  // 429s of concurrent calls have the same cause, so they double the wait only once.
  if (at >= state.rejectedAt) {
    state.rejections++;
    state.rejectedAt = now;
  }
  route.heldUntil = Math.max(route.heldUntil, now + rejectionWaitMs(retryAfterMs, route.rejectionsInRow, jitter));
  if (scope === "route") return;
  const until = now + rejectionWaitMs(retryAfterMs, state.rejections, jitter);
  if (isExplained) {
    // Only the month's limit has a longer window than a minute (spec, section 8), so a longer wait may concern only the
    // route.
    const isMonth = reading?.limit === ledger.limits.plan.callsPerMonth;
    const othersUntil = isMonth ? until : Math.min(until, now + UNCERTAIN_HOLD_MS_MAX);
    if (scope === "all") ledger.planHeldUntil = Math.max(ledger.planHeldUntil, othersUntil);
    holdCategory(ledger, category, othersUntil);
    return;
  }
  const isHeld = holdUncertain(state, until, now);
  if (lane === "action") spaceActions(ledger, category, until);
  else if (isHeld) spaceActions(ledger, category, state.uncertainHold.until);
  if (scope === "all") for (const other of otherCategories(ledger, category)) holdUncertain(other, until, now);
  const basis = limitBasisOf(ledger, category);
  const callsMade = ledger.externalUsage[category].ownRecentCalls(basis.windowMs, now);
  const rejection = { sentAt: at, callsMade, othersAnsweredAt: othersAnsweredAt(ledger, category) };
  learnFromRejection(state.learned, rejection, basis, now);
}

/** Holds all calls of a category. */
export function holdCategory(ledger: Ledger, category: Category, until: MonotonicMs): void {
  const state = ledger.categories[category];
  state.heldUntil = Math.max(state.heldUntil, until);
  spaceActions(ledger, category, until);
}

/**
 * Returns which calls a 429 may concern: those of its route, those of its category, or all. `isExplained` is the result of
 * {@link headersExplainRejection}. Call it once the route has counted the 429, and before the category has.
 */
function rejectionScopeOf(
  ledger: Ledger,
  { category, lane }: Permit,
  reading: LimitReading | null,
  isExplained: boolean,
): "route" | "category" | "all" {
  const state = ledger.categories[category];
  const route = state.routes[routeOf(lane)];
  const routes = Object.values(state.routes);
  const otherRoutes = routes.filter((other) => other !== route);
  if (!isExplained && isRejectedAlone([route], otherRoutes)) return "route";
  const haveOthersSucceeded = state.rejections > 0 && othersAnsweredAt(ledger, category) > state.rejectedAt;
  const routesOfOthers = otherCategories(ledger, category).flatMap((other) => Object.values(other.routes));
  const concernsCategory =
    isCategoryLimit(ledger, category, reading) || haveOthersSucceeded || isRejectedAlone(routes, routesOfOthers);
  return concernsCategory ? "category" : "all";
}

/** Returns the states of the categories other than `category`. */
const otherCategories = ({ categories }: Ledger, category: Category): readonly CategoryState[] =>
  CATEGORIES.filter((other) => other !== category).map((other) => categories[other]);

/** Returns when the last answered call of another category was sent. */
const othersAnsweredAt = (ledger: Ledger, category: Category): MonotonicMs =>
  Math.max(...otherCategories(ledger, category).map(({ answeredAt }) => answeredAt));

/**
 * Returns whether headers say that a 429 concerns only its category. Without headers it may concern the whole account.
 */
const isCategoryLimit = (ledger: Ledger, category: Category, reading: LimitReading | null): boolean =>
  reading !== null &&
  reading.limit === ledger.limits.categories[category].requests &&
  limitScopeOf(ledger, category, reading.limit) === category;

/**
 * Returns whether headers explain a 429, because nothing remains of a limit that is configured or that the last response
 * stated. If only 429s state a limit, calls are paced by what is learned from them.
 */
export function headersExplainRejection(
  { limits, categories }: Ledger,
  category: Category,
  reading: LimitReading | null,
): boolean {
  if (reading === null || reading.remaining > 0) return false;
  const { requestsPerMinute, concurrentRequests, callsPerMonth } = limits.plan;
  const known = [limits.categories[category].requests, requestsPerMinute, concurrentRequests, callsPerMonth];
  const { wasStated, stated } = categories[category];
  return known.includes(reading.limit) || (wasStated && stated.lastStatement?.limit === reading.limit);
}

/**
 * Ends the holds of earlier 429s and 5xx within a window, because a changed configuration may have removed their cause. If
 * it did not, the next call shows it. Calls continue at the even pace. Shorter holds stay as they are.
 */
export function endHolds(ledger: Ledger, now: MonotonicMs): void {
  ledger.planHeldUntil = Math.min(ledger.planHeldUntil, now + MINUTE_MS);
  for (const category of CATEGORIES) {
    const state = ledger.categories[category];
    const latest = now + ledger.limits.categories[category].windowMs;
    for (const held of [state, ...Object.values(state.routes)]) held.heldUntil = Math.min(held.heldUntil, latest);
    state.uncertainHold.until = Math.min(state.uncertainHold.until, latest);
    state.pace.paidUntil = Math.min(state.pace.paidUntil, latest);
    state.pace.actionsPaidUntil = Math.min(state.pace.actionsPaidUntil, latest);
  }
}

/** Returns when earlier 429s, and the Retry-After of earlier 5xx, allow the next call. */
export function heldUntil({ categories, planHeldUntil }: Ledger, category: Category, lane: Lane): MonotonicMs {
  const state = categories[category];
  const route = state.routes[routeOf(lane)];
  return Math.max(planHeldUntil, state.heldUntil, state.uncertainHold.until, route.heldUntil);
}

/** Returns the wait after this many 429s in a row, which is the longest of a second, the backoff and Retry-After. */
function rejectionWaitMs(retryAfterMs: DurationMs | null, rejections: number, jitter: number): DurationMs {
  const backoff = Math.min(BACKOFF_MS_MAX, SECOND_MS * 2 ** Math.max(0, Math.min(rejections - 1, 30))) * jitter;
  const requested = retryAfterMs === null ? 0 : Math.min(HOLD_MS_MAX, retryAfterMs + ROUNDING_MS);
  return Math.max(SECOND_MS, backoff, requested);
}

/**
 * Holds a category that a 429 may concern, for {@link UNCERTAIN_HOLD_MS_MAX} at most. After such a hold the category
 * stays available for the same time, and until a call was tried, so that a route that always gets 429 can't stop the
 * others. Returns whether the category is held.
 */
function holdUncertain(state: CategoryState, until: MonotonicMs, now: MonotonicMs): boolean {
  const { uncertainHold } = state;
  if (now >= uncertainHold.until) {
    const wasHeld = uncertainHold.until !== Number.NEGATIVE_INFINITY;
    const heldMs = uncertainHold.until - uncertainHold.at;
    if (wasHeld && (now < uncertainHold.until + heldMs || state.lastTriedAt < uncertainHold.until)) return false;
    uncertainHold.at = now;
  }
  uncertainHold.until = Math.max(uncertainHold.until, Math.min(until, uncertainHold.at + UNCERTAIN_HOLD_MS_MAX));
  return true;
}

/** Allows one action right after a hold and spaces the others, since it is unknown how many calls will remain. */
function spaceActions(ledger: Ledger, category: Category, until: MonotonicMs): void {
  const state = ledger.categories[category];
  const { costMs, capacity } = categoryPaceRates(ledger.limits, category).actionPace;
  state.pace.actionsPaidUntil = Math.max(state.pace.actionsPaidUntil, until + (capacity - 1) * costMs);
}
