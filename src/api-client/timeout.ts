import type { DurationMs } from "../base/duration.ts";
import type { Clock } from "../model/ports.ts";

/** Creates a signal that aborts when `outer` aborts, or after `limitMs`. */
export function startTimeout(clock: Pick<Clock, "sleep">, limitMs: DurationMs, outer: AbortSignal) {
  const limit = new AbortController();
  const stop = new AbortController();
  void clock.sleep(limitMs, stop.signal).then(() => {
    if (!stop.signal.aborted) limit.abort();
  });
  return {
    signal: AbortSignal.any([outer, limit.signal]),
    /** Whether it aborted because of the time limit. */
    expired: () => limit.signal.aborted,
    /** Cancels the time limit. Call it when the operation has ended. */
    stop() {
      // Without a reason each abort would create an exception with a stack trace, once per call.
      stop.abort(null);
    },
  };
}
