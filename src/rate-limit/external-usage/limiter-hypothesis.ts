import type { MonotonicMs } from "../../model/time.ts";
import type { OwnCalls } from "./own-calls.ts";
import type { Reading } from "../limit-headers.ts";

/** What one answer stated of a limit. The service counted its call at some moment from its sending to its answer. */
export interface Statement extends Reading {
  readonly sentAt: MonotonicMs;
  readonly answeredAt: MonotonicMs;
  readonly windowMs: number;
}

/**
 * A kind of limiter, taken for the service's own: what others must have called, if it is. The spec names none, so all
 * kinds are followed side by side, until what is stated rules them out.
 */
export interface LimiterKind {
  /** Takes in a statement on a call that was sent after the last was answered; false: this kind would never have stated it. */
  read(statement: Statement, own: OwnCalls): boolean;
  /** Calls of others since the beginning that the statements prove: never more than there were. */
  proved(): number;
  /** Calls of others beyond those that are likely, and that this kind of limiter hides. */
  hidden(): number;
  /** Calls of others that were proved to be in the window that it is, or in the last one's length. */
  inWindow(now: MonotonicMs): number;
  /** What the last whole window likely came to, where its end was not seen; 0: nothing beyond what was seen. */
  lastWindow(): number;
  /** Whether calls come back one by one, by time alone, and may be saved up beyond the limit. */
  readonly isBucket: boolean;
}

/** By so many calls a statement may miss what a kind expects before it is another kind: clocks are not exact. */
export const SLIPS_MAX = 2;
