import type { MonotonicMs } from "../../model/time.ts";
import type { OwnCalls } from "../own-calls.ts";
import { LimiterHypothesis, type LimitStatement, MISMATCHES_MAX } from "./limiter-hypothesis.ts";

/** External calls that were proven at a time. */
interface Proof {
  readonly at: MonotonicMs;
  readonly calls: number;
}

/** A sliding window. The remaining calls are the limit less all calls of the last window length. */
export class SlidingWindowHypothesis extends LimiterHypothesis {
  #firstAt: MonotonicMs | null = null;
  /**
   * Calls spent before the first statement. The previous process may have made them, so they don't count as external.
   */
  #initialCalls = 0;
  #callsInWindow = 0;
  #sentAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  #windowMs = 0;
  /** The proofs of the last window, preceded by the newest older one. */
  #proofs: Proof[] = [{ at: Number.NEGATIVE_INFINITY, calls: 0 }];

  override update({ sentAt, answeredAt, limit, remaining, windowMs }: LimitStatement, own: OwnCalls): boolean {
    const spent = limit - remaining;
    const ownLeast = own.ended.countBefore(sentAt) + 1 - own.sent.countBy(answeredAt - windowMs);
    if (spent < ownLeast - own.inDoubtAfter(sentAt - 2 * windowMs) - MISMATCHES_MAX) return false;
    const ownMost = own.sent.countBy(answeredAt) - own.ended.countBefore(sentAt - windowMs);
    if (this.#firstAt === null) this.#initialCalls = Math.max(0, spent - ownLeast);
    this.#firstAt ??= answeredAt;
    const initialCalls = sentAt - this.#firstAt < windowMs ? this.#initialCalls : 0;
    this.#callsInWindow = Math.max(0, spent - ownMost - initialCalls);
    // The calls in this window came after all those that were proven a window ago or earlier.
    const lastOld = this.#proofs.findLastIndex(({ at }) => at <= sentAt - windowMs);
    if (lastOld > 0) this.#proofs = this.#proofs.slice(lastOld);
    const calls = this.#proofs[0]!.calls + this.#callsInWindow;
    if (calls > this.provenCalls) {
      this.provenCalls = calls;
      this.#proofs.push({ at: answeredAt, calls });
    }
    this.#sentAt = sentAt;
    this.#windowMs = windowMs;
    return true;
  }

  override callsInWindow(now: MonotonicMs): number {
    return now < this.#sentAt + this.#windowMs ? this.#callsInWindow : 0;
  }
}
