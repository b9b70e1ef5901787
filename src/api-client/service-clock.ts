import { SECOND_MS } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** The service's clock. */
export type ServiceClock = ReturnType<typeof createServiceClock>;

/**
 * Creates the service's clock, derived from Date headers and our monotonic clock. Our wall clock is not used because it
 * may jump. A Date is truncated to seconds and was written between sending and receiving, so each response gives a lower
 * and an upper bound of the offset from our monotonic clock. Together they leave an uncertainty of a few milliseconds.
 * If bounds contradict earlier ones, the service's clock was set or has drifted, and the earlier ones are dropped.
 */
export function createServiceClock() {
  let low = Number.NEGATIVE_INFINITY;
  let high = Number.POSITIVE_INFINITY;
  return {
    /** Records the Date header of a response. */
    recordDate(date: EpochMs, sentAt: MonotonicMs, receivedAt: MonotonicMs): void {
      const [atLeast, atMost] = [date - receivedAt, date + SECOND_MS - sentAt];
      low = Math.max(low, atLeast);
      high = Math.min(high, atMost);
      if (low > high) [low, high] = [atLeast, atMost];
    },
    /** Returns the service's clock at `at`, or null before the first Date header. */
    timeAt: (at: MonotonicMs): EpochMs | null => (Number.isFinite(low) ? at + (low + high) / 2 : null),
  };
}
