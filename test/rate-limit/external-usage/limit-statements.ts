import type { LimiterHypothesis } from "../../../src/rate-limit/external-usage/limiter-hypothesis.ts";
import { OwnCalls } from "../../../src/rate-limit/external-usage/own-calls.ts";

export const WINDOW_MS = 60_000;
export const LIMIT = 100;

interface StatementOptions {
  readonly limit?: number;
  /** How long the answer took. */
  readonly tookMs?: number;
  /** When the window began that the answer's reset ends; resets are rounded up by a second. */
  readonly beganAt?: number;
}

/** A kind of limiter that follows the statements on our calls, of which one token comes back each 600 ms. */
export function followStatements(kind: LimiterHypothesis) {
  const own = new OwnCalls();
  return {
    kind,
    /** A call of ours whose answer states what remains; false: the kind is ruled out. */
    call(
      sentAt: number,
      remaining: number,
      { limit = LIMIT, tookMs = 0, beganAt = 0 }: StatementOptions = {},
    ): boolean {
      const answeredAt = sentAt + tookMs;
      own.recordSent(sentAt);
      const resetAt = beganAt + WINDOW_MS + 1_000;
      const isPossible = kind.update({ sentAt, answeredAt, limit, remaining, resetAt, windowMs: WINDOW_MS }, own);
      own.recordEnd(answeredAt);
      return isPossible;
    },
    /** A call of ours whose answer states nothing. */
    bareCall(at: number) {
      own.recordSent(at);
      own.recordEnd(at);
    },
    /** A call of ours that may have been counted or not. */
    doubtfulCall(at: number) {
      own.recordSent(at);
      own.recordInDoubt(at, at);
    },
  };
}
