import { type DurationMs, MINUTE_MS } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";
import type { MonotonicMs } from "../../../model/time.ts";
import { createPerClient } from "../client-address.ts";

/** Maximum number of failed logins of a client in {@link FAILED_ATTEMPTS_WINDOW_MS}. */
const FAILED_ATTEMPTS_MAX = 10;
const FAILED_ATTEMPTS_WINDOW_MS: DurationMs = MINUTE_MS;

/**
 * Creates a counter of the failed logins of each client in the last minute. An attempt counts from its start, so
 * parallel attempts count like sequential ones.
 */
export function createFailedAttempts(clock: Pick<Clock, "monotonic">) {
  const attemptsOf = createPerClient<{ at: readonly MonotonicMs[] }>(() => ({ at: [] }));
  return {
    /** Counts an attempt and returns 0; after too many failed ones, returns the time until the next one is allowed. */
    begin(client: string): DurationMs {
      const own = attemptsOf(client);
      const now = clock.monotonic();
      own.at = own.at.filter((at) => now - at < FAILED_ATTEMPTS_WINDOW_MS);
      const [oldest] = own.at;
      if (oldest !== undefined && own.at.length >= FAILED_ATTEMPTS_MAX) return oldest + FAILED_ATTEMPTS_WINDOW_MS - now;
      own.at = [...own.at, now];
      return 0;
    },
    /** Removes the last attempt, which succeeded or was not checked. */
    forgive(client: string): void {
      const own = attemptsOf(client);
      own.at = own.at.slice(0, -1);
    },
  };
}
