import { describe, expect, test } from "vitest";
import { type Limits, PLANS, type PlanLimits } from "../../src/budget/limits.ts";
import { type Day, liveDay } from "./day.ts";

const limitsOf = (plan: PlanLimits): Limits => ({
  categories: {
    node_management: { requests: 100, burst: 200, windowMs: 60_000 },
    session_monitoring: { requests: 500, burst: 1_000, windowMs: 60_000 },
  },
  plan: { ...plan, callsPerMonth: null },
  reserve: 0.2,
});

const limiters = ["token_bucket", "fixed_window", "sliding_window"] as const;
const headers = ["category", "plan", "off"] as const;
const services = limiters.flatMap((limiter) => headers.map((stated) => ({ limiter, headers: stated })));

const day = (parts: Pick<Day, "limiter" | "headers" | "limits" | "categories" | "hours">): Day => ({
  reset: "full",
  seed: 7,
  restartEveryMs: 20 * 60_000,
  lane: (random) => (random() < 0.5 ? "walk" : "detail"),
  ...parts,
});

describe.each(services)("against a $limiter whose headers speak of: $headers", ({ limiter, headers }) => {
  test("a day of unending node calls, killed now and then, is never refused, and spends what it may", () => {
    const report = liveDay(
      day({ limiter, headers, limits: limitsOf(PLANS.enterprise), categories: ["node_management"], hours: 24 }),
    );
    expect(report.refused).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(0.93 * 80);
    // A full bucket that the service shows is spent after each restart: 180 calls every 20 minutes at the most.
    const shownBursts = limiter === "token_bucket" && headers !== "off" ? 180 / 20 : 0;
    expect(report.callsPerMinute).toBeLessThanOrEqual(80 + shownBursts);
  });

  test("a day under the Starter plan, whose minute is less than the categories' sum, is never refused", () => {
    const report = liveDay(
      day({
        limiter,
        headers,
        limits: limitsOf(PLANS.starter),
        categories: ["node_management", "session_monitoring"],
        hours: 24,
      }),
    );
    expect(report.refused).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(0.93 * 80);
    expect(report.callsPerMinute).toBeLessThanOrEqual(80);
  });

  test("hours under the Business plan, with both categories full, are never refused", () => {
    const report = liveDay(
      day({
        limiter,
        headers,
        limits: limitsOf(PLANS.business),
        categories: ["node_management", "session_monitoring"],
        hours: 3,
      }),
    );
    expect(report.refused).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(0.9 * 400);
    expect(report.callsPerMinute).toBeLessThanOrEqual(400);
  });
});
