import { describe, expect, test } from "vitest";
import { type Day, type DayReport, liveDay } from "./day.ts";
import { endlessLimits, type Gateway, LIMITERS } from "./limitedservice.ts";

const HOUR = 3_600_000;
const NEVER = Number.MAX_SAFE_INTEGER;
const HOURS = 8;
const WARM_UP_HOURS = 2;

const behind = (gateway: Partial<Gateway>, parts: Partial<Day> = {}): DayReport =>
  liveDay({
    ...{ limits: endlessLimits("enterprise"), limiter: "token_bucket", headers: "category", reset: "full" },
    ...{ hours: HOURS, seed: 3, restartEveryMs: NEVER, categories: ["node_management"] },
    lane: (random) => (random() < 0.5 ? "walk" : "detail"),
    ...parts,
    gateway: {
      ...{ limiter: "token_bucket", requestsPerMinute: 40, burst: 20, retryAfter: false, untilMs: NEVER },
      ...gateway,
    },
  });

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

/** What went on after the first hours, by the minute. */
function steady({ minutes, minutesRefused }: DayReport, from = WARM_UP_HOURS, to = HOURS) {
  const calls = sum(minutes.slice(from * 60, to * 60));
  const refused = sum(minutesRefused.slice(from * 60, to * 60));
  return { refused: refused / calls, admittedPerMinute: (calls - refused) / ((to - from) * 60) };
}

const gateways: readonly Partial<Gateway>[] = [
  ...LIMITERS.map((limiter) => ({ limiter })),
  ...LIMITERS.map((limiter) => ({ limiter, retryAfter: true })),
  ...[1, 5, 100].map((burst) => ({ burst })),
  ...[4, 10, 20, 70].map((requestsPerMinute) => ({ requestsPerMinute, burst: 10 })),
  { requestsPerMinute: 10, burst: 1, retryAfter: true },
];

describe.each(gateways)("behind a gateway that limits without saying so: %o", (gateway) => {
  test.each(["category", "off"] as const)("few calls are refused, and most that it allows are made (%s)", (headers) => {
    const { refused, admittedPerMinute } = steady(behind(gateway, { headers }));
    console.log(JSON.stringify(gateway), headers, refused, admittedPerMinute / (gateway.requestsPerMinute ?? 40));
    expect(refused).toBeLessThan(0.01);
    expect(admittedPerMinute).toBeGreaterThan(0.85 * (gateway.requestsPerMinute ?? 40));
  });
});
for (const gw of [
  { requestsPerMinute: 40, burst: 20 },
  { requestsPerMinute: 200, burst: 20 },
  { requestsPerMinute: 40, burst: 1 },
])
  test("both " + JSON.stringify(gw), () => {
    for (const plan of ["business", "starter", "enterprise"] as const) {
      const r = behind(gw, { limits: endlessLimits(plan), categories: ["node_management", "session_monitoring"] });
      console.log(plan, JSON.stringify(gw), steady(r), r.minutes.slice(0, 10), r.minutesRefused.slice(0, 10));
    }
  });
test("given back", () => {
  for (const rpm of [2, 5, 10, 40, 70]) {
    const r = behind({ requestsPerMinute: rpm, burst: 5, untilMs: 3 * HOUR });
    console.log(rpm, r.minutes.filter((_, i) => i % 10 === 0).join(" "), sum(r.minutesRefused.slice(60)));
  }
});
