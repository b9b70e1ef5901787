import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { MonotonicMs } from "../model/time.ts";
import { allowanceOf, type Category, type Lane, type Limits } from "./limits.ts";

/**
 * Spaces calls evenly by the generic cell rate algorithm (ITU-T I.371). This is safe under every kind of limiter. If
 * `capacity` plus the even calls of a window are within the limit, no window exceeds it, regardless of when the window
 * starts, and even if the process restarts within it.
 */
export interface Pace {
  /** When all calls so far are paid for, which is the theoretical arrival time of the next one. */
  paidUntil: MonotonicMs;
  /** The same for the actions among them, which are also paced among themselves. */
  actionsPaidUntil: MonotonicMs;
}

/** Rate and burst size of calls. */
interface PaceRate {
  /** Milliseconds that one call costs. */
  readonly costMs: number;
  /** Calls that may be sent back to back after a pause, at least 1. */
  readonly capacity: number;
}

/** Rates at which calls under a limit are sent. */
interface PaceRates {
  readonly evenPace: PaceRate;
  /** Rate of actions among themselves. */
  readonly actionPace: PaceRate;
}

/** Creates a pace that starts empty. Even the first call waits, so that a daemon in a crash loop keeps the pace. */
export const createPace = ({ evenPace, actionPace }: PaceRates, now: MonotonicMs): Pace => ({
  paidUntil: now + evenPace.capacity * evenPace.costMs,
  actionsPaidUntil: now + actionPace.capacity * actionPace.costMs,
});

/** Returns when the next call of `lane` may be sent, if `capacity` calls may be sent back to back. */
export function paceAvailableAt(
  pace: Pace,
  { evenPace, actionPace }: PaceRates,
  lane: Lane,
  capacity: number,
): MonotonicMs {
  const shared = pace.paidUntil - (capacity - 1) * evenPace.costMs;
  if (lane !== "action") return shared;
  return Math.max(shared, pace.actionsPaidUntil - (actionPace.capacity - 1) * actionPace.costMs);
}

/** Pays for one call of `lane`. */
export function payForCall(pace: Pace, { evenPace, actionPace }: PaceRates, lane: Lane, now: MonotonicMs): void {
  pace.paidUntil = Math.max(pace.paidUntil, now) + evenPace.costMs;
  if (lane === "action") pace.actionsPaidUntil = Math.max(pace.actionsPaidUntil, now) + actionPace.costMs;
}

/** Share of the polling calls of a window that may be sent back to back; the others are spaced evenly. */
const BACK_TO_BACK_SHARE: Share = 0.02;
/**
 * Share of the polling calls that actions may use in the long run, so that polling continues regardless of their
 * number.
 */
export const ACTION_SHARE: Share = 0.5;

/** Rates of a plan without a limit, under which calls cost nothing. */
const UNLIMITED: PaceRates = {
  evenPace: { costMs: 0, capacity: 1 },
  actionPace: { costMs: 0, capacity: 1 },
};

/** Returns the rates of a category. */
export const categoryPaceRates = ({ categories, reserve }: Limits, category: Category): PaceRates =>
  paceRatesOf(categories[category].requests, reserve, categories[category].windowMs);

/** Returns the rates of the plan over all categories. */
export const planPaceRates = ({ plan, reserve }: Limits): PaceRates =>
  plan.requestsPerMinute === null ? UNLIMITED : paceRatesOf(plan.requestsPerMinute, reserve, MINUTE_MS);

/**
 * Returns the rates under a limit. The even pace never exceeds the polling calls in any window, counting back-to-back
 * and even calls together.
 */
function paceRatesOf(requests: number, reserve: Share, windowMs: DurationMs): PaceRates {
  const { polling, actionReserve } = allowanceOf(requests, reserve, 0);
  const capacity = Math.max(1, Math.floor(polling * BACK_TO_BACK_SHARE));
  return {
    evenPace: { costMs: windowMs / Math.max(1, polling - capacity), capacity },
    actionPace: { costMs: windowMs / Math.max(1, polling * ACTION_SHARE), capacity: Math.max(1, actionReserve) },
  };
}
