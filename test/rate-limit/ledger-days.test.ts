import { describe, expect, test } from "vitest";
import { LIMITER_SETUPS, limitsWithoutPlan } from "./limited-service.ts";
import { type SaturatedDay, simulateDay } from "./saturated-day.ts";

const day = (parts: Pick<SaturatedDay, "limiter" | "headers" | "limits" | "categories" | "hours">): SaturatedDay => ({
  reset: "full",
  seed: 7,
  restartEveryMs: 20 * 60_000,
  lane: (random) => (random() < 0.5 ? "walk" : "detail"),
  ...parts,
});

describe.each(LIMITER_SETUPS)("against a $limiter whose headers speak of: $headers", ({ limiter, headers }) => {
  test("a day of unending node calls, killed now and then, is never refused, and spends what it may", () => {
    const report = simulateDay(
      day({ limiter, headers, limits: limitsWithoutPlan("enterprise"), categories: ["node_management"], hours: 24 }),
    );
    expect(report.rejected).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(0.93 * 80);
    // A full bucket that the service shows is spent after each restart: 180 calls every 20 minutes at the most.
    const shownBursts = limiter === "token_bucket" && headers !== "off" ? 180 / 20 : 0;
    expect(report.callsPerMinute).toBeLessThanOrEqual(80 + shownBursts);
  });

  test("a day under the Starter plan, whose minute is less than the categories' sum, is never refused", () => {
    const report = simulateDay(
      day({
        limiter,
        headers,
        limits: limitsWithoutPlan("starter"),
        categories: ["node_management", "session_monitoring"],
        hours: 24,
      }),
    );
    expect(report.rejected).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(0.93 * 80);
    expect(report.callsPerMinute).toBeLessThanOrEqual(80);
  });

  test("hours under the Business plan, with both categories full, are never refused", () => {
    const report = simulateDay(
      day({
        limiter,
        headers,
        limits: limitsWithoutPlan("business"),
        categories: ["node_management", "session_monitoring"],
        hours: 3,
      }),
    );
    expect(report.rejected).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(0.9 * 400);
    expect(report.callsPerMinute).toBeLessThanOrEqual(400);
  });
});

test.each(LIMITER_SETUPS)(
  "another user of the key who keeps to the reserve costs us no 429 ($limiter, $headers)",
  ({ limiter, headers }) => {
    const limits = limitsWithoutPlan("enterprise");
    const report = simulateDay({
      ...day({ limiter, headers, limits, categories: ["node_management"], hours: 6 }),
      externalCallsPerMinute: 15,
    });
    expect(report.rejected).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(60);
  },
);

test("a service that names the next token as its reset is polled at the same rate, and never refuses", () => {
  const limits = limitsWithoutPlan("enterprise");
  const parts = day({
    limiter: "token_bucket",
    headers: "category",
    limits,
    categories: ["node_management"],
    hours: 24,
  });
  const report = simulateDay({ ...parts, reset: "next_token" });
  expect(report.rejected).toBe(0);
  expect(report.callsPerMinute).toBeGreaterThan(0.93 * 80);
});
