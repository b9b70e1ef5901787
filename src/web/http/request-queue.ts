import { setImmediate } from "node:timers/promises";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";

/** Maximum length of the queue. Further requests are rejected with 503. */
const QUEUED_REQUESTS_MAX = 64;
/** After a shorter request, one turn of the event loop is a sufficient pause. */
const PAUSE_MS_MIN: DurationMs = 1;
/**
 * Maximum pause. If a request took longer, it ran in slices that left time for other work, or something else blocked the
 * event loop.
 */
const PAUSE_MS_MAX: DurationMs = SECOND_MS / 4;

/**
 * Creates a queue that runs one request at a time. After each it pauses for as long as the request took, but at most for
 * a quarter of a second. This leaves half of the event loop's time to scrapes, polling and remediation.
 */
export function createRequestQueue(clock: Pick<Clock, "monotonic" | "sleep">) {
  let waiting = 0;
  let last: Promise<void> = Promise.resolve();
  /** Resolves to whether the work of the current request has ended. */
  let occupied: Promise<boolean>;

  async function pause(): Promise<void> {
    const began = clock.monotonic();
    occupied = Promise.resolve(true);
    // The request runs in this turn of the event loop, or occupies the queue in it.
    await setImmediate();
    const hasEnded = await occupied;
    // Its response is written as JSON in the turn in which its work ends.
    await setImmediate();
    const tookMs = clock.monotonic() - began;
    // A request that has not ended waits for a database, which takes no time from other work.
    if (hasEnded && tookMs >= PAUSE_MS_MIN) await clock.sleep(Math.min(tookMs, PAUSE_MS_MAX));
  }

  /** Resolves to true when work has ended, or to false after `msMax`. */
  async function waitUpTo(msMax: DurationMs, work: Promise<unknown>): Promise<boolean> {
    const ended = new AbortController();
    const settled = work.catch(() => undefined).then(() => ended.abort());
    await (msMax === Number.POSITIVE_INFINITY ? settled : Promise.race([settled, clock.sleep(msMax, ended.signal)]));
    return ended.signal.aborted;
  }

  return {
    /** Resolves when a request may run, or returns null if the queue is full. */
    enter(): Promise<void> | null {
      if (waiting >= QUEUED_REQUESTS_MAX) return null;
      waiting++;
      const turn = last.then(() => {
        waiting--;
      });
      last = turn.then(pause);
      return turn;
    },
    /**
     * Keeps the next request waiting until `work` of the current one has ended, but for at most `msMax`, after which
     * there is no pause. Call it before the current one waits for anything. Returns `work`.
     */
    occupy<Result>(work: Promise<Result>, msMax: DurationMs = Number.POSITIVE_INFINITY): Promise<Result> {
      occupied = waitUpTo(msMax, work);
      return work;
    },
  };
}
