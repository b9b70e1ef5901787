import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import { runInSlices } from "../../platform/event-loop.ts";

/** Maximum length of the queue. Further requests are rejected with 503. */
const QUEUED_REQUESTS_MAX = 64;
/** After a shorter request, one turn of the event loop is a sufficient pause. */
const PAUSE_MS_MIN: DurationMs = 1;
/** Limits the pause if something else blocked the event loop. */
const PAUSE_MS_MAX: DurationMs = SECOND_MS / 4;

/** A queue of requests that occupy the event loop. */
export interface RequestQueue {
  /** Resolves when a request may run, or returns null if the queue is full. */
  enter(): Promise<void> | null;
  /** Runs all steps of an answer in slices. Call it before the request waits for anything else. */
  runSteps: RunSteps;
}

/** Runs all steps of an answer. Resolves to their result. */
export type RunSteps = <Result>(steps: Iterator<unknown, Result>) => Promise<Result>;

/**
 * Creates a queue that runs one request at a time and pauses for as long as each took, which leaves half of the event
 * loop's time to scrapes, polling and remediation.
 */
export function createRequestQueue(clock: Pick<Clock, "monotonic" | "sleep">): RequestQueue {
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();
  let running: Promise<unknown> = Promise.resolve();

  async function pause(): Promise<void> {
    const began = clock.monotonic();
    // The request runs in this turn of the event loop, or begins its steps in it.
    await new Promise((resolve) => setImmediate(resolve));
    await running;
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
      last = turn.then(pause);
      return turn;
    },
    runSteps(steps) {
      const result = runInSlices(steps, clock);
      running = result.catch(() => undefined);
      return result;
    },
  };
}
