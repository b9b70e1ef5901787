import { DAY_MS, type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import type { OwnCalls } from "./own-calls.ts";

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

interface AcceptedStatement extends LimitReading {
  readonly base: number;
  readonly at: MonotonicMs;
  /** Number of settled calls after this response. The response to a call sent later is newer, whatever it states. */
  readonly settled: number;
}

/**
 * What the service last stated about one limit, adjusted for concurrent calls. Each response gives a lower bound of the
 * remaining calls. All calls sent so far may still count against what it stated, except those that were settled before
 * its own call was sent. The bound is therefore a constant, `base`, less the number of calls sent.
 */
export class StatedLimit {
  /** Null if the limit was not stated yet. */
  lastStatement: AcceptedStatement | null = null;
  readonly #own: OwnCalls;

  /** `own` has all our calls that count against the limit. */
  constructor(own: OwnCalls) {
    this.#own = own;
  }

  /** Records what a response stated, once its call has ended. `settledBefore` calls were settled when that was sent. */
  record(settledBefore: number, reading: LimitReading, now: MonotonicMs): void {
    const base = reading.remaining + settledBefore + 1;
    const last = this.lastStatement;
    if (last === null || settledBefore >= last.settled || base > last.base)
      this.lastStatement = { ...reading, base, at: now, settled: this.#own.settledBy(now) };
  }

  /** Returns a lower bound of the remaining calls, or null if not stated. */
  remainingAtLeast(): number | null {
    return this.lastStatement === null ? null : this.lastStatement.base - this.#own.sent.count();
  }
}
