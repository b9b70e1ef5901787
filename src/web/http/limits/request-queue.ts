import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";

/** Lets work that holds the loop through one at a time, with as long a pause after it as it took. */
export interface RequestQueue {
  /** Resolves when it is its turn; null: too many wait already. */
  enter(): Promise<void> | null;
}

/** Longest queue; further requests are rejected with 503. */
const QUEUED_REQUESTS_MAX = 64;
/** Shorter work is not worth a timer: letting the loop turn once is pause enough. */
const PAUSE_MS_MIN: DurationMs = 1;
/** A loop that was held up by something else must not be rested for it. */
const PAUSE_MS_MAX: DurationMs = SECOND_MS / 4;

/** Creates an empty queue. It leaves half of the event loop's time to scrapes, polling and remediation. */
export function createRequestQueue(clock: Pick<Clock, "monotonic" | "sleep">): RequestQueue {
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();

  /** From the turn of one to that of the next. */
  async function rest(): Promise<void> {
    const began = clock.monotonic();
    // The work is done in this turn of the loop, or at its end: the next one begins behind it.
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
