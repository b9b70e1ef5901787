import { describe, expect, test } from "vitest";
import { LIMITER_KINDS, type LimiterKind } from "../../../src/config/schema/scenario.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { runSharedHours, type SecondClient, type SharedReport } from "./second-client.ts";

const LIMITERS_TESTED = isLongRun ? LIMITER_KINDS : (["token_bucket"] as const);

/** Calls once in a second and a half: twice what the reserve holds. */
const steady: SecondClient = { category: "node_management", calls: 1, everyMs: 1_500, jitter: 0.5 };

/** Share of the other client's calls that is detected at least. A sliding counter shows some only by their share. */
const detectedMin = (limiter: LimiterKind) => (limiter === "sliding_counter" ? 0.9 : 0.95);

const byCategory = (limiter: LimiterKind) => ({ limiter, rateLimitHeaders: "category", plan: "enterprise" }) as const;

/** Mean of our calls a minute, in minutes `from` to `until`. */
const rate = ({ ownCalls }: SharedReport, from: number, until: number): number =>
  ownCalls.slice(from, until).reduce((sum, calls) => sum + calls, 0) / (until - from);

describe.each(LIMITERS_TESTED)("a second client of the key, under a %s", (limiter) => {
  test("steady calls cause no 429 for either, and we use most of what is left", async () => {
    const report = await runSharedHours({ service: byCategory(limiter), minutes: 30, secondClients: [steady] });
    expect(report.rejected).toEqual({ ownPerMinute: [], externalPerMinute: [] });
    // 100 a minute less their 40 leaves 60.
    expect(rate(report, 5, 30)).toBeGreaterThan(45);
    expect(report.reported.node_management).toBeGreaterThan(detectedMin(limiter) * report.externalCalls);
    expect(report.reported.node_management).toBeLessThanOrEqual(report.externalCalls);
  });

  test("calls that start and stop are left room immediately, and we use it again within six minutes", async () => {
    const visit = { ...steady, everyMs: 1_000, fromMinute: 10, untilMinute: 20 };
    const report = await runSharedHours({ service: byCategory(limiter), minutes: 35, secondClients: [visit] });
    expect(report.rejected).toEqual({ ownPerMinute: [], externalPerMinute: [] });
    expect(rate(report, 2, 10)).toBeGreaterThan(74);
    expect(rate(report, 11, 20)).toBeGreaterThan(24);
    expect(rate(report, 27, 35)).toBeGreaterThan(74);
  });

  test("bursts of 60 calls every ten minutes get 429 at first, and none once the pauses are known", async () => {
    const bursts = { ...steady, calls: 60, everyMs: 600_000, jitter: 0 };
    const report = await runSharedHours({ service: byCategory(limiter), minutes: 60, secondClients: [bursts] });
    expect(report.externalCalls).toBe(360);
    // A pause is known once they are back from it, and how many they are only once all of them were admitted.
    const known = 30;
    expect(report.rejected.ownPerMinute.filter((minute) => minute >= known)).toEqual([]);
    expect(report.rejected.externalPerMinute.filter((minute) => minute >= known)).toEqual([]);
    expect(rate(report, known, 60)).toBeGreaterThan(24);
  });

  test("calls within the reserve cause no 429 for either, even without headers", async () => {
    const report = await runSharedHours({
      service: { ...byCategory(limiter), rateLimitHeaders: "off" },
      minutes: 30,
      secondClients: [{ ...steady, everyMs: 4_000 }],
    });
    expect(report.rejected).toEqual({ ownPerMinute: [], externalPerMinute: [] });
    expect(report.reported.node_management).toBe(0);
    expect(rate(report, 0, 30)).toBeGreaterThan(74);
  });

  test("calls beyond the reserve without headers are left room after 429s, which become rarer", async () => {
    const report = await runSharedHours({
      service: { ...byCategory(limiter), rateLimitHeaders: "off" },
      minutes: 60,
      secondClients: [steady],
    });
    expect(report.rejected.ownPerMinute.length).toBeGreaterThan(0);
    expect(report.rejected.ownPerMinute.length).toBeLessThanOrEqual(5);
    expect(report.rejected.externalPerMinute.length).toBeLessThan(0.02 * report.externalCalls);
    expect(rate(report, 0, 60)).toBeGreaterThan(20);
  });
});

test("external calls count in the month and are stored", async () => {
  const report = await runSharedHours({ service: byCategory("sliding_window"), minutes: 15, secondClients: [steady] });
  const ownCalls = report.ownCalls.reduce((sum, calls) => sum + calls, 0);
  expect(report.monthCalls).toBeGreaterThan(ownCalls + 0.95 * report.externalCalls);
  expect(report.monthCalls).toBeLessThan(ownCalls + 1.05 * report.externalCalls);
});

test("headers that state the plan's limit show external calls of both categories, which are left room", async () => {
  const categories = ["node_management", "session_monitoring"] as const;
  const report = await runSharedHours({
    service: { limiter: "sliding_window", rateLimitHeaders: "plan", plan: "starter" },
    minutes: 20,
    categories,
    secondClients: categories.map((category) => ({ category, calls: 1, everyMs: 4_000, jitter: 0.5 })),
  });
  expect(report.rejected).toEqual({ ownPerMinute: [], externalPerMinute: [] });
  expect(report.reported).toMatchObject({ node_management: 0, session_monitoring: 0 });
  expect(report.reported.plan).toBeGreaterThan(0.95 * report.externalCalls);
  expect(rate(report, 5, 20)).toBeGreaterThan(40);
});
