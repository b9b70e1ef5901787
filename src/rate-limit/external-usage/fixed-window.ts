import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { OwnCalls } from "../own-calls.ts";
import { ROUNDING_MS } from "../stated-limit.ts";
import { LimiterHypothesis, type LimitStatement, MISMATCHES_MAX } from "./limiter-hypothesis.ts";

/** How much earlier than expected a window may start. */
const EARLY_START_MS_MAX: DurationMs = SECOND_MS;
/** How much further away than a window a reset may be, since the reset, Date and their difference are all rounded. */
export const LATE_RESET_MS_MAX: DurationMs = 3 * ROUNDING_MS;
/** The unobserved end of a window is extrapolated from the last observed part; a window has this many parts. */
const EXTRAPOLATION_PARTS = 4;

/**
 * Range of times in which a window may have started, since the reset and the clock it is compared with are in whole
 * seconds.
 */
export interface StartRange {
  readonly earliest: MonotonicMs;
  readonly latest: MonotonicMs;
}

/** External calls in the current window, as observed at a time. */
interface Observation {
  readonly at: MonotonicMs;
  readonly calls: number;
}

/** A window that is reset as a whole at the stated time. Until then the remaining calls only decrease. */
export class FixedWindowHypothesis extends LimiterHypothesis {
  #last: LimitStatement | null = null;
  #start: StartRange | null = null;
  /** When the first call that stated the window was sent. */
  #firstSentAt: MonotonicMs = 0;
  /** Calls that were spent in the first window before the first statement, by any user. */
  #initialCalls = 0;
  /** Observations of the last part of the window, preceded by the newest older one. */
  #observations: Observation[] = [];

  override update(statement: LimitStatement, own: OwnCalls): boolean {
    const { answeredAt, limit, remaining, resetAt, windowMs } = statement;
    if (remaining >= limit || resetAt === null || resetAt > answeredAt + windowMs + LATE_RESET_MS_MAX) return false;
    if (!this.#updateStart(statement, own)) return false;
    this.#last = statement;
    const ownMost = own.sent.countBy(answeredAt) - own.ended.countBefore(this.#earliestCallAt());
    const calls = Math.max(this.#observedCalls(), limit - remaining - ownMost - this.#initialCalls);
    this.#observe(answeredAt, calls, windowMs);
    return true;
  }

  override callsInWindow(now: MonotonicMs): number {
    if (this.#start === null || this.#last === null) return 0;
    return now < this.#start.latest + this.#last.windowMs ? this.#observedCalls() : 0;
  }

  /**
   * Returns when the first of our calls in the window may have been sent. If the service rounds the reset up, the window
   * may seem to start after the call that started it.
   */
  #earliestCallAt(): MonotonicMs {
    return Math.min(this.#start!.earliest, this.#firstSentAt);
  }

  #observedCalls(): number {
    return this.#observations.at(-1)?.calls ?? 0;
  }

  /**
   * Updates the start of the window. Returns false if it contradicts earlier ones, or if calls came back within a
   * window.
   */
  #updateStart(statement: LimitStatement, own: OwnCalls): boolean {
    const { sentAt, remaining, windowMs } = statement;
    const [start, last, next] = [this.#start, this.#last, startRangeOf(statement)];
    if (start === null || last === null) {
      this.#startWindow(next, sentAt);
      const ownLeast = Math.max(0, own.ended.countBefore(sentAt) - own.sent.countBy(next.latest)) + 1;
      this.#initialCalls = Math.max(0, statement.limit - remaining - ownLeast);
      return true;
    }
    if (next.earliest > start.latest) {
      if (next.latest < start.earliest + windowMs - EARLY_START_MS_MAX) return false;
      this.#endWindow(Math.min(middleOf(next), middleOf(start) + windowMs), last.remaining, windowMs);
      this.#startWindow(next, sentAt);
      this.#initialCalls = 0;
      return true;
    }
    if (next.latest < start.earliest) return false;
    this.#start = { earliest: Math.max(start.earliest, next.earliest), latest: Math.min(start.latest, next.latest) };
    const ownSince = own.ended.countBefore(sentAt) - own.sent.countBy(last.answeredAt) - own.inDoubtAfter(last.sentAt);
    return remaining <= last.remaining - Math.max(0, ownSince) - 1 + MISMATCHES_MAX;
  }

  #startWindow(start: StartRange, sentAt: MonotonicMs): void {
    this.#start = start;
    this.#firstSentAt = sentAt;
    this.#observations = [{ at: middleOf(start), calls: 0 }];
  }

  /**
   * Estimates the external calls between the last statement of a window and its end, which are at most those that
   * remained.
   */
  #endWindow(endedAt: MonotonicMs, remaining: number, windowMs: DurationMs): void {
    const first = this.#observations[0]!;
    const { at, calls } = this.#observations.at(-1)!;
    const observedMs = Math.max(windowMs / EXTRAPOLATION_PARTS, at - first.at);
    const unobserved = Math.min(remaining, ((calls - first.calls) * Math.max(0, endedAt - at)) / observedMs);
    this.hiddenCalls += unobserved;
    this.lastWindowCalls = calls + unobserved;
  }

  #observe(at: MonotonicMs, calls: number, windowMs: DurationMs): void {
    this.provenCalls += calls - this.#observedCalls();
    this.#observations.push({ at, calls });
    const from = this.#observations.findLastIndex(
      (observation) => observation.at <= at - windowMs / EXTRAPOLATION_PARTS,
    );
    this.#observations = this.#observations.slice(Math.max(0, from));
  }
}

/** Returns the range of times in which the window that ends at the stated reset may have started. */
export function startRangeOf({ sentAt, answeredAt, resetAt, windowMs }: LimitStatement): StartRange {
  const latest = resetAt! - windowMs;
  return { earliest: latest - (answeredAt - sentAt) - 2 * ROUNDING_MS, latest };
}

const middleOf = ({ earliest, latest }: StartRange): MonotonicMs => (earliest + latest) / 2;
