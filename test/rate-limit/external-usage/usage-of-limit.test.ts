import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Category } from "../../../src/rate-limit/limits.ts";
import { LIMITER_SETUPS, LIMITERS, type LimiterSetup, limitsWithoutPlan } from "../limited-service.ts";
import { type CallFate, runSharedKey, type SharedKeyEvent } from "./shared-key.ts";

const MINUTE = 60_000;

const often = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });
const between = (min: number, max: number) => fc.integer({ min, max });
const gaps = fc.oneof(
  often(18, between(0, 1_500)),
  often(6, between(0, 20)),
  often(3, between(1_000, 30_000)),
  often(1, between(30_000, 300_000)),
);
const fates = fc.oneof(
  often(20, fc.constant<CallFate>("answered")),
  often(1, fc.constantFrom<CallFate>("lost_before", "lost_after", "unsent", "bare")),
);
/** Anything may happen, at any time. */
const happenings = (others: fc.Arbitrary<number>): fc.Arbitrary<SharedKeyEvent[]> => {
  const happening = fc.record({
    afterMs: gaps,
    category: fc.oneof(
      often(3, fc.constant<Category>("node_management")),
      often(1, fc.constant<Category>("session_monitoring")),
    ),
    externalCalls: others,
    fate: fates,
    outMs: between(1, 400),
    backMs: between(1, 400),
  });
  return fc.array(happening, { minLength: 50, maxLength: 400, size: "max" });
};
const nowAndThen = fc.oneof(often(15, fc.constant(0)), often(5, fc.constant(1)), often(1, between(2, 60)));
const limitings = (parts: Pick<LimiterSetup, "limiter" | "headers">): fc.Arbitrary<LimiterSetup> =>
  fc.record({
    ...{ limiter: fc.constant(parts.limiter), headers: fc.constant(parts.headers) },
    limits: fc.constantFrom(...(["starter", "business", "enterprise"] as const).map(limitsWithoutPlan)),
    reset: fc.constantFrom("full", "next_token"),
  });

describe.each(LIMITER_SETUPS)("of a $limiter that speaks of: $headers", (service) => {
  test("never more calls of others are taken for proved than the service admitted, whatever becomes of ours", () => {
    fc.assert(
      fc.property(limitings(service), happenings(nowAndThen), (limiting, script) => {
        runSharedKey(limiting, script, (learned, admitted) => expect(learned).toBeLessThanOrEqual(admitted));
      }),
      { numRuns: 40 },
    );
  });

  test("where nobody else calls, nothing is proved, nothing is likely, and nothing is expected", () => {
    fc.assert(
      fc.property(limitings(service), happenings(fc.constant(0)), (limiting, script) => {
        const isRefused = { ever: false };
        const { learned, likely, ledger } = runSharedKey(
          limiting,
          script,
          (_, __, now, { categories, externalUsage: others }) => {
            isRefused.ever ||= Object.values(categories).some(({ rejections }) => rejections > 0);
            // A script that asks for more than the limit admits is told that it is spent, and can't know by whom.
            if (!isRefused.ever) expect(others.node_management.expectedCalls(now)).toBe(0);
          },
        );
        expect([learned, likely]).toEqual([0, 0]);
        expect(ledger.externalUsage.plan.provenCalls()).toBe(0);
      }),
      { numRuns: 25 },
    );
  });
});

const call = (afterMs: number, others = 0): SharedKeyEvent => ({
  ...{ afterMs, externalCalls: others, category: "node_management", fate: "answered", outMs: 30, backMs: 30 },
});

/** Ours come once in `ours` milliseconds, theirs once in `theirs`, for half an hour, with no common measure. */
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
  "nearly all calls of one who calls steadily are proved by a $limiter that speaks of: $headers",
  (service) => {
    const limits = limitsWithoutPlan(service.headers === "plan" ? "starter" : "enterprise");
    // Of a bucket more than flows back, so that it is not full; of a window not more than it holds.
    const script = service.limiter === "token_bucket" ? steadily(753, 2_003) : steadily(1_009, 1_499);
    const { learned, admitted } = runSharedKey({ ...service, limits, reset: "full" }, script);
    expect(admitted).toBeGreaterThan(800);
    expect(learned / admitted).toBeGreaterThan(0.8);
  },
);

test.each(LIMITERS)(
  "what a %s had spent when it was first looked at may have been the process before this one",
  (limiter) => {
    const limiting = { limiter, headers: "category", limits: limitsWithoutPlan("enterprise"), reset: "full" } as const;
    const script = [call(1_000, 30), ...new Array(100).fill(call(1_000))];
    expect(runSharedKey(limiting, script)).toMatchObject({ learned: 0, admitted: 30 });
  },
);

test.each(LIMITERS)("answers of something in front of the service don't hide what a %s says of others", (limiter) => {
  const limiting = { limiter, headers: "category", limits: limitsWithoutPlan("enterprise"), reset: "full" } as const;
  const bare: SharedKeyEvent = { ...call(1_000), fate: "bare" };
  const round = [...new Array(4).fill(bare), ...new Array(8).fill(call(1_000)), call(0, 10), call(1_000)];
  const { learned, admitted } = runSharedKey(limiting, new Array(10).fill(round).flat());
  expect(admitted).toBe(100);
  expect(learned).toBeGreaterThan(50);
});

test("a bucket that is full hides calls that cost nobody anything: few are proved, and about as many are likely as were", () => {
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
] as const)("of a $limiter it is found out whether it is a bucket", ({ limiter, isBucket }) => {
  const limiting = { limiter, headers: "category", limits: limitsWithoutPlan("enterprise"), reset: "full" } as const;
  const { ledger } = runSharedKey(limiting, steadily(1_009, 1_499));
  expect(ledger.externalUsage.node_management.isTokenBucket()).toBe(isBucket);
});

test("what others had of a window is theirs no more in the next", () => {
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
