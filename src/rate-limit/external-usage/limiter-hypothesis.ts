import type { MonotonicMs } from "../../model/time.ts";
import type { LimitReading } from "../limit-headers.ts";
import type { OwnCalls } from "./own-calls.ts";

/** What one answer stated of a limit. The service counted its call at some moment from its sending to its answer. */
export interface LimitStatement extends LimitReading {
  readonly sentAt: MonotonicMs;
  readonly answeredAt: MonotonicMs;
  readonly windowMs: number;
}

/**
 * A kind of limiter, taken for the service's own: what others must have called, if it is. The spec names none, so all
 * kinds are followed side by side, until what is stated rules them out.
 */
export interface LimiterHypothesis {
  /** Takes in a statement on a call that was sent after the last was answered; false: this kind would never have stated it. */
  update(statement: LimitStatement, own: OwnCalls): boolean;
  /** Calls of others since the beginning that the statements prove: never more than there were. */
  provenCalls(): number;
  /** Calls of others beyond those that are likely, and that this kind of limiter hides. */
  hiddenCalls(): number;
  /** Calls of others that were proved to be in the window that it is, or in the last one's length. */
  callsInWindow(now: MonotonicMs): number;
  /** What the last whole window likely came to, where its end was not seen; 0: nothing beyond what was seen. */
  lastWindowCalls(): number;
  /** Whether calls come back one by one, by time alone, and may be saved up beyond the limit. */
  readonly isTokenBucket: boolean;
}

/** By so many calls a statement may miss what a kind expects before it is another kind: clocks are not exact. */
export const MISMATCHES_MAX = 2;
