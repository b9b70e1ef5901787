import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { EpochMs } from "../model/time.ts";

/** How far the service's clock is ahead of ours, learned from its Date headers. */
export interface ServiceClock {
  /** Takes in the Date of an answer whose request left at `sentAt` and that came back at `receivedAt`, on our clock. */
  learn(date: EpochMs, sentAt: EpochMs, receivedAt: EpochMs): void;
  /** Null before the first answer with a Date. */
  skewMs(): DurationMs | null;
}

/**
 * A Date is cut to seconds and was written between sending and receiving, so each answer bounds the skew from both
 * sides; the bounds of many answers together leave a few milliseconds. Bounds that contradict those before mean that a
 * clock was set: the old ones are forgotten.
 */
export function createServiceClock(): ServiceClock {
  let low = Number.NEGATIVE_INFINITY;
  let high = Number.POSITIVE_INFINITY;
  return {
    learn(date, sentAt, receivedAt) {
      const [atLeast, atMost] = [date - receivedAt, date + SECOND_MS - sentAt];
      low = Math.max(low, atLeast);
      high = Math.min(high, atMost);
      if (low > high) [low, high] = [atLeast, atMost];
    },
    skewMs: () => (Number.isFinite(low) ? (low + high) / 2 : null),
  };
}
