import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createPerClient, type PerClient } from "./client-address.ts";
import type { WebSettings } from "./web-settings.ts";

/** Probes, scrapes and other requests have separate limits, so that a flood of one does not stop the others. */
export type Traffic = "health" | "metrics" | "other";

/** The limit that a request exceeds, and when the next request is allowed. */
export interface RateExcess {
  readonly of: "client" | "all";
  readonly retryAfterMs: DurationMs;
}

/** A bucket of tokens, as `rate_limit` of the exporter-toolkit has it. */
export interface TokenBucket {
  /** Takes a token and returns 0; if there is none, returns the time until there is one. */
  take(now: MonotonicMs): DurationMs;
}

/** Creates a full bucket. It fills by one token each `intervalMs`, up to `burst`. */
export function createTokenBucket({
  intervalMs,
  burst,
}: {
  readonly intervalMs: DurationMs;
  readonly burst: number;
}): TokenBucket {
  let tokens = burst;
  let filledAt: MonotonicMs | null = null;
  return {
    take(now) {
      tokens = Math.min(burst, tokens + (now - (filledAt ?? now)) / intervalMs);
      filledAt = now;
      if (tokens < 1) return (1 - tokens) * intervalMs;
      tokens -= 1;
      return 0;
    },
  };
}

/** Limits the requests of each client, and those of all together. */
export interface RequestRateLimiter {
  /** Counts a request; null: it is within the limits. */
  count(client: string, traffic: Traffic, limit: WebSettings["rate"]): RateExcess | null;
}

/** Sustained requests of one client per second. The status page sends a tenth of that at most. */
export const CLIENT_REQUESTS_PER_SECOND = 100;
const CLIENT_REQUEST_BUCKET = { intervalMs: SECOND_MS / CLIENT_REQUESTS_PER_SECOND, burst: 1_000 };

/** Creates a rate limiter with full buckets. */
export function createRequestRateLimiter(clock: Pick<Clock, "monotonic">): RequestRateLimiter {
  const buckets = () => createPerClient(() => createTokenBucket(CLIENT_REQUEST_BUCKET));
  const clients: Readonly<Record<Traffic, PerClient<TokenBucket>>> = {
    health: buckets(),
    metrics: buckets(),
    other: buckets(),
  };
  let shared: { readonly limit: NonNullable<WebSettings["rate"]>; readonly bucket: TokenBucket } | null = null;

  /** Full again when the limit changes. */
  function sharedBy(limit: NonNullable<WebSettings["rate"]>): TokenBucket {
    const isSame = shared?.limit.intervalMs === limit.intervalMs && shared.limit.burst === limit.burst;
    if (shared === null || !isSame) shared = { limit, bucket: createTokenBucket(limit) };
    return shared.bucket;
  }

  return {
    count(client, traffic, limit) {
      const now = clock.monotonic();
      const ownMs = clients[traffic].get(client).take(now);
      if (ownMs > 0) return { of: "client", retryAfterMs: ownMs };
      const allMs = limit === null || traffic === "health" ? 0 : sharedBy(limit).take(now);
      return allMs > 0 ? { of: "all", retryAfterMs: allMs } : null;
    },
  };
}
