import type { MonotonicMs } from "../../model/time.ts";
import { type LimiterHypothesis, type LimitStatement, MISMATCHES_MAX } from "./limiter-hypothesis.ts";
import type { OwnCalls } from "./own-calls.ts";

/** Calls that are reckoned to have hidden, at most, for each time that one shows. */
const HIDDEN_CALLS_MAX = 8;

/**
 * A bucket that fills evenly. Its balance is what is left, with our own calls added and without what flowed in since the
 * clock's beginning: calls of others lower it, and so does time while the bucket is full, and nothing ever raises it. A
 * full bucket hides calls: those that it made good by the time of our next one.
 */
export function createTokenBucketHypothesis(): LimiterHypothesis {
  let last: LimitStatement | null = null;
  /** The most that was ever left after a call of ours: a full bucket holds that, and the call. */
  let most = 0;
  /** Own calls that surely were counted when the last statement was made. */
  let counted = 0;
  /** Bounds of the balance. */
  let low = 0;
  let high = 0;
  let proved = 0;
  let hidden = 0;
  let recent: { readonly at: MonotonicMs; readonly calls: number }[] = [];

  /** Takes down that others made so many calls since the statement `before`; for `hidingMs` the bucket may have been full. */
  function prove(
    calls: number,
    hidingMs: number,
    before: LimitStatement,
    { sentAt, answeredAt, windowMs, limit }: LimitStatement,
  ) {
    proved += calls;
    recent = recent.filter(({ at }) => at > answeredAt - windowMs);
    recent.push({ at: answeredAt, calls });
    // As many more hid as the time in which they could is longer than the time in which they could not.
    const gapMs = (sentAt + answeredAt - before.sentAt - before.answeredAt) / 2;
    const showingMs = Math.max(gapMs - hidingMs, windowMs / limit);
    hidden += Math.min(HIDDEN_CALLS_MAX, Math.max(0, gapMs - showingMs) / showingMs);
  }

  /**
   * What is left and our own calls come to at least, if the bucket was full at some moment since the last statement: it
   * may have been before any of the calls that were counted since, and the longer ago, the more flowed in.
   */
  function leastCallsIfFull(
    from: number,
    to: number,
    { sentAt, limit, windowMs }: LimitStatement,
    own: OwnCalls,
  ): number {
    let least = most + to;
    for (let calls = from; calls < to - 1; calls++) {
      const inflow = (Math.max(0, sentAt - own.endOf(calls + 1)) * limit) / windowMs;
      least = Math.min(least, most + 1 + calls + inflow);
    }
    return least;
  }

  return {
    isTokenBucket: true,
    provenCalls: () => proved,
    hiddenCalls: () => hidden,
    lastWindowCalls: () => 0,
    callsInWindow: (now) =>
      recent.reduce((sum, { at, calls }) => sum + (at > now - (last?.windowMs ?? 0) ? calls : 0), 0),
    update(statement, own) {
      const { sentAt, answeredAt, limit, remaining, windowMs } = statement;
      const before = last;
      last = statement;
      most = Math.max(most, remaining);
      const perMs = limit / windowMs;
      const ownLeast = own.endedBefore(sentAt) + 1;
      const ownMost = own.sentBy(answeredAt);
      const atLeast = remaining + ownLeast - perMs * answeredAt;
      const below = remaining + 1 + ownMost - perMs * sentAt;
      const countedBefore = counted;
      counted = ownLeast;
      if (before === null || before.limit !== limit) {
        [low, high] = [atLeast, below];
        return true;
      }
      const full = leastCallsIfFull(countedBefore, ownLeast, statement, own);
      const unhindered = low + perMs * sentAt;
      const calls = Math.floor(Math.min(unhindered, full) - (remaining + 1 + ownMost)) + 1;
      low = Math.min(low, full - perMs * answeredAt);
      if (calls > 0) {
        prove(calls, Math.max(0, unhindered - full) / perMs, before, statement);
        [low, high] = [low - calls, high - calls];
      }
      // A call that was never counted is added all the same.
      high += own.inDoubtAfter(before.sentAt);
      if (atLeast > high + MISMATCHES_MAX) return false;
      [low, high] = atLeast > high ? [atLeast, below] : [Math.max(low, atLeast), Math.min(high, below)];
      return true;
    },
  };
}
