import type { DurationMs } from "../../base/duration.ts";
import type { LimiterKind } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";

/** The size of a limit. */
export interface LimiterOptions {
  /** Requests a window; a whole number from 1. */
  readonly limit: number;
  /** Capacity of a token bucket; the window kinds have no burst and admit the limit alone. */
  readonly burst: number;
  readonly windowMs: DurationMs;
  /** What a token bucket calls its reset: the instant it is full (the default), or that of the next token. */
  readonly reset?: "full" | "next_token";
}

/** What a limiter says of one request, in the terms of the headers of the spec, sections 7.1 and 8.1. */
export interface Verdict {
  readonly admitted: boolean;
  /** Requests allowed a window. */
  readonly limit: number;
  /** Requests that would still be admitted now, after this one; over the limit while a burst is left. */
  readonly remaining: number;
  readonly resetEpochMs: EpochMs;
  /** Whole seconds until a request is admitted again, from 1; 0 when this one was. */
  readonly retryAfterSeconds: number;
}

/** Counts requests. Time never runs backwards: an earlier `now` counts as the latest one seen. */
export interface Limiter {
  /** Admits and counts the request, or refuses it and counts nothing. */
  take(now: EpochMs): Verdict;
  /** What the limiter would say now, without counting; `remaining` is what is left before any request. */
  peek(now: EpochMs): Verdict;
}

/** One account: brings itself up to `now`, says what is left, and spends one. */
interface LimiterState {
  settle(now: EpochMs): void;
  remaining(): number;
  spend(now: EpochMs): void;
  resetAt(now: EpochMs): EpochMs;
  /** Earliest instant at which one more is admitted; asked only when nothing remains. */
  admitsAt(now: EpochMs): EpochMs;
}

/**
 * A limiter of the kind the service was told to have; the spec (section 8) gives the numbers and not the algorithm.
 * A token bucket begins full. A fixed window begins at a multiple of its length since the epoch. A sliding window
 * counts the requests of the last `windowMs` exactly, one by one.
 */
export function createLimiter(kind: LimiterKind, options: LimiterOptions): Limiter {
  const account = LIMITER_KINDS[kind](options);
  let latest = Number.NEGATIVE_INFINITY;
  const verdict = (now: EpochMs, admitted: boolean): Verdict => ({
    admitted,
    limit: options.limit,
    remaining: account.remaining(),
    resetEpochMs: account.resetAt(now),
    retryAfterSeconds: admitted ? 0 : Math.max(1, Math.ceil((account.admitsAt(now) - now) / 1_000)),
  });
  const settle = (now: EpochMs): EpochMs => {
    latest = Math.max(latest, now);
    account.settle(latest);
    return latest;
  };
  return {
    take(now) {
      const at = settle(now);
      const admitted = account.remaining() >= 1;
      if (admitted) account.spend(at);
      return verdict(at, admitted);
    },
    peek(now) {
      const at = settle(now);
      return verdict(at, account.remaining() >= 1);
    },
  };
}

const LIMITER_KINDS: Record<LimiterKind, (options: LimiterOptions) => LimiterState> = {
  token_bucket: tokenBucket,
  fixed_window: fixedWindow,
  sliding_window: slidingWindow,
};

function tokenBucket({ limit, burst, windowMs, reset }: LimiterOptions): LimiterState {
  // A token is `windowMs` credits and a millisecond earns `limit` of them: whole numbers, so nothing is lost to
  // rounding.
  const full = burst * windowMs;
  let credits = full;
  let settledAt = Number.NaN;
  const untilCredits = (wanted: number): DurationMs => Math.max(0, Math.ceil((wanted - credits) / limit));
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

function slidingWindow({ limit, windowMs }: LimiterOptions): LimiterState {
  // A ring of the instants admitted within the window: never more than `limit` of them.
  const admitted = new Float64Array(limit);
  let oldest = 0;
  let count = 0;
  const leavesAt = (): EpochMs => admitted[oldest]! + windowMs;
  return {
    settle(now) {
      while (count > 0 && leavesAt() <= now) {
        oldest = (oldest + 1) % limit;
        count -= 1;
      }
    },
    remaining: () => limit - count,
    spend(now) {
      admitted[(oldest + count) % limit] = now;
      count += 1;
    },
    resetAt: (now) => (count === 0 ? now : leavesAt()),
    admitsAt: leavesAt,
  };
}
