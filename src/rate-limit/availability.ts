import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import { ABANDONED_MS, concurrencyAvailableAt } from "./concurrent-calls.ts";
import { availableBesideExternalUsage, expectedCallsOfPlan, limitScopeOf } from "./external-usage/external-usage.ts";
import { OBSERVATIONS_PER_WINDOW } from "./external-usage/usage-of-limit.ts";
import { gatewayAvailableAt } from "./learned-limit.ts";
import type { Ledger } from "./ledger.ts";
import {
  actionReserveOf,
  allowanceOf,
  type Category,
  externalFloorOf,
  type Lane,
  pollingCallsPerMonth,
  pollingCallsPerWindow,
  reservedCalls,
} from "./limits.ts";
import { ROUNDING_MS } from "./stated-limit.ts";
import { heldUntil } from "./too-many-requests.ts";
import { categoryPaceRates, paceAvailableAt, planPaceRates } from "./window-pace.ts";

/**
 * Why a call has to wait:
 * - `rate_limited`: earlier 429s, or the Retry-After of an earlier 5xx, hold it.
 * - `learning`: a call in flight will show what remains of the limit of the category.
 * - `learned`: limits that were learned from 429s space calls evenly.
 * - `remaining`: the service states that too few calls remain.
 * - `external_usage`: the calls are left to other users of the key.
 * - `pace` and `plan`: the pace of the category, or of the plan's requests per minute, is used up.
 * - `concurrency`: too many calls are in flight.
 * - `month`: the calls of the month are used up.
 */
type WaitReason =
  | "rate_limited"
  | "learning"
  | "learned"
  | "remaining"
  | "external_usage"
  | "pace"
  | "plan"
  | "concurrency"
  | "month";

/** When a call may be sent, and what delays it until then. */
interface Availability {
  /**
   * Infinity if a call in flight must end, or limits must change, first. What is available may have changed by then, so
   * the call is checked again.
   */
  readonly at: MonotonicMs;
  readonly waitReason: WaitReason | null;
}

/**
 * Share of the polling calls of a window that may be sent at once if the service states that they are available. This
 * does not apply in the first window of a process, or while others use the key. All further calls are spaced evenly,
 * since only responses show external usage.
 */
const STATED_BURST_SHARE = 0.25;
/** Number of times per window that a wait for external usage is recomputed. */
const RECHECKS_PER_WINDOW = 12;
/** Number of calls per window that check what a sliding counter allows while it states no more than the reserve. */
const SLIDING_RECHECKS_PER_WINDOW = 30;

/**
 * Returns when a call of `lane` in `category` may be sent, and what delays it, which is the constraint that opens last.
 */
