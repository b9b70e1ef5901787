import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { TransportResponse } from "../../../src/model/ports.ts";
import type { MonotonicMs } from "../../../src/model/time.ts";
import { HOLDS_FACT } from "../../../src/rate-limit/stored-holds.ts";
import type { PostAnswer, SimulationParts } from "../daemon/simulation-parts.ts";

/** A wait that the service requested for a list. */
interface RequestedWait {
  readonly at: MonotonicMs;
  readonly until: MonotonicMs;
  readonly wallClock: number;
  readonly config: SimulationParts["config"];
}

/** Precision of times that are sums of fractions. */
const PRECISION_MS: DurationMs = 1;
/** The daemon waits for at most this long after a 5xx. */
const OVERLOAD_MS_MAX: DurationMs = 15 * MINUTE_MS;

/** Returns the wait that a 429 or 503 requests, in seconds or until an HTTP-date; NaN if it requests none. */
function requestedWaitMs({ status, headers }: TransportResponse): DurationMs {
  const { "retry-after": retryAfter = "", date = "" } = headers;
  const waitMs = /^\d+$/.test(retryAfter) ? Number(retryAfter) * SECOND_MS : Date.parse(retryAfter) - Date.parse(date);
  return status === 503 ? Math.min(OVERLOAD_MS_MAX, waitMs) : waitMs;
}

/** Checks that no list is read before the Retry-After of its last 429 or 503 has passed, not even after a restart. */
export function createRetryAfterInvariant(parts: SimulationParts) {
  const { clock, machine, recordedState } = parts;
  const waits = new Map<string, RequestedWait>();
  const listOf = (path: string): string => path.slice(0, path.indexOf("?") + 1);

  /** Returns whether the process knows of a wait: it got the response, or its predecessor has stored it. */
  function isKnown({ at, wallClock }: RequestedWait): boolean {
    if (parts.processStartedAt <= at) return true;
    const stored = JSON.parse(recordedState.factsAtStart.get(HOLDS_FACT) ?? "null") as { readonly at: number } | null;
    // A step of the wall clock changes how long the process seems to have been down.
    return stored !== null && stored.at >= wallClock && clock.now() - clock.monotonic() === wallClock - at;
  }

  return {
    recordAnswer(path: string, answer: PostAnswer): void {
      const list = listOf(path);
      if (list === "" || !answer.ok || (answer.value.status !== 429 && answer.value.status !== 503)) return;
      const waitMs = requestedWaitMs(answer.value);
      const at = clock.monotonic();
      if (waitMs > 0) waits.set(list, { at, until: at + waitMs, wallClock: clock.now(), config: parts.config });
    },
    /** Returns how a request violates the invariant, or null if it does not. */
    violation(path: string): string | null {
      const wait = waits.get(listOf(path));
      const now = clock.monotonic();
      if (wait === undefined || now + PRECISION_MS >= wait.until || !isKnown(wait)) return null;
      // A reload may end the wait, and a suspended machine delays the response.
      if (wait.config !== parts.config || machine.resumedAt() >= wait.at) return null;
      return `${path} was requested ${(wait.until - now) / SECOND_MS} s before the end of Retry-After`;
    },
  };
}
