import { type DurationMs, MINUTE_MS } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";
import type { MonotonicMs } from "../../../model/time.ts";
import { createPerClient } from "../client-address.ts";

/** Counts the passwords of each client that were not right, in the last minute. */
export interface FailedAttempts {
  /** Counts one, to be forgiven if it was right: 0. There were too many: the time until one more is looked at. */
  begin(client: string): DurationMs;
  forgive(client: string): void;
}

/** Passwords that a client may have checked in a minute, the right ones not counted: enough for a person who mistypes. */
const FAILED_ATTEMPTS_MAX = 10;
const FAILED_ATTEMPTS_WINDOW_MS: DurationMs = MINUTE_MS;

/** Creates an empty counter. An attempt counts from its start, so parallel attempts count like sequential ones. */
export function createFailedAttempts(clock: Pick<Clock, "monotonic">): FailedAttempts {
  const clients = createPerClient<{ at: readonly MonotonicMs[] }>(() => ({ at: [] }));
  return {
    begin(client) {
      const own = clients.get(client);
      const now = clock.monotonic();
      own.at = own.at.filter((at) => now - at < FAILED_ATTEMPTS_WINDOW_MS);
      const [oldest] = own.at;
      if (oldest !== undefined && own.at.length >= FAILED_ATTEMPTS_MAX) return oldest + FAILED_ATTEMPTS_WINDOW_MS - now;
      own.at = [...own.at, now];
      return 0;
    },
    forgive(client) {
      const own = clients.get(client);
      own.at = own.at.slice(0, -1);
    },
  };
}
