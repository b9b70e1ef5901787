import type { DurationMs } from "../base/duration.ts";
import type { Clock } from "../model/ports.ts";

/**
 * Creates a signal that aborts when `outer` aborts, or after `limitMs`. `AbortSignal.any` would do the former too, but it
 * leaves weak references in `outer`, which only a collection of the whole heap removes.
 */
export function startTimeout(clock: Pick<Clock, "sleep">, limitMs: DurationMs, outer: AbortSignal) {
  const either = new AbortController();
  const stop = new AbortController();
  let isExpired = false;
  const abort = () => either.abort(outer.reason);
  if (outer.aborted) abort();
  else outer.addEventListener("abort", abort);
  void clock.sleep(limitMs, stop.signal).then(() => {
    if (stop.signal.aborted) return;
    isExpired = true;
    either.abort();
  });
  return {
    signal: either.signal,
    /** Whether the time limit was reached. */
    expired: () => isExpired,
    /** Cancels the time limit, and stops following `outer`. Call it when the operation has ended. */
    stop() {
      outer.removeEventListener("abort", abort);
      // Without a reason each abort would create an exception with a stack trace, once per call.
      stop.abort(null);
    },
  };
}
