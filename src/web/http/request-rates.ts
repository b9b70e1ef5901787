import { isDeepStrictEqual } from "node:util";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createPerClient } from "./client-address.ts";
import type { WebSettings } from "./web-settings.ts";

/** Probes, scrapes and other requests have separate limits, so that a flood of one does not stop the others. */
export type Traffic = "health" | "metrics" | "other";

/** Takes a token and returns 0, or returns the time until there is one. */
type TakeToken = (now: MonotonicMs) => DurationMs;

/**
 * Creates a full token bucket, as exporter-toolkit's `rate_limit` defines it: one token each `intervalMs`, up to
 * `burst`.
 */
export function createTokenBucket({ intervalMs, burst }: NonNullable<WebSettings["rate"]>): TakeToken {
  let tokens = burst;
  let filledAt: MonotonicMs | null = null;
  return (now) => {
    tokens = Math.min(burst, tokens + (now - (filledAt ?? now)) / intervalMs);
    filledAt = now;
    if (tokens < 1) return (1 - tokens) * intervalMs;
    tokens -= 1;
    return 0;
  };
}

/** Sustained rate of one client's requests. The status page sends far fewer. */
export const CLIENT_REQUESTS_PER_SECOND = 100;
const CLIENT_REQUEST_BUCKET = { intervalMs: SECOND_MS / CLIENT_REQUESTS_PER_SECOND, burst: 1_000 };

/**
 * Creates limits on the requests of each client and of all clients together, with full buckets. Returns a function that
 * counts a request. It returns null if the request is within the limits, and otherwise the limit that it exceeds and the
 * time until the next request is allowed.
 */
export function createRequestRateLimiter(clock: Pick<Clock, "monotonic">) {
  const buckets = () => createPerClient(() => createTokenBucket(CLIENT_REQUEST_BUCKET));
  const bucketOf = { health: buckets(), metrics: buckets(), other: buckets() };
  let sharedLimit: WebSettings["rate"] = null;
  let sharedBucket: TakeToken | null = null;

  /** A changed limit starts with a full bucket. */
  function takeShared(limit: NonNullable<WebSettings["rate"]>, now: MonotonicMs): DurationMs {
    if (sharedBucket === null || !isDeepStrictEqual(sharedLimit, limit)) sharedBucket = createTokenBucket(limit);
    sharedLimit = limit;
    return sharedBucket(now);
  }

  return (client: string, traffic: Traffic, limit: WebSettings["rate"]) => {
    const now = clock.monotonic();
    const ownMs = bucketOf[traffic](client)(now);
    if (ownMs > 0) return { of: "client", retryAfterMs: ownMs } as const;
    const allMs = limit === null || traffic === "health" ? 0 : takeShared(limit, now);
    return allMs > 0 ? ({ of: "all", retryAfterMs: allMs } as const) : null;
  };
}

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
