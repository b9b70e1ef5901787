import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LIMITER_KINDS, type LimiterKind } from "../../../src/config/schema/scenario.ts";
import { createLimiter, type LimiterOptions } from "../../../src/simulator/http/limiter.ts";

const MINUTE_MS = 60_000;
const START = Date.UTC(2026, 0, 1, 12, 0, 17);

/** A reference implementation. Returns for each request whether it is admitted and how many more would be. */
type ReferenceLimiter = (options: LimiterOptions) => (now: number) => { admitted: boolean; remaining: number };

/** The generic cell rate algorithm (ITU-T I.371), equivalent to a token bucket. */
const genericCellRate: ReferenceLimiter = ({ limit, burst, windowMs }) => {
  let arrival = Number.NEGATIVE_INFINITY;
  return (now) => {
    const earliest = Math.max(arrival, now * limit);
    const admitted = earliest - now * limit <= (burst - 1) * windowMs;
    if (admitted) arrival = earliest + windowMs;
    return { admitted, remaining: Math.floor((burst * windowMs - Math.max(0, arrival - now * limit)) / windowMs) };
  };
};

const countPerWindow: ReferenceLimiter = ({ limit, windowMs }) => {
  const counts = new Map<number, number>();
  return (now) => {
    const window = Math.floor(now / windowMs);
    const count = counts.get(window) ?? 0;
    const admitted = count < limit;
    counts.set(window, count + (admitted ? 1 : 0));
    return { admitted, remaining: limit - counts.get(window)! };
  };
};

const countFromFirstCall: ReferenceLimiter = ({ limit, windowMs }) => {
  let admittedAt: number[] = [];
  return (now) => {
    if (admittedAt.length > 0 && now - admittedAt[0]! >= windowMs) admittedAt = [];
    const admitted = admittedAt.length < limit;
    if (admitted) admittedAt.push(now);
    return { admitted, remaining: limit - admittedAt.length };
  };
};

const slidingLog: ReferenceLimiter = ({ limit, windowMs }) => {
  const log: number[] = [];
  return (now) => {
    const recent = () => log.filter((at) => at > now - windowMs).length;
    const admitted = recent() < limit;
    if (admitted) log.push(now);
    return { admitted, remaining: limit - recent() };
  };
};

const weightedWindows: ReferenceLimiter = ({ limit, windowMs }) => {
  const log: number[] = [];
  return (now) => {
    const start = Math.floor(now / windowMs) * windowMs;
    const remaining = () => {
      const current = log.filter((at) => at >= start).length;
      const previous = log.filter((at) => at >= start - windowMs && at < start).length;
      return Math.floor(((limit - current) * windowMs - previous * (start + windowMs - now)) / windowMs);
    };
    const admitted = remaining() >= 1;
    if (admitted) log.push(now);
    return { admitted, remaining: remaining() };
  };
};

const references: Record<LimiterKind, ReferenceLimiter> = {
  token_bucket: genericCellRate,
  fixed_window: countPerWindow,
  first_call_window: countFromFirstCall,
  sliding_window: slidingLog,
  sliding_counter: weightedWindows,
};

const sizes = fc.record({
  limit: fc.integer({ min: 1, max: 12 }),
  extra: fc.integer({ min: 0, max: 12 }),
  windowMs: fc.integer({ min: 1, max: 90_000 }),
});
// No gap, a fraction of a window, and several windows.
const gaps = fc.array(
  fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 9_000 }), fc.integer({ max: 200_000, min: 0 })),
);

