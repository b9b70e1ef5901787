import type { MonotonicMs } from "../../model/time.ts";
import type { OwnCalls } from "../own-calls.ts";
import { ROUNDING_MS } from "../stated-limit.ts";
import { LATE_RESET_MS_MAX, type StartRange, startRangeOf } from "./fixed-window.ts";
import { LimiterHypothesis, type LimitStatement, MISMATCHES_MAX } from "./limiter-hypothesis.ts";

/** Bounds of the calls that a statement counts, with those of the previous window by their weight. */
interface CallBounds {
  readonly least: number;
  readonly most: number;
}

/**
 * A sliding window that is estimated from two fixed ones: the calls of the current window, and those of the previous one
 * by the share of it that the last window length still covers. The windows follow each other without gaps, and the
 * stated reset is the end of the current one.
 */
export class SlidingCounterHypothesis extends LimiterHypothesis {
  #windowMs = 0;
  #start: StartRange | null = null;
  /**
   * What the first statement counted, and the number of our own calls up to it, until the window after it begins. The
   * previous process may have made the other calls that it counted.
   */
  #first: { readonly spent: number; readonly ownCalls: number } | null = null;
  /** Maximum number of external calls in the previous window. */
  #previousMost = Number.POSITIVE_INFINITY;
  #callsInWindow = 0;

  override update(statement: LimitStatement, own: OwnCalls): boolean {
    const { sentAt, answeredAt, limit, remaining, resetAt, windowMs } = statement;
    if (remaining >= limit || resetAt === null || resetAt > answeredAt + windowMs + LATE_RESET_MS_MAX) return false;
    const spent = limit - remaining;
    if (this.#start === null) this.#first = { spent, ownCalls: own.ended.countBefore(sentAt) + 1 };
    const windowsPassed = this.#updateStart(statement);
    if (windowsPassed === null) return false;
    if (windowsPassed > 0) this.#startWindow(windowsPassed);
    const start = this.#start!;
    const share = (at: MonotonicMs, from: MonotonicMs) => Math.max(0, Math.min(1, 1 - (at - from) / windowMs));
    const previousShare = { least: share(answeredAt, start.earliest), most: share(sentAt, start.latest) };
    const ownCalls = countOwnCalls(statement, own, start, previousShare);
    // The calls of the previous window may be rounded up or down.
    const externalMost = spent + 1 - ownCalls.least;
    if (externalMost < -MISMATCHES_MAX) return false;
    const previousMost = Math.max(0, externalMost - this.#callsInWindow) / previousShare.least;
    if (previousShare.least > 0) this.#previousMost = Math.min(this.#previousMost, previousMost);
    const calls =
      this.#first === null
        ? Math.floor(spent - Math.ceil(ownCalls.most) - this.#previousMost * previousShare.most)
        : spent - this.#first.spent - (own.sent.countBy(answeredAt) - this.#first.ownCalls);
    if (calls > this.#callsInWindow) {
      this.provenCalls += calls - this.#callsInWindow;
      this.#callsInWindow = calls;
    }
    return true;
  }

  override callsInWindow(now: MonotonicMs): number {
    if (this.#start === null) return 0;
    const age = (now - this.#start.earliest) / this.#windowMs;
    const calls = age < 1 ? this.#callsInWindow + this.lastWindowCalls * (1 - age) : this.#callsInWindow * (2 - age);
    return Math.max(0, Math.floor(calls));
  }

  /** Returns how many windows have started since the last statement, or null if the windows don't follow each other. */
  #updateStart(statement: LimitStatement): number | null {
    const { windowMs } = statement;
    const [start, next] = [this.#start, startRangeOf(statement)];
    this.#windowMs = windowMs;
    if (start === null) {
      this.#start = next;
      return 0;
    }
    const passed = Math.round((next.earliest + next.latest - start.earliest - start.latest) / (2 * windowMs));
    const earliest = Math.max(next.earliest, start.earliest + passed * windowMs);
    const latest = Math.min(next.latest, start.latest + passed * windowMs);
    if (passed < 0 || earliest > latest + ROUNDING_MS) return null;
    // Over days, the clocks drift apart.
    this.#start = earliest > latest ? next : { earliest, latest };
    return passed;
  }

  #startWindow(windowsPassed: number): void {
    this.lastWindowCalls = windowsPassed === 1 ? this.#callsInWindow : 0;
    this.#callsInWindow = 0;
    this.#first = null;
    this.#previousMost = Number.POSITIVE_INFINITY;
  }
}

/** Returns the bounds of our own calls that the statement counts, its own call included. */
function countOwnCalls(
  { sentAt, answeredAt, windowMs }: LimitStatement,
  own: OwnCalls,
  { earliest, latest }: StartRange,
  previousShare: CallBounds,
): CallBounds {
  const endedBefore = own.ended.countBefore(earliest);
  const most =
    own.sent.countBy(answeredAt) -
    endedBefore +
    previousShare.most * (endedBefore - own.ended.countBefore(earliest - windowMs));
  const sentBy = Math.min(own.sent.countBy(latest), own.ended.countBefore(sentAt));
  const inPrevious = Math.max(0, endedBefore - own.sent.countBy(latest - windowMs));
  const least = own.ended.countBefore(sentAt) - sentBy + 1 + previousShare.least * inPrevious;
  return { least: Math.max(1, least - own.inDoubtAfter(earliest - 2 * windowMs)), most };
}
