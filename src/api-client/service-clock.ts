import { SECOND_MS } from "../base/duration.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** The service's clock. */
export type ServiceClock = ReturnType<typeof createServiceClock>;

/** The bounds of the offset from our monotonic clock that hold since `from`. */
interface Offset {
  readonly from: MonotonicMs;
  readonly low: number;
  readonly high: number;
}

/** Maximum number of offsets that are kept. Behind a load balancer, servers with different clocks may alternate. */
const OFFSETS_MAX = 100;

/**
 * Creates the service's clock, derived from Date headers and our monotonic clock. Our wall clock is not used because it
 * may jump. A Date is truncated to seconds and was written between sending and receiving, so each response gives a lower
 * and an upper bound of the offset from our monotonic clock. Together they leave an uncertainty of a few milliseconds.
 * If bounds contradict earlier ones, the service's clock was set or has drifted. The earlier ones then remain valid only
 * for what was received before.
 */
export function createServiceClock() {
  /** Oldest first. */
  const offsets: Offset[] = [];
  return {
    /** Records the Date header of a response. Responses must be recorded in the order in which they were received. */
    recordDate(date: EpochMs, sentAt: MonotonicMs, receivedAt: MonotonicMs): void {
      const [atLeast, atMost] = [date - receivedAt, date + SECOND_MS - sentAt];
      const last = offsets.at(-1);
      const low = Math.max(last?.low ?? atLeast, atLeast);
      const high = Math.min(last?.high ?? atMost, atMost);
      if (last !== undefined && low <= high) offsets[offsets.length - 1] = { from: last.from, low, high };
      else offsets.push({ from: receivedAt, low: atLeast, high: atMost });
      if (offsets.length > OFFSETS_MAX) offsets.shift();
    },
    /** Returns the service's clock at `at`, as it was set then, or null before the first Date header. */
    timeAt(at: MonotonicMs): EpochMs | null {
      if (offsets.length === 0) return null;
      let index = offsets.length - 1;
      while (index > 0 && at < offsets[index]!.from) index--;
      const { low, high } = offsets[index]!;
      return at + (low + high) / 2;
    },
  };
}
