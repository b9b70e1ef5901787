import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { Ledger } from "./account.ts";
import { availableBesideExternalUsage, expectedCallsOfPlan } from "./external-usage/external-usage.ts";
import { OBSERVATIONS_PER_WINDOW } from "./external-usage/usage-of-limit.ts";
import { gatewayAvailableAt } from "./gateway-limit.ts";
import { pollingConcurrency, statesWiderLimit } from "./ledger.ts";
import { callsInFlight, ROUNDING_MS, remainingAtLeast, settleLostCalls } from "./limit-headers.ts";
import {
  actionReserveOf,
  allowanceOf,
  type Category,
  externalFloorOf,
  type Lane,
  pollingCallsPerMonth,
  reservedCalls,
} from "./limits.ts";
import { categoryPaceRates, planPaceRates } from "./pace-rates.ts";
import { paceAvailableAt } from "./pacing.ts";
import { rejectedUntil } from "./too-many-requests.ts";

/** Why a call has to wait. */
export type WaitReason =
  | "refused"
  | "learning"
  | "learned"
  | "remaining"
  | "others"
  | "pace"
  | "plan"
  | "concurrency"
  | "month";

/** When a call may be sent (Infinity: only after another event), and what delays it until then. */
export interface Availability {
  readonly at: MonotonicMs;
  readonly waitReason: WaitReason | null;
}

/**
 * Share of the polling calls of a window that may be sent at once if the service states that they are available. Not in the
 * first window of a process, and not while others use the key. All further calls are spaced evenly, since external usage
 * shows only in the responses.
 */
const BURST_SHARE = 0.25;
/** How many times per window a wait for external usage is recomputed. */
const RECHECKS_PER_WINDOW = 12;

