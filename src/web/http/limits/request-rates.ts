import { type DurationMs, SECOND_MS } from "../../../base/duration.ts";
import type { Clock } from "../../../model/ports.ts";
import { type Bucket, createBucket } from "./token-bucket.ts";
import { type ByClient, byClient } from "../client-address.ts";
import type { Terms } from "../web-settings.ts";

/** Probes, scrapes and all else are counted apart: a flood of one leaves the others of its client alone. */
export type Traffic = "health" | "metrics" | "other";

/** More requests than may be: whose limit it is, and when there is room again. */
export interface Excess {
  readonly of: "client" | "all";
  readonly retryAfterMs: DurationMs;
}

/** Limits the requests of each client, and those of all together. */
export interface Rates {
  /** Counts a request; null: it is within the limits. */
  count(client: string, traffic: Traffic, limit: Terms["rate"]): Excess | null;
}

/** Requests of one client a second, in the long run: a page that shows all there is asks a tenth as often. */
export const CLIENT_REQUESTS_PER_SECOND = 100;
const CLIENT_REQUESTS = { intervalMs: SECOND_MS / CLIENT_REQUESTS_PER_SECOND, burst: 1_000 };

/** Creates a rate limiter with full buckets. */
export function createRates(clock: Pick<Clock, "monotonic">): Rates {
  const buckets = () => byClient(() => createBucket(CLIENT_REQUESTS));
  const clients: Readonly<Record<Traffic, ByClient<Bucket>>> = {
    health: buckets(),
    metrics: buckets(),
    other: buckets(),
  };
  let shared: { readonly limit: NonNullable<Terms["rate"]>; readonly bucket: Bucket } | null = null;

  /** Full again when the limit changes. */
  function sharedBy(limit: NonNullable<Terms["rate"]>): Bucket {
    const isSame = shared?.limit.intervalMs === limit.intervalMs && shared.limit.burst === limit.burst;
    if (shared === null || !isSame) shared = { limit, bucket: createBucket(limit) };
    return shared.bucket;
  }

  return {
    count(client, traffic, limit) {
      const now = clock.monotonic();
      const ownMs = clients[traffic].of(client).take(now);
      if (ownMs > 0) return { of: "client", retryAfterMs: ownMs };
      const allMs = limit === null || traffic === "health" ? 0 : sharedBy(limit).take(now);
      return allMs > 0 ? { of: "all", retryAfterMs: allMs } : null;
    },
  };
}
