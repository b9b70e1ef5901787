import type { DurationMs } from "../../base/duration.ts";
import type { LimiterKind } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";

/** The size of a limit. */
export interface LimiterOptions {
  /** Requests per window, an integer from 1. */
  readonly limit: number;
  /** Capacity of a token bucket. Windows admit only the limit. */
  readonly burst: number;
  readonly windowMs: DurationMs;
  /** The reset that a token bucket states, which is when it is full (the default) or when it has another token. */
  readonly reset?: "full" | "next_token";
}

/** The decision about a request, in terms of the headers of the spec (sections 7.1 and 8.1). */
export interface Verdict {
  readonly admitted: boolean;
  /** Requests per window. */
  readonly limit: number;
  /** Number of requests that would be admitted now, after this one. It may exceed the limit while a burst is left. */
  readonly remaining: number;
  readonly resetEpochMs: EpochMs;
  /** Seconds until a request is admitted, rounded up to an integer from 1, or 0 if this one was admitted. */
  readonly retryAfterSeconds: number;
}

/** A rate limiter. If `now` is before that of an earlier call, the latest one is used instead. */
export interface Limiter {
  /** Admits and counts a request, or rejects it without counting. */
  take(now: EpochMs): Verdict;
  /** Returns the decision for a request without counting it. `remaining` is the number before it. */
  peek(now: EpochMs): Verdict;
}

/** The algorithm of a limiter. */
interface LimiterState {
  /** Advances the state to `now`. Called before every other method. */
  settle(now: EpochMs): void;
  remaining(): number;
  spend(now: EpochMs): void;
  resetAt(now: EpochMs): EpochMs;
  /** Returns when the next request is admitted. Called only when nothing remains. */
  admitsAt(now: EpochMs): EpochMs;
}

/**
 * Creates a limiter. The spec (section 8) states limits but no algorithm, so there are five kinds. A token bucket
 * starts full. A fixed window starts at a multiple of its length since the epoch. A first-call window starts with the
 * first request after the previous one has ended. A sliding window counts the requests of the last `windowMs` exactly.
 * A sliding counter estimates them: to the requests of the current fixed window it adds those of the previous one,
 * times the share of that window that the last `windowMs` still cover.
 */
export function createLimiter(kind: LimiterKind, options: LimiterOptions): Limiter {
  const state = ALGORITHMS[kind](options);
  let latest = Number.NEGATIVE_INFINITY;
  const verdict = (now: EpochMs, admitted: boolean): Verdict => ({
    admitted,
    limit: options.limit,
    remaining: state.remaining(),
    resetEpochMs: state.resetAt(now),
    retryAfterSeconds: admitted ? 0 : Math.max(1, Math.ceil((state.admitsAt(now) - now) / 1_000)),
  });
  const settle = (now: EpochMs): EpochMs => {
    latest = Math.max(latest, now);
    state.settle(latest);
    return latest;
  };
  return {
    take(now) {
      const at = settle(now);
      const admitted = state.remaining() >= 1;
      if (admitted) state.spend(at);
      return verdict(at, admitted);
    },
    peek(now) {
      const at = settle(now);
      return verdict(at, state.remaining() >= 1);
    },
  };
}

const ALGORITHMS: Record<LimiterKind, (options: LimiterOptions) => LimiterState> = {
  token_bucket: tokenBucket,
  fixed_window: fixedWindow,
  first_call_window: firstCallWindow,
  sliding_window: slidingWindow,
  sliding_counter: slidingCounter,
};

function tokenBucket({ limit, burst, windowMs, reset }: LimiterOptions): LimiterState {
  // A token is worth `windowMs` credits, and each millisecond adds `limit` credits. Integers avoid rounding errors.
  const full = burst * windowMs;
  let credits = full;
  let settledAt = Number.NaN;
  const untilCredits = (target: number): DurationMs => Math.max(0, Math.ceil((target - credits) / limit));
  return {
    settle(now) {
      if (!Number.isNaN(settledAt)) credits = Math.min(full, credits + (now - settledAt) * limit);
      settledAt = now;
    },
    remaining: () => Math.floor(credits / windowMs),
    spend() {
      credits -= windowMs;
    },
    resetAt(now) {
      const nextToken = (Math.floor(credits / windowMs) + 1) * windowMs;
      return now + untilCredits(reset === "next_token" ? Math.min(nextToken, full) : full);
    },
    admitsAt: (now) => now + untilCredits(windowMs),
  };
}

function fixedWindow({ limit, windowMs }: LimiterOptions): LimiterState {
  let windowStart = Number.NEGATIVE_INFINITY;
  let count = 0;
  return {
    settle(now) {
      const start = Math.floor(now / windowMs) * windowMs;
      if (start === windowStart) return;
      windowStart = start;
      count = 0;
    },
    remaining: () => limit - count,
    spend() {
      count += 1;
    },
    resetAt: () => windowStart + windowMs,
    admitsAt: () => windowStart + windowMs,
  };
}

function firstCallWindow({ limit, windowMs }: LimiterOptions): LimiterState {
  let endsAt = Number.NEGATIVE_INFINITY;
  let count = 0;
  return {
    settle(now) {
      if (now >= endsAt) count = 0;
    },
    remaining: () => limit - count,
    spend(now) {
      if (count === 0) endsAt = now + windowMs;
      count += 1;
    },
    resetAt: (now) => (count === 0 ? now + windowMs : endsAt),
    admitsAt: () => endsAt,
  };
}

function slidingWindow({ limit, windowMs }: LimiterOptions): LimiterState {
  // A ring of the times of the admitted requests within the window, at most `limit` of them.
  const admitted = new Float64Array(limit);
  let oldest = 0;
  let count = 0;
  const oldestLeavesAt = (): EpochMs => admitted[oldest]! + windowMs;
  return {
    settle(now) {
      while (count > 0 && oldestLeavesAt() <= now) {
        oldest = (oldest + 1) % limit;
        count -= 1;
      }
    },
    remaining: () => limit - count,
    spend(now) {
      admitted[(oldest + count) % limit] = now;
      count += 1;
    },
    resetAt: (now) => (count === 0 ? now : oldestLeavesAt()),
    admitsAt: oldestLeavesAt,
  };
}

function slidingCounter({ limit, windowMs }: LimiterOptions): LimiterState {
  let windowStart = Number.NEGATIVE_INFINITY;
  let count = 0;
  let previousCount = 0;
  let settledAt = Number.NaN;
  // A request is worth `windowMs` credits. Integers avoid rounding errors.
  const freeCredits = (): number => (limit - count) * windowMs - previousCount * (windowStart + windowMs - settledAt);
  return {
    settle(now) {
      settledAt = now;
      const start = Math.floor(now / windowMs) * windowMs;
      if (start === windowStart) return;
      previousCount = start === windowStart + windowMs ? count : 0;
      windowStart = start;
      count = 0;
    },
    remaining: () => Math.floor(freeCredits() / windowMs),
    spend() {
      count += 1;
    },
    resetAt: () => windowStart + windowMs,
    admitsAt(now) {
      const missing = windowMs - freeCredits();
      if (count < limit) return now + Math.ceil(missing / previousCount);
      return windowStart + windowMs + Math.ceil(((count + 1 - limit) * windowMs) / count);
    },
  };
}
