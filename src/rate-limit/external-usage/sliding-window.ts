import type { MonotonicMs } from "../../model/time.ts";
import { type LimiterHypothesis, MISMATCHES_MAX } from "./limiter-hypothesis.ts";

/** What was proved by when. */
interface Proof {
  readonly at: MonotonicMs;
  readonly calls: number;
}

/** A window that slides: what is left is the limit less the calls of the last window's length, whoever made them. */
export function createSlidingWindowHypothesis(): LimiterHypothesis {
  let firstAt: MonotonicMs | null = null;
  /** What was spent when it was first looked at: it may have been the process before this one, so it is no others'. */
  let before = 0;
  let inWindow = 0;
  let readAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  let length = 0;
  /** Whenever more was proved, since a window before the last statement, and the last one before that. */
  let proofs: Proof[] = [{ at: Number.NEGATIVE_INFINITY, calls: 0 }];

  return {
    isTokenBucket: false,
    provenCalls: () => proofs.at(-1)!.calls,
    hiddenCalls: () => 0,
    callsInWindow: (now) => (now < readAt + length ? inWindow : 0),
    lastWindowCalls: () => 0,
    update({ sentAt, answeredAt, limit, remaining, windowMs }, own) {
      const spent = limit - remaining;
      const ownLeast = own.endedBefore(sentAt) + 1 - own.sentBy(answeredAt - windowMs);
      if (spent < ownLeast - own.inDoubtAfter(sentAt - 2 * windowMs) - MISMATCHES_MAX) return false;
      const ownMost = own.sentBy(answeredAt) - own.endedBefore(sentAt - windowMs);
      if (firstAt === null) before = Math.max(0, spent - ownLeast);
      firstAt ??= answeredAt;
      inWindow = Math.max(0, spent - ownMost - (sentAt - firstAt < windowMs ? before : 0));
      // They came after whatever was proved a window ago or earlier.
      const old = proofs.findLastIndex(({ at }) => at <= sentAt - windowMs);
      if (old > 0) proofs = proofs.slice(old);
      const calls = Math.max(proofs.at(-1)!.calls, proofs[0]!.calls + inWindow);
      if (calls > proofs.at(-1)!.calls) proofs.push({ at: answeredAt, calls });
      readAt = sentAt;
      length = windowMs;
      return true;
    },
  };
}
