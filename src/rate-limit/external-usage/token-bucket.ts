import type { DurationMs } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { OwnCalls } from "../own-calls.ts";
import { LimiterHypothesis, type LimitStatement, MISMATCHES_MAX } from "./limiter-hypothesis.ts";

/** Maximum estimate of hidden calls for each statement that proves some. */
const HIDDEN_CALLS_MAX = 8;

/**
 * A bucket that is refilled evenly. Its balance is the remaining calls, plus our own calls, less those refilled since
 * time 0. External calls lower the balance, and so does time while the bucket is full; nothing raises it. A full bucket
 * hides the calls that it refilled before our next call.
 */
export class TokenBucketHypothesis extends LimiterHypothesis {
  override readonly isTokenBucket = true;
  #last: LimitStatement | null = null;
  /** Largest number of calls that remained after one of ours. A full bucket holds one more. */
  #remainingMost = 0;
  /** Own calls that were certainly counted by the last statement. */
  #ownCounted = 0;
  /** Bounds of the balance. */
  #low = 0;
  #high = 0;
  #recent: { readonly at: MonotonicMs; readonly calls: number }[] = [];

  override update(statement: LimitStatement, own: OwnCalls): boolean {
    const { sentAt, answeredAt, limit, remaining, windowMs } = statement;
    const last = this.#last;
    this.#last = statement;
    this.#remainingMost = Math.max(this.#remainingMost, remaining);
    const perMs = limit / windowMs;
    const ownLeast = own.ended.countBefore(sentAt) + 1;
    const ownMost = own.sent.countBy(answeredAt);
    const low = remaining + ownLeast - perMs * answeredAt;
    const high = remaining + 1 + ownMost - perMs * sentAt;
    const countedBefore = this.#ownCounted;
    this.#ownCounted = ownLeast;
    if (last === null || last.limit !== limit) {
      [this.#low, this.#high] = [low, high];
      return true;
    }
    const ifFull = this.#leastIfFull(countedBefore, ownLeast, statement, own);
    const ifNeverFull = this.#low + perMs * sentAt;
    const calls = Math.floor(Math.min(ifNeverFull, ifFull) - (remaining + 1 + ownMost)) + 1;
    this.#low = Math.min(this.#low, ifFull - perMs * answeredAt);
    if (calls > 0) {
      this.#recordProven(calls, Math.max(0, ifNeverFull - ifFull) / perMs, last, statement);
      this.#low -= calls;
      this.#high -= calls;
    }
    // Calls in doubt may never have been counted, although `ownMost` includes them.
    this.#high += own.inDoubtAfter(last.sentAt);
    if (low > this.#high + MISMATCHES_MAX) return false;
    const isShifted = low > this.#high;
    this.#low = isShifted ? low : Math.max(this.#low, low);
    this.#high = isShifted ? high : Math.min(this.#high, high);
    return true;
  }

  override callsInWindow(now: MonotonicMs): number {
    const since = now - (this.#last?.windowMs ?? 0);
    return this.#recent.reduce((sum, { at, calls }) => sum + (at > since ? calls : 0), 0);
  }

  /**
   * Records external calls since the statement `last`. `fullMs` is how long the bucket may have been full in between.
   */
  #recordProven(calls: number, fullMs: DurationMs, last: LimitStatement, statement: LimitStatement): void {
    const { sentAt, answeredAt, windowMs, limit } = statement;
    this.provenCalls += calls;
    this.#recent = this.#recent.filter(({ at }) => at > answeredAt - windowMs);
    this.#recent.push({ at: answeredAt, calls });
    // Hidden calls are estimated as the ratio of the time in which they were hidden to the time in which they were not.
    const gapMs = (sentAt + answeredAt - last.sentAt - last.answeredAt) / 2;
    const visibleMs = Math.max(gapMs - fullMs, windowMs / limit);
    this.hiddenCalls += Math.min(HIDDEN_CALLS_MAX, Math.max(0, gapMs - visibleMs) / visibleMs);
  }

  /**
   * Returns a lower bound of remaining plus own calls if the bucket was full at some time since the last statement.
   * That may have been before any of our calls `from` to `to` that were counted since then. The earlier it was, the
   * more was refilled.
   */
  #leastIfFull(from: number, to: number, { sentAt, limit, windowMs }: LimitStatement, own: OwnCalls): number {
    let least = this.#remainingMost + to;
    for (let calls = from; calls < to - 1; calls++) {
      const refilled = (Math.max(0, sentAt - own.ended.nth(calls + 1)) * limit) / windowMs;
      least = Math.min(least, this.#remainingMost + 1 + calls + refilled);
    }
    return least;
  }
}
