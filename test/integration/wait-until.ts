import { type DurationMs, SECOND_MS } from "../../src/base/duration.ts";
import { systemClock } from "../../src/platform/clock.ts";

/** Real time between two probes. */
const POLL_INTERVAL_MS: DurationMs = 10;
/** The pause after a probe, as a multiple of its duration: a scrape must not slow down what it waits for. */
const PAUSE_FACTOR = 4;
const POLL_INTERVAL_MS_MAX: DurationMs = 100;
/** Usually a second is enough; a busy machine needs longer. */
const WAIT_MS_MAX: DurationMs = 20 * SECOND_MS;

type Probe<T> = () => T | Promise<T>;

/** Probes until there is a result, and returns it. Throws after `waitMs`, with `what` was expected. */
export async function waitUntil<T>(
  what: string | (() => string),
  probe: Probe<T | null | undefined | false>,
  waitMs: DurationMs = WAIT_MS_MAX,
): Promise<T> {
  const endsAt = systemClock.monotonic() + waitMs;
  for (;;) {
    const probedAt = systemClock.monotonic();
    const seen = await probe();
    if (seen !== null && seen !== undefined && seen !== false) return seen;
    if (systemClock.monotonic() > endsAt) {
      const missing = typeof what === "string" ? what : what();
      throw new Error(`not within ${waitMs / SECOND_MS} s: ${missing}`);
    }
    const pauseMs = PAUSE_FACTOR * (systemClock.monotonic() - probedAt);
    await systemClock.sleep(Math.min(POLL_INTERVAL_MS_MAX, Math.max(POLL_INTERVAL_MS, pauseMs)));
  }
}
