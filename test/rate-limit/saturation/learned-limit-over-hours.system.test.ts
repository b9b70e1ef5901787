import { describe, expect, test } from "vitest";
import { LIMITER_KINDS } from "../../../src/config/schema/scenario.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { type Gateway, limitsWithoutPlan } from "../limited-service.ts";
import { type DayReport, type SaturatedDay, simulateDay } from "./saturated-day.ts";

const HOUR = 3_600_000;
const NEVER = Number.MAX_SAFE_INTEGER;
const HOURS = isLongRun ? 8 : 6;
/** Hours behind each of many gateways. */
const GATEWAY_HOURS = isLongRun ? HOURS : 4;
const WARM_UP_HOURS = 2;

const behind = (gateway: Partial<Gateway>, parts: Partial<SaturatedDay> = {}): DayReport =>
  simulateDay({
    limits: limitsWithoutPlan("enterprise"),
    limiter: "token_bucket",
    headers: "category",
    reset: "full",
    hours: HOURS,
    seed: 3,
    restartEveryMs: NEVER,
    categories: ["node_management"],
    lane: (random) => (random() < 0.5 ? "walk" : "detail"),
    ...parts,
    gateway: {
      limiter: "token_bucket",
      requestsPerMinute: 40,
      burst: 20,
      retryAfter: false,
      statesLimit: false,
      untilMs: NEVER,
      ...gateway,
    },
  });

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

/** Rates after the first hours. */
function steady({ minutes, minutesWithRejections }: DayReport, from = WARM_UP_HOURS, to = HOURS) {
  const calls = sum(minutes.slice(from * 60, to * 60));
  const rejected = sum(minutesWithRejections.slice(from * 60, to * 60));
  return { rejected: rejected / calls, admittedPerMinute: (calls - rejected) / ((to - from) * 60) };
}

const gateways: readonly Partial<Gateway>[] = [
  ...LIMITER_KINDS.map((limiter) => ({ limiter })),
  ...LIMITER_KINDS.map((limiter) => ({ limiter, retryAfter: true })),
  ...[1, 5, 100].map((burst) => ({ burst })),
  ...[4, 10, 20, 70].map((requestsPerMinute) => ({ requestsPerMinute, burst: 10 })),
  { requestsPerMinute: 10, burst: 1, retryAfter: true },
  { statesLimit: true },
  { statesLimit: true, limiter: "fixed_window", retryAfter: true },
];

/** Each gateway with and without headers of the service; in the short form in turns. */
const cases = gateways.flatMap((gateway, index) =>
  (["category", "off"] as const)
    .filter((_, number) => isLongRun || number === index % 2)
    .map((headers) => ({ gateway, headers })),
);

test.each(cases)(
  "behind a gateway that states its limit only in 429s, or not at all, few calls get 429, and most of the allowed calls are made: %o",
  ({ gateway, headers }) => {
    const { rejected, admittedPerMinute } = steady(
      behind(gateway, { headers, hours: GATEWAY_HOURS }),
      WARM_UP_HOURS,
      GATEWAY_HOURS,
    );
    expect(rejected).toBeLessThan(0.01);
    expect(admittedPerMinute).toBeGreaterThan(0.85 * (gateway.requestsPerMinute ?? 40));
  },
);

describe.each(["starter", "business", "enterprise"] as const)("plan %s with calls of both categories", (plan) => {
  const both = (gateway: Partial<Gateway>) =>
    steady(
      behind(gateway, {
        hours: GATEWAY_HOURS,
        limits: limitsWithoutPlan(plan),
        categories: ["node_management", "session_monitoring"],
      }),
      WARM_UP_HOURS,
      GATEWAY_HOURS,
    );

  test("the categories share a gateway that counts them together", () => {
    const { rejected, admittedPerMinute } = both({});
    expect(rejected).toBeLessThan(0.01);
    expect(admittedPerMinute).toBeGreaterThan(0.85 * 40);
  });

  test("a gateway without burst starves neither category, although each calls right after the other", () => {
    const { rejected, admittedPerMinute } = both({ burst: 1 });
    expect(rejected).toBeLessThan(0.01);
    expect(admittedPerMinute).toBeGreaterThan(0.7 * 40);
  });
});

test.each([2, 10, 40, 70])(
  "two hours after a limit of %i per minute is removed, polling is back at its planned rate",
  (limit) => {
    const report = behind({ requestsPerMinute: limit, burst: 5, untilMs: 3 * HOUR });
    expect(steady(report, 5, HOURS).admittedPerMinute).toBeGreaterThan(0.95 * 80);
    expect(steady(report, 3, HOURS).rejected).toBe(0);
  },
);

test("an unexplained 429 costs a tenth of the calls, for minutes only", () => {
  const report = behind({ requestsPerMinute: 80, burst: 30, untilMs: 2 * 60_000 }, { hours: 1 });
  expect(sum(report.minutesWithRejections)).toBeGreaterThan(0);
  expect(Math.min(...report.minutes.slice(3, 60))).toBeGreaterThan(0.6 * 80);
  expect(steady(report, 0.5, 1).admittedPerMinute).toBeGreaterThan(0.95 * 80);
});