export function availabilityOf(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Availability {
  const constraints: Availability[] = [
    { at: heldUntil(ledger, category, lane), waitReason: "rate_limited" },
    statedLimitAvailability(ledger, category, lane, now),
    { at: availableBesideExternalUsage(ledger, category, lane, now), waitReason: "external_usage" },
    paceAvailability(ledger, category, lane, now),
    { at: gatewayAvailableAt(ledger, category, lane), waitReason: "learned" },
    planAvailability(ledger, lane, now),
    concurrencyAvailability(ledger, lane, now),
    { at: hasMonthlyBudget(ledger, lane) ? now : Number.POSITIVE_INFINITY, waitReason: "month" },
  ];
  const last = constraints.reduce((latest, constraint) => (constraint.at > latest.at ? constraint : latest));
  if (last.at <= now) return { at: now, waitReason: null };
  // The calls that are expected from other users become fewer over time.
  const isExternal = last.waitReason === "external_usage" || last.waitReason === "remaining";
  if (!isExternal || ledger.externalUsage[category].expectedCalls(now) === 0) return last;
  return { ...last, at: Math.min(last.at, now + ledger.limits.categories[category].windowMs / RECHECKS_PER_WINDOW) };
}

/**
 * Returns whether a call may use the reserve of a limit that the service does not state, which only actions may. They
 * may not in the first window of a process, because the previous process may have done so just before it ended, and a
 * window has room for that only once.
 */
const mayUseReserve = (ledger: Ledger, lane: Lane, windowMs: DurationMs, now: MonotonicMs): boolean =>
  lane === "action" && !isFirstWindow(ledger, windowMs, now);

const isFirstWindow = ({ startedAt }: Ledger, windowMs: DurationMs, now: MonotonicMs): boolean =>
  now - startedAt < windowMs;

/** Returns whether the service states the remaining calls of the category, so that a burst is safe. */
function isLimitStated(ledger: Ledger, category: Category, now: MonotonicMs): boolean {
  const { lastStatement } = ledger.categories[category].stated;
  const { requests, windowMs } = ledger.limits.categories[category];
  // A limit above the category's covers more than the category. It applies, but does not allow bursts.
  return lastStatement !== null && lastStatement.limit <= requests && now - lastStatement.at <= windowMs;
}

function paceAvailability(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Availability {
  const { limits, externalUsage } = ledger;
  const { pace, stated } = ledger.categories[category];
  const { requests, burst, windowMs } = limits.categories[category];
  const expected = externalUsage[category].expectedCalls(now);
  const { actionReserve } = allowanceOf(requests, limits.reserve, expected);
  const rates = categoryPaceRates(limits, category);
  let { capacity } = rates.evenPace;
  if (isLimitStated(ledger, category, now)) {
    const saved = Math.min(burst, stated.remainingAtLeast() ?? 0) - requests;
    const atOnce =
      expected > 0 || isFirstWindow(ledger, windowMs, now)
        ? 0
        : pollingCallsPerWindow(limits, category) * STATED_BURST_SHARE;
    capacity = Math.max(capacity, saved, atOnce) + (lane === "action" ? actionReserve : 0);
  } else if (mayUseReserve(ledger, lane, windowMs, now)) capacity += actionReserve;
  return { at: paceAvailableAt(pace, rates, lane, capacity), waitReason: "pace" };
}

function statedLimitAvailability(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Availability {
  const { stated, wasStated } = ledger.categories[category];
  const { lastStatement } = stated;
  const { own } = ledger.externalUsage[category];
  const { windowMs } = ledger.limits.categories[category];
  const immediately: Availability = { at: now, waitReason: null };
  const aloneInFlight: Availability = {
    at: own.inFlight() === 0 ? now : Number.POSITIVE_INFINITY,
    waitReason: "learning",
  };
  if (lastStatement === null) return own.settledBy(now) > 0 ? immediately : aloneInFlight;
  const { limit, remaining, resetAt, at } = lastStatement;
  if (now - at > windowMs) return wasStated ? aloneInFlight : immediately;
  if ((stated.remainingAtLeast() ?? 0) > callsToLeave(ledger, category, lane, limit, now)) return immediately;
  const expiresAt = at + windowMs + ROUNDING_MS;
  // If almost nothing remains, another user may well be the first to call after the reset.
  const isSpent = remaining <= externalFloorOf(limit);
  // If the remaining calls are reserved for other users, an occasional call shows whether they still need them.
  const provenCalls = ledger.externalUsage[category].callsInWindow(now);
  const isLeftToOtherUsers = !isSpent && remaining + provenCalls > reservedCalls(limit, ledger.limits.reserve);
  const usage = ledger.externalUsage[limitScopeOf(ledger, category, limit)];
  // A sliding counter may count a few more calls than we made in a window, although the pace leaves the reserve.
  const isEstimated = !isSpent && usage.isSlidingCounter();
  const rechecks = isEstimated ? SLIDING_RECHECKS_PER_WINDOW : OBSERVATIONS_PER_WINDOW;
  const recheckAt = isEstimated || isLeftToOtherUsers ? at + windowMs / rechecks : expiresAt;
  const reopensAt = Math.min(isSpent ? expiresAt : (resetAt ?? expiresAt), recheckAt, expiresAt);
  return now < reopensAt ? { at: reopensAt, waitReason: "remaining" } : aloneInFlight;
}

/**
 * Returns how many remaining calls must be left to other users. What they have already used in this window is not
 * reserved again.
 */
function callsToLeave(
  { limits, externalUsage }: Ledger,
  category: Category,
  lane: Lane,
  stated: number,
  now: MonotonicMs,
): number {
  const limit = Math.min(limits.categories[category].requests, stated);
  const usage = externalUsage[category];
  const provenCalls = usage.callsInWindow(now);
  const { reserved } = allowanceOf(limit, limits.reserve, usage.isTokenBucket() ? 0 : usage.expectedCalls(now));
  const floor = externalFloorOf(limit);
  const unused = provenCalls === 0 ? reserved : Math.max(floor, reserved - provenCalls - floor);
  if (lane !== "action") return unused;
  const configured = reservedCalls(limit, limits.reserve);
  return Math.min(unused, configured - actionReserveOf(configured));
}

function planAvailability(ledger: Ledger, lane: Lane, now: MonotonicMs): Availability {
  const { limits } = ledger;
  const rates = planPaceRates(limits);
  const expected = expectedCallsOfPlan(ledger, now);
  const { actionReserve } = allowanceOf(limits.plan.requestsPerMinute ?? 0, limits.reserve, expected);
  const capacity = rates.evenPace.capacity + (mayUseReserve(ledger, lane, MINUTE_MS, now) ? actionReserve : 0);
  return { at: paceAvailableAt(ledger.planPace, rates, lane, capacity), waitReason: "plan" };
}

function concurrencyAvailability(ledger: Ledger, lane: Lane, now: MonotonicMs): Availability {
  const allowedLane = mayUseReserve(ledger, lane, ABANDONED_MS, now) ? lane : "walk";
  return { at: concurrencyAvailableAt(ledger, ledger.limits, allowedLane, now), waitReason: "concurrency" };
}

function hasMonthlyBudget(ledger: Ledger, lane: Lane): boolean {
  const cap = ledger.limits.plan.callsPerMonth;
  return cap === null || ledger.monthUsed < (lane === "action" ? cap : pollingCallsPerMonth(cap));
}
