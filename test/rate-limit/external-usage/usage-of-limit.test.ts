import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LIMITER_KINDS } from "../../../src/config/schema/scenario.ts";
import { ExternalUsageOfLimit } from "../../../src/rate-limit/external-usage/usage-of-limit.ts";
import type { Category } from "../../../src/rate-limit/limits.ts";
import { createLimiter } from "../../../src/simulator/http/limiter.ts";
import { propertyRuns } from "../../harness/run-length.ts";
import { LIMITER_SETUPS, type LimiterSetup, limitsWithoutPlan } from "../limited-service.ts";
import { type CallResult, runSharedKey, type SharedKeyEvent } from "./shared-key.ts";

const MINUTE = 60_000;

const weighted = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });
const integerBetween = (min: number, max: number) => fc.integer({ min, max });
const gaps = fc.oneof(
  weighted(18, integerBetween(0, 1_500)),
  weighted(6, integerBetween(0, 20)),
  weighted(3, integerBetween(1_000, 30_000)),
  weighted(1, integerBetween(30_000, 300_000)),
);
const callResults = fc.oneof(
  weighted(20, fc.constant<CallResult>("answered")),
  weighted(1, fc.constantFrom<CallResult>("lost_before", "lost_after", "unsent", "bare")),
);
/** Arbitrary calls of ours and external ones. */
const scripts = (externalCalls: fc.Arbitrary<number>): fc.Arbitrary<SharedKeyEvent[]> => {
  const event = fc.record({
    afterMs: gaps,
    category: fc.oneof(
      weighted(3, fc.constant<Category>("node_management")),
      weighted(1, fc.constant<Category>("session_monitoring")),
    ),
    externalCalls,
    result: callResults,
    outMs: integerBetween(1, 400),
    backMs: integerBetween(1, 400),
  });
  return fc.array(event, { minLength: 50, maxLength: 400, size: "max" });
};
const occasionalCalls = fc.oneof(
  weighted(15, fc.constant(0)),
  weighted(5, fc.constant(1)),
  weighted(1, integerBetween(2, 60)),
);
const limiterSetups = (parts: Pick<LimiterSetup, "limiter" | "headers">): fc.Arbitrary<LimiterSetup> =>
  fc.record({
    limiter: fc.constant(parts.limiter),
    headers: fc.constant(parts.headers),
    limits: fc.constantFrom(...(["starter", "business", "enterprise"] as const).map(limitsWithoutPlan)),
    reset: fc.constantFrom("full", "next_token"),
  });

describe.each(LIMITER_SETUPS)("with a $limiter whose headers state: $headers", (service) => {
  test("never proves more external calls than the service admitted, whatever happens to our calls", () => {
    fc.assert(
      fc.property(limiterSetups(service), scripts(occasionalCalls), (limiting, script) => {
        let mostWrong = 0;
        runSharedKey(limiting, script, (learned, admitted) => {
          mostWrong = Math.max(mostWrong, learned - admitted);
        });
        expect(mostWrong).toBe(0);
      }),
      propertyRuns(100),
    );
  });

  test("proves and expects nothing without external calls", () => {
    fc.assert(
      fc.property(limiterSetups(service), scripts(fc.constant(0)), (limiting, script) => {
        let wasRejected = false;
        let mostExpected = 0;
        const { learned, likely, ledger } = runSharedKey(
          limiting,
          script,
          (_, __, now, { categories, externalUsage }) => {
            wasRejected ||= Object.values(categories).some(({ rejections }) => rejections > 0);
            // After a 429 the limit is used up, and it is unknown by whom.
            if (!wasRejected) mostExpected = Math.max(mostExpected, externalUsage.node_management.expectedCalls(now));
          },
        );
        expect([learned, likely, mostExpected]).toEqual([0, 0, 0]);
        expect(ledger.externalUsage.plan.provenCalls()).toBe(0);
      }),
      propertyRuns(75),
    );
  });
});

const call = (afterMs: number, externalCalls = 0): SharedKeyEvent => ({
  afterMs,
  externalCalls,
  category: "node_management",
  result: "answered",
  outMs: 30,
  backMs: 30,
});

/** One of our calls every `ours` milliseconds and an external one every `theirs`, for half an hour. */
function* steadily(ours: number, theirs: number): Generator<SharedKeyEvent> {
  let [own, other, now] = [0, 350, 0];
  while (now < 30 * MINUTE) {
    const next = Math.min(own, other);
    yield call(next - now, next === other && other !== own ? 1 : 0);
    if (next === own) own += ours;
    else other += theirs;
    now = next;
  }
}

test.each(LIMITER_SETUPS.filter(({ headers }) => headers !== "off"))(
  "proves most steady external calls with a $limiter whose headers state: $headers",
  (service) => {
    const limits = limitsWithoutPlan(service.headers === "plan" ? "starter" : "enterprise");
    // More calls than a bucket refills, so that it is never full, but not more than a window holds.
    const script = service.limiter === "token_bucket" ? steadily(753, 2_003) : steadily(1_009, 1_499);
    const { learned, admitted } = runSharedKey({ ...service, limits, reset: "full" }, script);
    expect(admitted).toBeGreaterThan(800);
    expect(learned / admitted).toBeGreaterThan(0.8);
  },
);

