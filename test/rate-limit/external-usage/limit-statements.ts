import type { LimiterHypothesis } from "../../../src/rate-limit/external-usage/limiter-hypothesis.ts";
import { OwnCalls } from "../../../src/rate-limit/own-calls.ts";

export const WINDOW_MS = 60_000;
export const LIMIT = 100;

interface StatementOptions {
  readonly limit?: number;
  /** Latency of the response. */
  readonly tookMs?: number;
  /** Start of the window that the stated reset ends. Resets are rounded up by a second. */
  readonly beganAt?: number;
}

/** Feeds a hypothesis with the statements about our calls. A token bucket refills one call every 600 ms. */
export function followStatements(hypothesis: LimiterHypothesis) {
  const own = new OwnCalls();
  return {
    hypothesis,
    /** Makes a call whose response states the remaining calls. Returns false if that rules the hypothesis out. */
    call(
      sentAt: number,
      remaining: number,
      { limit = LIMIT, tookMs = 0, beganAt = 0 }: StatementOptions = {},
    ): boolean {
      const answeredAt = sentAt + tookMs;
      own.sent.add(sentAt);
      const resetAt = beganAt + WINDOW_MS + 1_000;
      const isPossible = hypothesis.update({ sentAt, answeredAt, limit, remaining, resetAt, windowMs: WINDOW_MS }, own);
      own.ended.add(answeredAt);
      return isPossible;
    },
    /** Makes a call whose response states nothing. */
    bareCall(at: number) {
      own.sent.add(at);
      own.ended.add(at);
    },
    /** Makes a call that may or may not have been counted. */
    doubtfulCall(at: number) {
      own.sent.add(at);
      own.recordInDoubt(at, at);
    },
  };
}

/** All counts of a hypothesis at time 0. */
export const countsOf = (hypothesis: LimiterHypothesis) => ({
  proven: hypothesis.provenCalls,
  hidden: hypothesis.hiddenCalls,
  inWindow: hypothesis.callsInWindow(0),
  lastWindow: hypothesis.lastWindowCalls,
});
