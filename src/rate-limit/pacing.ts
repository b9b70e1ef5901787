import type { MonotonicMs } from "../model/time.ts";

/**
 * Our own account of a limit that nobody shows us: calls are spread evenly, by the generic cell rate algorithm (ITU-T
 * I.371). Even spacing is what makes it safe under every limiter: with `capacity + calls a window` within the limit, no
 * window, wherever it begins and whether or not the process restarted inside it, holds more than the limit.
 */
export interface Pace {
  /** When the calls so far are all paid for: the theoretical arrival time of the next. */
  paidUntil: MonotonicMs;
}

/** How fast, and how many at once. */
export interface PaceRate {
  /** Milliseconds that one call costs. */
  readonly costMs: number;
  /** Calls that may go back to back after a rest, at least 1. */
  readonly capacity: number;
}

/** Share of what may be spent in a window that may be spent back to back; the rest comes evenly. */
const BURST_SHARE = 0.02;

/** Rate that never puts more than `spendable` calls in any window: the back to back ones and the even ones together. */
export function evenRate(spendable: number, windowMs: number): PaceRate {
  const capacity = Math.max(1, Math.floor(spendable * BURST_SHARE));
  return { costMs: windowMs / Math.max(1, spendable - capacity), capacity };
}

/** Share of what may be spent that actions may take in the long run: however many there are, watching goes on. */
export const ACTION_SHARE = 0.5;

/** The pace that actions keep among themselves, beside the one they share: `dip` back to back, the rest evenly. */
export const actionRate = (spendable: number, actionReserve: number, windowMs: number): PaceRate => ({
  costMs: windowMs / Math.max(1, spendable * ACTION_SHARE),
  capacity: Math.max(1, actionReserve),
});

/** A pace that starts empty: even the first call waits for its own cost, so that a daemon in a crash loop keeps the pace. */
export const createPace = (rate: PaceRate, now: MonotonicMs): Pace => ({
  paidUntil: now + rate.capacity * rate.costMs,
});

/** The first moment at which a call may go. */
export const paceAvailableAt = (pace: Pace, rate: PaceRate): MonotonicMs =>
  pace.paidUntil - (rate.capacity - 1) * rate.costMs;

/** Pays for one call. */
export function payForCall(pace: Pace, rate: PaceRate, now: MonotonicMs): void {
  pace.paidUntil = Math.max(pace.paidUntil, now) + rate.costMs;
}
