import { DAY_MS, type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** What one answer said of its limit (spec, section 8.1), its reset turned into our monotonic time, rounded up. */
export interface LimitReading {
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
export function parseLimitReading(
  stated: { limit: number; remaining: number; resetEpochSeconds: number | null; dateEpochMs: EpochMs | null },
  now: MonotonicMs,
): LimitReading | null {
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
export interface StatedLimit {
  /** Calls sent. */
  sent: number;
  /** Calls known to have been counted by the service, or never to be. */
  settled: number;
  /** Moments at which calls without an answer count as settled, oldest first. */
  lost: MonotonicMs[];
  lastStatement: AcceptedStatement | null;
}

interface AcceptedStatement extends LimitReading {
  readonly base: number;
  readonly at: MonotonicMs;
  /** View.settled just after this answer: an answer to a call sent later is newer, whatever it says. */
  readonly settled: number;
}

/** What a call must remember from when it was sent. */
export interface SendMark {
  readonly settled: number;
}

/** The view of a limit of which nothing was stated. */
export const createStatedLimit = (): StatedLimit => ({ sent: 0, settled: 0, lost: [], lastStatement: null });

/** Counts a call as sent. */
export function recordSent(statedLimit: StatedLimit): SendMark {
  statedLimit.sent++;
  return { settled: statedLimit.settled };
}

/** Takes back that a call was sent: it never was. */
export function recordUnsent(statedLimit: StatedLimit): void {
  statedLimit.sent--;
}

/** Counts a call as answered, and takes in what the answer said; null: it said nothing. */
export function recordAnswered(
  statedLimit: StatedLimit,
  mark: SendMark,
  reading: LimitReading | null,
  now: MonotonicMs,
): void {
  statedLimit.settled++;
  if (reading === null) return;
  const base = reading.remaining + mark.settled + 1;
  const newer = statedLimit.lastStatement === null || mark.settled >= statedLimit.lastStatement.settled;
  if (newer || base > (statedLimit.lastStatement?.base ?? 0))
    statedLimit.lastStatement = { ...reading, base, at: now, settled: statedLimit.settled };
}

/** Counts a call as lost: the service may yet count it, until `countedBy`. */
export function recordLost(statedLimit: StatedLimit, countedBy: MonotonicMs): void {
  statedLimit.lost.push(countedBy);
}

/** Settles the lost calls whose time has come. */
export function settleLostCalls(statedLimit: StatedLimit, now: MonotonicMs): void {
  while ((statedLimit.lost[0] ?? Number.POSITIVE_INFINITY) <= now) {
    statedLimit.lost.shift();
    statedLimit.settled++;
  }
}

/** Calls under way: neither answered nor lost. */
export const callsInFlight = (statedLimit: StatedLimit): number =>
  statedLimit.sent - statedLimit.settled - statedLimit.lost.length;

/** At least so many calls are left, by what was stated; null if nothing was. */
export const remainingAtLeast = (statedLimit: StatedLimit): number | null =>
  statedLimit.lastStatement === null ? null : statedLimit.lastStatement.base - statedLimit.sent;