describe.each(LIMITER_KINDS)("a %s", (kind) => {
  test("decides as the reference implementation does", () => {
    fc.assert(
      fc.property(sizes, gaps, ({ limit, extra, windowMs }, steps) => {
        const options = { limit, burst: limit + extra, windowMs };
        const limiter = createLimiter(kind, options);
        const reference = references[kind](options);
        let now = START;
        for (const step of steps) {
          now += step;
          const { admitted, remaining } = limiter.take(now);
          expect({ admitted, remaining }).toEqual(reference(now));
        }
      }),
    );
  });

  test("admits again after retryAfterSeconds and not a second earlier", () => {
    fc.assert(
      fc.property(sizes, gaps, ({ limit, extra, windowMs }, steps) => {
        const limiter = createLimiter(kind, { limit, burst: limit + extra, windowMs });
        let now = START;
        for (const step of steps) {
          now += step;
          limiter.take(now);
        }
        let verdict = limiter.take(now);
        while (verdict.admitted) verdict = limiter.take(now);
        expect(verdict.remaining).toBe(0);
        expect(verdict.retryAfterSeconds).toBeGreaterThanOrEqual(1);
        if (verdict.retryAfterSeconds > 1) {
          expect(limiter.peek(now + (verdict.retryAfterSeconds - 1) * 1_000).admitted).toBe(false);
        }
        expect(limiter.peek(now + verdict.retryAfterSeconds * 1_000).admitted).toBe(true);
      }),
    );
  });

  test("does not count a peek or a rejected request", () => {
    const limiter = createLimiter(kind, { limit: 2, burst: 2, windowMs: MINUTE_MS });
    limiter.peek(START);
    limiter.take(START);
    limiter.take(START);
    const rejected = limiter.take(START);
    expect(limiter.take(START)).toEqual(rejected);
    expect(limiter.peek(START + 2 * MINUTE_MS)).toMatchObject({ admitted: true, remaining: 2, retryAfterSeconds: 0 });
  });

  test("treats an earlier time as the latest one", () => {
    const limiter = createLimiter(kind, { limit: 1, burst: 1, windowMs: MINUTE_MS });
    limiter.take(START);
    expect(limiter.take(START - 10 * MINUTE_MS)).toEqual(limiter.take(START));
  });
});

test("a token bucket starts with its burst and gains the limit per window", () => {
  const limiter = createLimiter("token_bucket", { limit: 100, burst: 200, windowMs: MINUTE_MS });
  const admitted = (now: number) =>
    Array.from({ length: 300 }, () => limiter.take(now)).filter((v) => v.admitted).length;
  expect(admitted(START)).toBe(200);
  expect(admitted(START + MINUTE_MS)).toBe(100);
  expect(admitted(START + 1_000 * MINUTE_MS)).toBe(200);
});

test("a token bucket's reset is when it is full, or when it gains the next token, depending on the option", () => {
  const size = { limit: 60, burst: 120, windowMs: MINUTE_MS };
  const full = createLimiter("token_bucket", size);
  const next = createLimiter("token_bucket", { ...size, reset: "next_token" });
  for (const limiter of [full, next]) for (let call = 0; call < 10; call += 1) limiter.take(START);
  expect(full.peek(START).resetEpochMs).toBe(START + 10_000);
  expect(next.peek(START).resetEpochMs).toBe(START + 1_000);
  expect(next.peek(START + MINUTE_MS).resetEpochMs).toBe(START + MINUTE_MS);
});

test("a fixed window resets at a multiple of its length, a sliding one when its oldest request leaves", () => {
  const fixed = createLimiter("fixed_window", { limit: 3, burst: 6, windowMs: MINUTE_MS });
  const sliding = createLimiter("sliding_window", { limit: 3, burst: 6, windowMs: MINUTE_MS });
  fixed.take(START);
  sliding.take(START);
  expect(fixed.take(START + 5_000).resetEpochMs).toBe(Date.UTC(2026, 0, 1, 12, 1));
  expect(sliding.take(START + 5_000).resetEpochMs).toBe(START + MINUTE_MS);
});

test("a sliding counter counts the requests of the window before by the share of it that is still covered", () => {
  const limiter = createLimiter("sliding_counter", { limit: 100, burst: 200, windowMs: MINUTE_MS });
  const windowStart = Date.UTC(2026, 0, 1, 12, 0);
  for (let call = 0; call < 60; call += 1) limiter.take(windowStart + 59_000);
  expect(limiter.peek(windowStart + 59_000)).toMatchObject({ remaining: 40, resetEpochMs: windowStart + MINUTE_MS });
  const remainingAfter = (ms: number) => limiter.peek(windowStart + MINUTE_MS + ms).remaining;
  expect([0, 15_000, 30_000, 45_000, MINUTE_MS].map(remainingAfter)).toEqual([40, 55, 70, 85, 100]);
});
