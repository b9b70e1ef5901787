import type { DurationMs } from "../../../base/duration.ts";
import type { MonotonicMs } from "../../../model/time.ts";

/** A bucket of tokens, one a request. It fills by one each `intervalMs`, up to `burst`. */
export interface TokenBucket {
  /** Takes a token: 0. There is none: the time until there is. */
  take(now: MonotonicMs): DurationMs;
}

/** A full bucket. */
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
