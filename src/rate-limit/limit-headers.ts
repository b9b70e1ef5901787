import { DAY_MS, type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** What one answer said of its limit (spec, section 8.1), its reset turned into our monotonic time, rounded up. */
export interface Reading {
  readonly limit: number;
  readonly remaining: number;
  /** When the limit has surely been reset; null where the answer didn't say, or said nonsense. */
  readonly resetAt: MonotonicMs | null;
}

/** Added to whatever the service says of time, for its clock shows whole seconds. */
export const ROUNDING_MS: DurationMs = SECOND_MS;

/** A limit beyond this is no limit, in requests a window: it is a placeholder, or a fault. */
const LIMIT_MAX = 1e9;
/** So many times the limit may be left. The spec's burst is twice the limit; what is far beyond it is a fault. */
const REMAINING_LIMITS_MAX = 10;
/** A reset may be so far ahead: the month of a plan is the longest window there is. */
const RESET_MS_MAX: DurationMs = 31 * DAY_MS;

/**
 * Turns the headers of an answer (spec, section 8.1) into a reading; null where they can't be true, which counts as no
 * statement. The reset is on the service's clock, so it is counted from the answer's own Date; both are cut to seconds,
 * hence the rounding.
 */
export function reading(
  stated: { limit: number; remaining: number; resetEpochSeconds: number | null; dateEpochMs: EpochMs | null },
  now: MonotonicMs,
): Reading | null {
  const { limit, remaining, resetEpochSeconds, dateEpochMs } = stated;
  if (!(limit >= 1 && limit <= LIMIT_MAX)) return null;
  if (!(remaining >= 0 && remaining <= limit * REMAINING_LIMITS_MAX)) return null;
  const untilReset =
    resetEpochSeconds === null || dateEpochMs === null
      ? Number.NaN
      : resetEpochSeconds * SECOND_MS - dateEpochMs + ROUNDING_MS;
  return { limit, remaining, resetAt: untilReset >= 0 && untilReset <= RESET_MS_MAX ? now + untilReset : null };
}

/**
 * What the service last stated about one limit, made safe for calls that overlap. Every answer bounds what is left from
 * below: of the calls sent so far, all but those known to be settled before the answered one was sent may still count
 * against what it showed. So the bound is a number, `base`, less the calls sent.
 */
export interface View {
  /** Calls sent. */
  sent: number;
  /** Calls known to have been counted by the service, or never to be. */
  settled: number;
  /** Moments at which calls without an answer count as settled, oldest first. */
  lost: MonotonicMs[];
  stated: Stated | null;
}

interface Stated extends Reading {
  readonly base: number;
  readonly at: MonotonicMs;
  /** View.settled just after this answer: an answer to a call sent later is newer, whatever it says. */
  readonly settled: number;
}

/** What a call must remember from when it was sent. */
export interface Mark {
  readonly settled: number;
}

/** The view of a limit of which nothing was stated. */
export const createView = (): View => ({ sent: 0, settled: 0, lost: [], stated: null });

/** Counts a call as sent. */
export function markSent(view: View): Mark {
  view.sent++;
  return { settled: view.settled };
}

/** Takes back that a call was sent: it never was. */
export function markUnsent(view: View): void {
  view.sent--;
}

/** Counts a call as answered, and takes in what the answer said; null: it said nothing. */
export function markAnswered(view: View, mark: Mark, reading: Reading | null, now: MonotonicMs): void {
  view.settled++;
  if (reading === null) return;
  const base = reading.remaining + mark.settled + 1;
  const newer = view.stated === null || mark.settled >= view.stated.settled;
  if (newer || base > (view.stated?.base ?? 0)) view.stated = { ...reading, base, at: now, settled: view.settled };
}

/** Counts a call as lost: the service may yet count it, until `countedBy`. */
export function markLost(view: View, countedBy: MonotonicMs): void {
  view.lost.push(countedBy);
}

/** Settles the lost calls whose time has come. */
export function settleLost(view: View, now: MonotonicMs): void {
  while ((view.lost[0] ?? Number.POSITIVE_INFINITY) <= now) {
    view.lost.shift();
    view.settled++;
  }
}

/** Calls under way: neither answered nor lost. */
export const underWay = (view: View): number => view.sent - view.settled - view.lost.length;

/** At least so many calls are left, by what was stated; null if nothing was. */
export const leastRemaining = (view: View): number | null =>
  view.stated === null ? null : view.stated.base - view.sent;
