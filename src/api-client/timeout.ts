import type { DurationMs } from "../base/duration.ts";
import type { Clock } from "../model/ports.ts";

/** A signal that aborts after a time limit. */
export interface Timeout {
  readonly signal: AbortSignal;
  /** Whether it aborted because of the time limit. */
  expired(): boolean;
  /** Cancels the time limit. Call it when the operation has ended. */
  stop(): void;
}

/** Creates a signal that aborts when `outer` aborts, or after `limitMs`. */
export function startTimeout(clock: Pick<Clock, "sleep">, limitMs: DurationMs, outer: AbortSignal): Timeout {
  const limit = new AbortController();
  const stop = new AbortController();
  void clock.sleep(limitMs, stop.signal).then(() => {
    if (!stop.signal.aborted) limit.abort();
  });
  return {
    signal: AbortSignal.any([outer, limit.signal]),
    expired: () => limit.signal.aborted,
    // Without a reason each abort would create an exception with a stack trace, once per call.
    stop: () => stop.abort(null),
  };
}
