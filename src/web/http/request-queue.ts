import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";

/** Maximum length of the queue. Further requests are rejected with 503. */
const QUEUED_REQUESTS_MAX = 64;
/** After a shorter request, one turn of the event loop is a sufficient pause. */
const PAUSE_MS_MIN: DurationMs = 1;
/** Limits the pause if something else blocked the event loop. */
const PAUSE_MS_MAX: DurationMs = SECOND_MS / 4;

/**
 * Creates a queue of requests that block the event loop. It runs one at a time and pauses for as long as each took,
 * which leaves half of the event loop's time to scrapes, polling and remediation. Returns a function that resolves when
 * a request may run, or returns null if the queue is full.
 */
export function createRequestQueue(clock: Pick<Clock, "monotonic" | "sleep">): () => Promise<void> | null {
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();

  async function pause(): Promise<void> {
    const began = clock.monotonic();
    // The request runs in this turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    const tookMs = clock.monotonic() - began;
    if (tookMs >= PAUSE_MS_MIN) await clock.sleep(Math.min(tookMs, PAUSE_MS_MAX));
  }

  return () => {
    if (waiting >= QUEUED_REQUESTS_MAX) return null;
    waiting++;
    const turn = last.then(() => {
      waiting--;
    });
    last = turn.then(pause);
    return turn;
  };
}
