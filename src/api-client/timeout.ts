import type { DurationMs } from "../base/duration.ts";
import type { Clock } from "../model/ports.ts";

/** Creates a signal that aborts when `outer` aborts, or after `limitMs`. */
export function startTimeout(clock: Pick<Clock, "sleep">, limitMs: DurationMs, outer: AbortSignal) {
  const current = new AbortController();
  const stop = new AbortController();
  let isExpired = false;
  // AbortSignal.any takes several times as long, and there are two time limits per call.
  const onOuterAbort = () => current.abort(outer.reason);
  if (outer.aborted) onOuterAbort();
  else outer.addEventListener("abort", onOuterAbort, { once: true });
  void clock.sleep(limitMs, stop.signal).then(() => {
    if (stop.signal.aborted || current.signal.aborted) return;
    isExpired = true;
    current.abort();
  });
  return {
    signal: current.signal,
    /** Whether it aborted because of the time limit. */
    expired: () => isExpired,
    /** Cancels the time limit. Call it when the operation has ended: the signal then no longer aborts. */
    stop() {
      outer.removeEventListener("abort", onOuterAbort);
      // Without a reason each abort would create an exception with a stack trace, once per call.
      stop.abort(null);
    },
  };
}
