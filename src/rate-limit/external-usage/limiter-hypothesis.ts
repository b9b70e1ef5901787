import type { MonotonicMs } from "../../model/time.ts";
import type { OwnCalls } from "../own-calls.ts";
import type { LimitReading } from "../stated-limit.ts";

/** What one response stated about a limit. The service counted the call at some time from `sentAt` to `answeredAt`. */
export interface LimitStatement extends LimitReading {
  readonly sentAt: MonotonicMs;
  readonly answeredAt: MonotonicMs;
  readonly windowMs: number;
}

/**
 * Assumes that the service uses one kind of rate limiter and derives from its statements how many external calls it has
 * counted. The spec does not name the kind, so all kinds are tracked in parallel until a statement contradicts them.
 */
export abstract class LimiterHypothesis {
  /**
   * Processes the statement about a call that was sent after the previous one was answered. Returns false if this kind
   * of limiter cannot have made the statement.
   */
  abstract update(statement: LimitStatement, own: OwnCalls): boolean;
  /** External calls since the start that the statements prove, which is a lower bound. */
  provenCalls = 0;
  /** Estimate of the external calls beyond the proven ones that this kind of limiter hides. */
  hiddenCalls = 0;
  /**
   * Returns the external calls that are proven for the current window or, for a token bucket, for the last window
   * length.
   */
  abstract callsInWindow(now: MonotonicMs): number;
  /** Estimate of the external calls in the last whole window if its end was not observed, or 0 if there is none. */
  lastWindowCalls = 0;
  /** Whether calls are refilled one by one and may accumulate beyond the limit. */
  readonly isTokenBucket: boolean = false;
}

/**
 * Calls by which a statement may differ from what a limiter allows before it is ruled out, since clocks are not exact.
 */
export const MISMATCHES_MAX = 2;
