import { SECOND_MS } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** The service's clock, learned from its Date headers. Our wall clock has no part in it: it may be set at any time. */
export interface ServiceClock {
  /** Takes in the Date of an answer whose request left at `sentAt` and that came back at `receivedAt`. */
  recordDate(date: EpochMs, sentAt: MonotonicMs, receivedAt: MonotonicMs): void;
  /** What the service's clock showed, or shows, at `at`; null before the first answer with a Date. */
  timeAt(at: MonotonicMs): EpochMs | null;
}

/**
 * A Date is cut to seconds and was written between sending and receiving, so each answer bounds from both sides how far
 * the service's clock is ahead of our monotonic one; the bounds of many answers together leave a few milliseconds.
 * Bounds that contradict those before mean that the service's clock was set, or that the two drifted apart over days:
 * the old ones are forgotten.
 */
export function createServiceClock(): ServiceClock {
  let low = Number.NEGATIVE_INFINITY;
  let high = Number.POSITIVE_INFINITY;
  return {
    recordDate(date, sentAt, receivedAt) {
      const [atLeast, atMost] = [date - receivedAt, date + SECOND_MS - sentAt];
      low = Math.max(low, atLeast);
      high = Math.min(high, atMost);
      if (low > high) [low, high] = [atLeast, atMost];
    },
    timeAt: (at) => (Number.isFinite(low) ? at + (low + high) / 2 : null),
  };
}