/** When a call of `lane` in `category` may be sent, and what delays it: the constraint that opens last. */
export function availabilityOf(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Availability {
  settleLostCalls(ledger.accounts[category].headers, now);
  const left = remainingAtLeast(ledger.accounts[category].headers);
  const constraints: Availability[] = [
    { at: rejectedUntil(ledger, category, lane), waitReason: "refused" },
    statedLimitAvailability(ledger, category, lane, now),
    {
      at: availableBesideExternalUsage(ledger.externalUsage, ledger.limits, { category, lane, left }, now),
      waitReason: "others",
    },
    paceAvailability(ledger, category, lane, now),
    { at: gatewayAvailableAt(ledger, category, lane), waitReason: "learned" },
    planAvailability(ledger, lane, now),
    { at: hasConcurrency(ledger, lane) ? now : Number.POSITIVE_INFINITY, waitReason: "concurrency" },
    { at: hasMonthlyBudget(ledger, lane) ? now : Number.POSITIVE_INFINITY, waitReason: "month" },
  ];
  const last = constraints.reduce((latest, each) => (each.at > latest.at ? each : latest));
  if (last.at <= now) return { at: now, waitReason: null };
  // Others may use less than expected, which only a call of ours can show.
  const isExternal = last.waitReason === "others" || last.waitReason === "remaining";
  if (!isExternal || ledger.externalUsage[category].expectedCalls(now) === 0) return last;
  return { ...last, at: Math.min(last.at, now + ledger.limits.categories[category].windowMs / RECHECKS_PER_WINDOW) };
}

/**
 * Whether actions may exceed the pace and use the reserve without a stated limit. Not in the first window of a process: the
 * previous process may have done so just before it ended, and a window has room for that only once.
 */
const mayUseReserve = (ledger: Ledger, lane: Lane, windowMs: DurationMs, now: MonotonicMs): boolean =>
  lane === "action" && !isFirstWindow(ledger, windowMs, now);

const isFirstWindow = ({ startedAt }: Ledger, windowMs: DurationMs, now: MonotonicMs): boolean =>
  now - startedAt < windowMs;

/** Whether the service states what is left of the category, so that a burst is safe. */
function isLimitStated(ledger: Ledger, category: Category, now: MonotonicMs): boolean {
  const { headers: view } = ledger.accounts[category];
  if (view.lastStatement === null || statesWiderLimit(ledger, category, view.lastStatement)) return false;
  return now - view.lastStatement.at <= ledger.limits.categories[category].windowMs;
}

function paceAvailability(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Availability {
  const { limits, externalUsage } = ledger;
  const { pace, actions, headers: view } = ledger.accounts[category];
  const { requests, burst, windowMs } = limits.categories[category];
  const expected = externalUsage[category].expectedCalls(now);
  const { actionReserve } = allowanceOf(requests, limits.reserve, expected);
  const terms = categoryPaceRates(limits, category);
  let { capacity } = terms.evenPace;
  if (isLimitStated(ledger, category, now)) {
    const saved = Math.min(burst, remainingAtLeast(view) ?? 0) - requests;
    const atOnce = expected > 0 || isFirstWindow(ledger, windowMs, now) ? 0 : terms.polling * BURST_SHARE;
    capacity = Math.max(capacity, saved, atOnce) + (lane === "action" ? actionReserve : 0);
  } else if (mayUseReserve(ledger, lane, windowMs, now)) capacity += actionReserve;
  const common = paceAvailableAt(pace, { ...terms.evenPace, capacity });
  return {
    at: lane === "action" ? Math.max(common, paceAvailableAt(actions, terms.actionPace)) : common,
    waitReason: "pace",
  };
}

function statedLimitAvailability(ledger: Ledger, category: Category, lane: Lane, now: MonotonicMs): Availability {
  const { headers: view, wasStated: stated } = ledger.accounts[category];
  const { windowMs } = ledger.limits.categories[category];
  const alone: Availability = {
    at: callsInFlight(view) === 0 ? now : Number.POSITIVE_INFINITY,
    waitReason: "learning",
  };
  if (view.lastStatement === null) return view.settled > 0 && !stated ? { at: now, waitReason: null } : alone;
  if (now - view.lastStatement.at > windowMs) return stated ? alone : { at: now, waitReason: null };
  if ((remainingAtLeast(view) ?? 0) > reservedOf(ledger, category, lane, view.lastStatement.limit, now))
    return { at: now, waitReason: null };
  const { limit, remaining, resetAt, at } = view.lastStatement;
  const silentMs = at + windowMs + ROUNDING_MS;
  // If next to nothing is left, the first call after the reset is as likely another user's.
  const isSpent = remaining <= externalFloorOf(limit);
  // If the remaining calls are kept for others, an occasional call is affordable and shows whether they still need them.
  const provenCalls = ledger.externalUsage[category].callsInWindow(now);
  const isKeptForExternalUsage = !isSpent && remaining + provenCalls > reservedCalls(limit, ledger.limits.reserve);
  const rechecks = isKeptForExternalUsage ? at + windowMs / OBSERVATIONS_PER_WINDOW : silentMs;
  const reopensAt = Math.min(isSpent ? silentMs : (resetAt ?? silentMs), rechecks, silentMs);
  return now < reopensAt ? { at: reopensAt, waitReason: "remaining" } : alone;
}

/**
 * Calls to leave of what the service states. What others have already used in this window is not kept for them again.
 */
function reservedOf(
  { limits, externalUsage }: Ledger,
  category: Category,
  lane: Lane,
  stated: number,
  now: MonotonicMs,
): number {
  const limit = Math.min(limits.categories[category].requests, stated);
  const reserve = reservedCalls(limit, limits.reserve);
  const provenCalls = externalUsage[category].callsInWindow(now);
  const { reserved: kept } = allowanceOf(
    limit,
    limits.reserve,
    externalUsage[category].isTokenBucket() ? 0 : externalUsage[category].expectedCalls(now),
  );
  const callsPerWindow =
    provenCalls === 0 ? kept : Math.max(externalFloorOf(limit), kept - provenCalls - externalFloorOf(limit));
  return lane === "action" ? Math.min(callsPerWindow, reserve - actionReserveOf(reserve)) : callsPerWindow;
}

function planAvailability(ledger: Ledger, lane: Lane, now: MonotonicMs): Availability {
  const terms = planPaceRates(ledger.limits);
  const { externalUsage, limits } = ledger;
  const { actionReserve } = allowanceOf(
    limits.plan.requestsPerMinute ?? 0,
    limits.reserve,
    expectedCallsOfPlan(externalUsage, limits, now),
  );
  const ahead = mayUseReserve(ledger, lane, MINUTE_MS, now) ? actionReserve : 0;
  const common = paceAvailableAt(ledger.plan, { ...terms.evenPace, capacity: terms.evenPace.capacity + ahead });
  if (lane !== "action") return { at: common, waitReason: "plan" };
  return { at: Math.max(common, paceAvailableAt(ledger.planActions, terms.actionPace)), waitReason: "plan" };
}

function hasConcurrency({ limits, inFlight }: Ledger, lane: Lane): boolean {
  const polling = pollingConcurrency(limits);
  const cap = limits.plan.concurrentRequests;
  if (polling === null || cap === null) return true;
  return inFlight < polling + (lane === "action" ? actionReserveOf(cap - polling) : 0);
}

function hasMonthlyBudget(ledger: Ledger, lane: Lane): boolean {
  const cap = ledger.limits.plan.callsPerMonth;
  return cap === null || ledger.monthUsed < (lane === "action" ? cap : pollingCallsPerMonth(cap));
}
