import type { DurationMs } from "../base/duration.ts";
import type { Clock } from "../model/ports.ts";

/** A signal that aborts by itself. */
export interface Timeout {
  readonly signal: AbortSignal;
  /** Whether it aborted because the time was over. */
  expired(): boolean;
  /** Ends the wait: call it when what was limited is over. */
  stop(): void;
}

/** A signal that aborts with the caller's, or after `limitMs` on the clock. */
export function startTimeout(clock: Pick<Clock, "sleep">, limitMs: DurationMs, outer: AbortSignal): Timeout {
  const limit = new AbortController();
  const stop = new AbortController();
  let expired = false;
  const onOuter = () => limit.abort();
  outer.addEventListener("abort", onOuter, { once: true });
  if (outer.aborted) limit.abort();
  void clock.sleep(limitMs, stop.signal).then(() => {
    if (stop.signal.aborted) return;
    expired = true;
    limit.abort();
  });
  return {
    signal: limit.signal,
    expired: () => expired,
    stop() {
      // Without a reason each abort would build an exception with its stack, and there is one for every call.
      stop.abort(null);
      outer.removeEventListener("abort", onOuter);
    },
  };
}
