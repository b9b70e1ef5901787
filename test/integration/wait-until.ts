import { type DurationMs, SECOND_MS } from "../../src/base/duration.ts";
import { createSystemClock } from "../../src/platform/clock.ts";

/** Between two looks, in real time. */
const POLL_INTERVAL_MS: DurationMs = 10;
/** What a test waits for comes within a second or two; this long on a machine that does much else. */
const WAIT_MS_MAX: DurationMs = 20 * SECOND_MS;

type Probe<T> = () => T | Promise<T>;

/** Looks again and again until there is something to see, and gives it. Past the bound it fails, and says what did not come. */
export async function waitUntil<T>(
  what: string | (() => string),
  probe: Probe<T | null | undefined | false>,
  waitMs: DurationMs = WAIT_MS_MAX,
): Promise<T> {
  const clock = createSystemClock();
  const endsAt = clock.monotonic() + waitMs;
  for (;;) {
    const seen = await probe();
    if (seen !== null && seen !== undefined && seen !== false) return seen;
    if (clock.monotonic() > endsAt) {
      const missing = typeof what === "string" ? what : what();
      throw new Error(`it did not come within ${waitMs / SECOND_MS} s that ${missing}`);
    }
    await clock.sleep(POLL_INTERVAL_MS);
  }
}