test.each(LIMITER_KINDS)(
  "does not count calls before the first statement of a %s, which the previous process may have made",
  (limiter) => {
    const limiting = { limiter, headers: "category", limits: limitsWithoutPlan("enterprise"), reset: "full" } as const;
    const script = [call(1_000, 30), ...new Array(100).fill(call(1_000))];
    expect(runSharedKey(limiting, script)).toMatchObject({ learned: 0, admitted: 30 });
  },
);

test.each(LIMITER_KINDS)("responses without headers do not hide external calls with a %s", (limiter) => {
  const limiting = { limiter, headers: "category", limits: limitsWithoutPlan("enterprise"), reset: "full" } as const;
  const bare: SharedKeyEvent = { ...call(1_000), result: "bare" };
  const round = [...new Array(4).fill(bare), ...new Array(8).fill(call(1_000)), call(0, 10), call(1_000)];
  const { learned, admitted } = runSharedKey(limiting, new Array(10).fill(round).flat());
  expect(admitted).toBe(100);
  expect(learned).toBeGreaterThan(50);
});

test("a full bucket hides calls: few are proven, and the estimate is close to the actual number", () => {
  const limiting = { limiter: "token_bucket", headers: "category", limits: limitsWithoutPlan("enterprise") } as const;
  const { learned, likely, admitted } = runSharedKey({ ...limiting, reset: "full" }, steadily(2_003, 4_999));
  expect(learned / admitted).toBeLessThan(0.5);
  expect(likely / admitted).toBeGreaterThan(0.8);
  expect(likely / admitted).toBeLessThan(1.2);
});

test.each([
  { limiter: "token_bucket", isBucket: true },
  { limiter: "fixed_window", isBucket: false },
  { limiter: "sliding_window", isBucket: false },
  { limiter: "sliding_counter", isBucket: false },
] as const)("detects whether a $limiter is a token bucket", ({ limiter, isBucket }) => {
  const limiting = { limiter, headers: "category", limits: limitsWithoutPlan("enterprise"), reset: "full" } as const;
  const { ledger } = runSharedKey(limiting, steadily(1_009, 1_499));
  expect(ledger.externalUsage.node_management.isTokenBucket()).toBe(isBucket);
});

test("external calls of a fixed window do not count in the next one", () => {
  const limiting = {
    limiter: "fixed_window",
    headers: "category",
    limits: limitsWithoutPlan("enterprise"),
    reset: "full",
  } as const;
  const script = [call(1_000), call(1_000, 30), call(1_000), call(1_000), call(1_000)];
  const { ledger } = runSharedKey(limiting, script);
  expect(ledger.externalUsage.node_management.callsInWindow(5_000)).toBe(30);
  expect(ledger.externalUsage.node_management.callsInWindow(65_000)).toBe(0);
});

test("a sliding counter that an odd reset ruled out is recognized again within 40 minutes", () => {
  const usage = new ExternalUsageOfLimit();
  const limiter = createLimiter("sliding_counter", { limit: 100, burst: 100, windowMs: MINUTE });
  const expected: number[] = [];
  // Uneven calls, of which other limiters would count another number than this one.
  for (let at = 0; at < 45 * MINUTE; at += at % MINUTE < 20_000 ? 500 : 40_000) {
    const { limit, remaining, resetEpochMs } = limiter.take(at);
    const oddMs = at === 5 * MINUTE ? 17_000 : 0;
    usage.own.sent.add(at);
    usage.recordAnswered(at, { limit, remaining, resetAt: resetEpochMs + 1_000 + oddMs }, MINUTE, at);
    expected[Math.floor(at / MINUTE)] = usage.expectedCalls(at);
  }
  expect(expected.slice(0, 5)).toEqual([0, 0, 0, 0, 0]);
  expect(Math.max(...expected)).toBeGreaterThan(0);
  expect(expected.slice(40)).toEqual([0, 0, 0, 0, 0]);
});

test("our own call that starts a window is not external, even if the reset is rounded up", () => {
  const usage = new ExternalUsageOfLimit();
  const limiter = createLimiter("first_call_window", { limit: 100, burst: 100, windowMs: MINUTE });
  for (let at = 300; at < 20 * MINUTE; at += 5_130) {
    const answeredAt = at + 50;
    const { limit, remaining, resetEpochMs } = limiter.take(at + 25);
    const untilReset = Math.ceil(resetEpochMs / 1_000) * 1_000 - Math.floor(answeredAt / 1_000) * 1_000 + 1_000;
    usage.own.sent.add(at);
    usage.recordAnswered(at, { limit, remaining, resetAt: answeredAt + untilReset }, MINUTE, answeredAt);
    expect(usage.expectedCalls(answeredAt)).toBe(0);
  }
});
