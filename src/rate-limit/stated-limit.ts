import { DAY_MS, type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** A limit as one response stated it (spec, section 8.1), with the reset in our monotonic time, rounded up. */
export interface LimitReading {
  readonly limit: number;
  readonly remaining: number;
  /** When the limit is certainly reset, or null if not stated or implausible. */
  readonly resetAt: MonotonicMs | null;
}

/** Added to times that the service states, since its clock shows whole seconds. */
export const ROUNDING_MS: DurationMs = SECOND_MS;

/** Maximum plausible limit, in requests per window. A larger one is a placeholder or a fault. */
const LIMIT_MAX = 1e9;
/** Maximum plausible ratio of remaining calls to the limit. The burst in the spec is twice the limit. */
const REMAINING_LIMITS_MAX = 10;
/** Maximum plausible time until a reset. The month of a plan is the longest window. */
const RESET_MS_MAX: DurationMs = 31 * DAY_MS;

/**
 * Converts rate limit headers (spec, section 8.1) to a reading. Returns null if they are implausible, which counts as
 * not stated. The reset is on the service's clock, so it is measured from the Date of the same response. Both are
 * truncated to seconds, hence the rounding.
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
 * What the service last stated about one limit, adjusted for concurrent calls. Each response gives a lower bound of the
 * remaining calls. All calls sent so far may still count against what it stated, except those that were settled before
 * its own call was sent. The bound is therefore a constant, `base`, less the number of calls sent.
 */
export interface StatedLimit {
  /** Calls sent. */
  sent: number;
  /** Number of calls that the service has certainly counted, or never will. */
  settled: number;
  /** When each call without a response counts as settled, earliest first. */
  lost: MonotonicMs[];
  lastStatement: AcceptedStatement | null;
}

interface AcceptedStatement extends LimitReading {
  readonly base: number;
  readonly at: MonotonicMs;
  /**
   * {@link StatedLimit.settled} after this response. The response to a call sent later is newer, regardless of what it
   * states.
   */
  readonly settled: number;
}

/** Creates the state of a limit that was not stated yet. */
export const createStatedLimit = (): StatedLimit => ({ sent: 0, settled: 0, lost: [], lastStatement: null });

/** Records that a call was sent. Returns how many calls were settled before. */
export function recordSent(statedLimit: StatedLimit): number {
  statedLimit.sent++;
  return statedLimit.settled;
}

/** Records that a call was not sent after all. */
export function recordUnsent(statedLimit: StatedLimit): void {
  statedLimit.sent--;
}

/** Records a response. `settledBefore` is the result of {@link recordSent}; `reading` is what it stated, or null. */
export function recordAnswered(
  statedLimit: StatedLimit,
  settledBefore: number,
  reading: LimitReading | null,
  now: MonotonicMs,
): void {
  statedLimit.settled++;
  if (reading === null) return;
  const base = reading.remaining + settledBefore + 1;
  const { lastStatement: last, settled } = statedLimit;
  if (last === null || settledBefore >= last.settled || base > last.base)
    statedLimit.lastStatement = { ...reading, base, at: now, settled };
}

/** Records that a call got no response. The service counts it by `countedBy`, or never. */
export function recordLost(statedLimit: StatedLimit, countedBy: MonotonicMs): void {
  statedLimit.lost.push(countedBy);
}

/** Settles the lost calls that the service must have counted by now. */
export function settleLostCalls(statedLimit: StatedLimit, now: MonotonicMs): void {
  while ((statedLimit.lost[0] ?? Number.POSITIVE_INFINITY) <= now) {
    statedLimit.lost.shift();
    statedLimit.settled++;
  }
}

/** Returns the number of calls that are neither answered nor lost. */
export const callsInFlight = (statedLimit: StatedLimit): number =>
  statedLimit.sent - statedLimit.settled - statedLimit.lost.length;

/** Returns a lower bound of the remaining calls, or null if not stated. */
export const remainingAtLeast = (statedLimit: StatedLimit): number | null =>
  statedLimit.lastStatement === null ? null : statedLimit.lastStatement.base - statedLimit.sent;
