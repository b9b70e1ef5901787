import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";

/** Runs requests that block the event loop one at a time, with a pause after each that lasts as long as the request took. */
export interface RequestQueue {
  /** Resolves when the request may run; null: the queue is full. */
  enter(): Promise<void> | null;
}

/** Longest queue; further requests are rejected with 503. */
const QUEUED_REQUESTS_MAX = 64;
/** After shorter work one turn of the event loop is pause enough. */
const PAUSE_MS_MIN: DurationMs = 1;
/** Bounds the pause when something else blocked the event loop meanwhile. */
const PAUSE_MS_MAX: DurationMs = SECOND_MS / 4;

/** Creates an empty queue. It leaves half of the event loop's time to scrapes, polling and remediation. */
export function createRequestQueue(clock: Pick<Clock, "monotonic" | "sleep">): RequestQueue {
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();

  async function rest(): Promise<void> {
    const began = clock.monotonic();
    // The request runs in this turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    const tookMs = clock.monotonic() - began;
    if (tookMs >= PAUSE_MS_MIN) await clock.sleep(Math.min(tookMs, PAUSE_MS_MAX));
  }

  return {
    enter() {
      if (waiting >= QUEUED_REQUESTS_MAX) return null;
      waiting++;
      const turn = last.then(() => {
        waiting--;
      });
      last = turn.then(rest);
      return turn;
    },
  };
}
