import type { DurationMs } from "../base/duration.ts";
import { pollingConcurrency } from "./ledger.ts";
import type { Limits } from "./limits.ts";

/**
 * Most calls of one collector under way at once, whatever the plan allows: 77 calls a second at 2 s each need 154 of
 * them. Each is a socket of ours and of the service.
 */
export const IN_FLIGHT_MAX = 256;
/** Fewest calls under way at once, where the plan allows them: enough to learn the latency of a slow service from. */
const IN_FLIGHT_MIN = 4;
/** Latency varies, and retries of a few calls take many times the mean. */
const HEADROOM = 2;

/** Maximum number of concurrent calls of one collector, at least 1: the plan's concurrency less the reserve. */
export const callsInFlightMax = (limits: Limits): number =>
  Math.min(IN_FLIGHT_MAX, pollingConcurrency(limits) ?? IN_FLIGHT_MAX);

/**
 * Calls to keep under way so that one can start every `spacingMs` where each takes `latencyMs` on average (Little's law,
 * with headroom): a whole number from 1 to `max`.
 */
export function callsInFlightNeeded(spacingMs: DurationMs, latencyMs: DurationMs, max: number): number {
  const needed = spacingMs > 0 ? Math.ceil((HEADROOM * latencyMs) / spacingMs) : Number.POSITIVE_INFINITY;
  return Math.max(1, Math.min(max, Math.max(IN_FLIGHT_MIN, needed)));
}

/** Mean latency of recent calls. */
export interface MeanLatency {
  record(tookMs: DurationMs): void;
  /** 0 before the first call. */
  meanMs(): DurationMs;
}

/** Number of calls in the mean. */
const LATENCY_SAMPLE_CALLS = 32;

/** Creates a mean without samples. */
export function createMeanLatency(): MeanLatency {
  let calls = 0;
  let mean: DurationMs = 0;
  return {
    record(tookMs) {
      calls = Math.min(LATENCY_SAMPLE_CALLS, calls + 1);
      mean += (tookMs - mean) / calls;
    },
    meanMs: () => mean,
  };
}
