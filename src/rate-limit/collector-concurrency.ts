import type { DurationMs } from "../base/duration.ts";
import { type Limits, pollingConcurrency } from "./limits.ts";

/**
 * Maximum number of concurrent calls of one collector, even if the plan allows more. 77 calls per second that take 2 s
 * each need 154. Each call uses a socket here and at the service.
 */
export const IN_FLIGHT_MAX = 256;
/**
 * Minimum number of concurrent calls, if the plan allows them, which suffices to measure the latency of a slow service.
 */
const IN_FLIGHT_MIN = 4;
/** Factor on the calls needed, since latency varies and retried calls take many times the mean. */
const HEADROOM = 2;

/**
 * Returns the maximum number of concurrent calls of one collector, which is the plan's concurrency less the reserve,
 * but at least 1 and at most {@link IN_FLIGHT_MAX}.
 */
export const callsInFlightMax = (limits: Limits): number =>
  Math.min(IN_FLIGHT_MAX, pollingConcurrency(limits) ?? IN_FLIGHT_MAX);

/**
 * Returns the number of concurrent calls, 1 to `max`, that are needed to start one every `spacingMs` if each takes
 * `latencyMs` on average (Little's law, with headroom).
 */
export function callsInFlightNeeded(spacingMs: DurationMs, latencyMs: DurationMs, max: number): number {
  const needed = spacingMs > 0 ? Math.ceil((HEADROOM * latencyMs) / spacingMs) : Number.POSITIVE_INFINITY;
  return Math.max(1, Math.min(max, Math.max(IN_FLIGHT_MIN, needed)));
}

/** A page that takes longer than this multiple of the mean latency of first pages must have waited in a queue. */
const QUEUE_FACTOR = 2;
/** Share by which one such page reduces the number of concurrent pages. */
const QUEUE_DECREASE = 0.1;

/**
 * Creates an estimate of how many pages of a list the service can process at the same time without a queue. It grows by
 * one with each page, and shrinks with each page that waited in a queue. If the service can't keep up, more concurrent
 * calls only lengthen its queue until all calls time out. The next walk of the list continues with the same estimate.
 */
export function createPagesInFlight() {
  const first = createMeanLatency();
  let max = IN_FLIGHT_MIN;
  return {
    /** Records the latency of a page. `isFirst`: it is the first of a walk, while no other page is in flight. */
    record(tookMs: DurationMs, isFirst: boolean): void {
      if (isFirst) first.record(tookMs);
      else if (tookMs <= QUEUE_FACTOR * first.meanMs()) max = Math.min(IN_FLIGHT_MAX, max + 1);
      else max = Math.max(IN_FLIGHT_MIN, max * (1 - QUEUE_DECREASE));
    },
    max: (): number => Math.floor(max),
  };
}

/** Number of calls in the mean. */
const LATENCY_SAMPLE_CALLS = 32;

/** Creates the mean latency of recent calls, 0 before the first. */
export function createMeanLatency() {
  let calls = 0;
  let mean: DurationMs = 0;
  return {
    record(tookMs: DurationMs): void {
      calls = Math.min(LATENCY_SAMPLE_CALLS, calls + 1);
      mean += (tookMs - mean) / calls;
    },
    meanMs: (): DurationMs => mean,
  };
}
