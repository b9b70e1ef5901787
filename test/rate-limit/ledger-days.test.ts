import { describe, expect, test } from "vitest";
import { type Day, liveDay } from "./saturated-day.ts";
import { endlessLimits, LIMITINGS } from "./limited-service.ts";

const day = (parts: Pick<Day, "limiter" | "headers" | "limits" | "categories" | "hours">): Day => ({
  reset: "full",
  seed: 7,
  restartEveryMs: 20 * 60_000,
  lane: (random) => (random() < 0.5 ? "walk" : "detail"),
  ...parts,
});

describe.each(LIMITINGS)("against a $limiter whose headers speak of: $headers", ({ limiter, headers }) => {
  test("a day of unending node calls, killed now and then, is never refused, and spends what it may", () => {
    const report = liveDay(
      day({ limiter, headers, limits: endlessLimits("enterprise"), categories: ["node_management"], hours: 24 }),
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
        limits: endlessLimits("starter"),
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
        limits: endlessLimits("business"),
        categories: ["node_management", "session_monitoring"],
        hours: 3,
      }),
    );
    expect(report.refused).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(0.9 * 400);
    expect(report.callsPerMinute).toBeLessThanOrEqual(400);
  });
});

test.each(LIMITINGS)(
  "another user of the key who keeps to the reserve costs us no 429 ($limiter, $headers)",
  ({ limiter, headers }) => {
    const limits = endlessLimits("enterprise");
    const report = liveDay({
      ...day({ limiter, headers, limits, categories: ["node_management"], hours: 6 }),
      others: 15,
    });
    expect(report.refused).toBe(0);
    expect(report.callsPerMinute).toBeGreaterThan(60);
  },
);

test("a service that names the next token as its reset is polled at the same rate, and never refuses", () => {
  const limits = endlessLimits("enterprise");
  const parts = day({
    limiter: "token_bucket",
    headers: "category",
    limits,
    categories: ["node_management"],
    hours: 24,
  });
  const report = liveDay({ ...parts, reset: "next_token" });
  expect(report.refused).toBe(0);
  expect(report.callsPerMinute).toBeGreaterThan(0.93 * 80);
});
