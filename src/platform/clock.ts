import type { DurationMs } from "../base/duration.ts";
import type { Clock } from "../model/ports.ts";
import type { MonotonicMs } from "../model/time.ts";

/** Longest timer. With a longer one setTimeout fires immediately, so a longer sleep uses several. */
const TIMER_MS_MAX: DurationMs = 2 ** 31 - 1;

/** The system clock. A sleep never ends early by the monotonic clock; `Infinity` lasts until the signal aborts. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => sleepUntil(performance.now() + ms, signal),
};

function sleepUntil(end: MonotonicMs, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout;
    const finish = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const arm = () => {
      // Timers are in whole milliseconds since the start of the event loop iteration, so rounding down would wake up
      // early.
      timer = setTimeout(wake, Math.min(Math.ceil(Math.max(0, end - performance.now())), TIMER_MS_MAX));
    };
    const wake = () => (performance.now() < end ? arm() : finish());
    signal?.addEventListener("abort", finish, { once: true });
    arm();
  });
}
