import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";
import { createPerClient, type PerClient } from "../client-address.ts";
import type { WebSettings } from "../web-settings.ts";
import { createTokenBucket, type TokenBucket } from "./token-bucket.ts";

/** Probes, scrapes and all else are counted apart: a flood of one leaves the others of its client alone. */
export type Traffic = "health" | "metrics" | "other";

/** More requests than may be: whose limit it is, and when there is room again. */
export interface RateExcess {
  readonly of: "client" | "all";
  readonly retryAfterMs: DurationMs;
}

/** Limits the requests of each client, and those of all together. */
export interface RequestRateLimiter {
  /** Counts a request; null: it is within the limits. */
  count(client: string, traffic: Traffic, limit: WebSettings["rate"]): RateExcess | null;
}

/** Requests of one client a second, in the long run: a page that shows all there is asks a tenth as often. */
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
