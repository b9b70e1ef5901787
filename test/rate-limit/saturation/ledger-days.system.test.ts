import { describe, expect, test } from "vitest";
import { isLongRun } from "../../harness/run-length.ts";
import { HOURS_SETUPS, limitsWithoutPlan } from "../limited-service.ts";
import { type SaturatedDay, simulateDay } from "./saturated-day.ts";

const day = (parts: Pick<SaturatedDay, "limiter" | "headers" | "limits" | "categories" | "hours">): SaturatedDay => ({
  reset: "full",
  seed: 7,
  restartEveryMs: 20 * 60_000,
  lane: (random) => (random() < 0.5 ? "walk" : "detail"),
  ...parts,
});

describe.each(HOURS_SETUPS)("with a $limiter whose headers state: $headers", ({ limiter, headers }) => {
  test("a day of constant node calls, with restarts, gets no 429 and uses the allowed calls", () => {
    const report = simulateDay(
      day({
        limiter,
        headers,
        limits: limitsWithoutPlan("enterprise"),
        categories: ["node_management"],
        hours: isLongRun ? 24 : 0.5,
      }),
    );
    expect(report.rejected).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(0.93 * 80);
    // A full bucket that the service states is used up after each restart: up to 180 calls every 20 minutes.
    const statedBursts = limiter === "token_bucket" && headers !== "off" ? 180 / 20 : 0;
    expect(report.callsPerMinute).toBeLessThanOrEqual(80 + statedBursts);
  });

  // The limit per minute of these plans is below the sum of the categories.
  test.each([
    { plan: "starter", perMinute: 80, atLeast: 0.93, hours: isLongRun ? 24 : 0.5 },
    { plan: "business", perMinute: 400, atLeast: 0.9, hours: isLongRun ? 3 : 0.5 },
  ] as const)(
    "$hours h of constant calls in both categories under the plan $plan get no 429 and use the allowed calls",
    ({ plan, perMinute, atLeast, hours }) => {
      const categories = ["node_management", "session_monitoring"] as const;
      const report = simulateDay(day({ limiter, headers, limits: limitsWithoutPlan(plan), categories, hours }));
      expect(report.rejected).toBe(0);
      expect(report.callsPerMinute).toBeGreaterThan(atLeast * perMinute);
      expect(report.callsPerMinute).toBeLessThanOrEqual(perMinute);
    },
  );
});

test.each(HOURS_SETUPS)(
  "another user of the key within the reserve causes no 429 ($limiter, $headers)",
  ({ limiter, headers }) => {
    const limits = limitsWithoutPlan("enterprise");
    const report = simulateDay({
      ...day({ limiter, headers, limits, categories: ["node_management"], hours: isLongRun ? 6 : 0.5 }),
      externalCallsPerMinute: 15,
    });
    expect(report.rejected).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(60);
  },
);

test("a service whose reset is the time of the next token is polled at the same rate without a 429", () => {
  const limits = limitsWithoutPlan("enterprise");
  const parts = day({
    limiter: "token_bucket",
    headers: "category",
    limits,
    categories: ["node_management"],
    hours: isLongRun ? 24 : 0.5,
  });
  const report = simulateDay({ ...parts, reset: "next_token" });
  expect(report.rejected).toBe(0);
  expect(report.callsPerMinute).toBeGreaterThan(0.93 * 80);
});
