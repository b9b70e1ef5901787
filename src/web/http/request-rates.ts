import { isDeepStrictEqual } from "node:util";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { Clock } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { createPerClient, type PerClient } from "./client-address.ts";
import type { WebSettings } from "./web-settings.ts";

/** Probes, scrapes and other requests have separate limits, so that a flood of one does not stop the others. */
export type Traffic = "health" | "metrics" | "other";

/** The limit that a request exceeds, and when the next request is allowed. */
interface RateExcess {
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

/** Sustained requests of one client per second. The status page sends a tenth of that at most. */
export const CLIENT_REQUESTS_PER_SECOND = 100;
const CLIENT_REQUEST_BUCKET = { intervalMs: SECOND_MS / CLIENT_REQUESTS_PER_SECOND, burst: 1_000 };

/** Creates a limiter of the requests of each client and of all clients together, with full buckets. */
export function createRequestRateLimiter(clock: Pick<Clock, "monotonic">) {
  const buckets = () => createPerClient(() => createTokenBucket(CLIENT_REQUEST_BUCKET));
  const clients: Readonly<Record<Traffic, PerClient<TokenBucket>>> = {
    health: buckets(),
    metrics: buckets(),
    other: buckets(),
  };
  let sharedLimit: WebSettings["rate"] = null;
  let sharedBucket: TokenBucket | null = null;

  /** The bucket is full again when the limit changes. */
  function takeShared(limit: NonNullable<WebSettings["rate"]>, now: MonotonicMs): DurationMs {
    if (sharedBucket === null || !isDeepStrictEqual(sharedLimit, limit)) sharedBucket = createTokenBucket(limit);
    sharedLimit = limit;
    return sharedBucket.take(now);
  }

  return {
    /** Counts a request; null: it is within the limits. */
    count(client: string, traffic: Traffic, limit: WebSettings["rate"]): RateExcess | null {
      const now = clock.monotonic();
      const ownMs = clients[traffic].get(client).take(now);
      if (ownMs > 0) return { of: "client", retryAfterMs: ownMs };
      const allMs = limit === null || traffic === "health" ? 0 : takeShared(limit, now);
      return allMs > 0 ? { of: "all", retryAfterMs: allMs } : null;
    },
  };
}
