import { describe, expect, test } from "vitest";
import { runSharedHours, type SecondClient, type SharedReport } from "./second-client.ts";

const limiters = ["token_bucket", "fixed_window", "sliding_window"] as const;
/** Calls once in a second and a half: twice what the reserve holds. */
const steady: SecondClient = { category: "node_management", calls: 1, everyMs: 1_500, jitter: 0.5 };

const byCategory = (limiter: (typeof limiters)[number]) =>
  ({ limiter, rateLimitHeaders: "category", plan: "enterprise" }) as const;

/** Mean of our calls a minute, in minutes `from` to `until`. */
const rate = ({ ownCalls: ours }: SharedReport, from: number, until: number): number =>
  ours.slice(from, until).reduce((sum, calls) => sum + calls, 0) / (until - from);

describe.each(limiters)("a second client of the key, under a %s", (limiter) => {
  test("one that calls steadily is refused nothing, nor are we, and we spend most of what it leaves", async () => {
    const report = await runSharedHours({ service: byCategory(limiter), minutes: 30, seconds: [steady] });
    expect(report.rejected).toEqual({ ownPerMinute: [], externalPerMinute: [] });
    // 100 a minute less their 40 leaves 60.
    expect(rate(report, 5, 30)).toBeGreaterThan(45);
    expect(report.reported.node_management).toBeGreaterThan(0.95 * report.externalCalls);
    expect(report.reported.node_management).toBeLessThanOrEqual(report.externalCalls);
  });

  test("one that comes unannounced and goes again is made room for at once, and we have its share back in six minutes", async () => {
    const visit = { ...steady, everyMs: 1_000, fromMinute: 10, untilMinute: 20 };
    const report = await runSharedHours({ service: byCategory(limiter), minutes: 35, seconds: [visit] });
    expect(report.rejected).toEqual({ ownPerMinute: [], externalPerMinute: [] });
    expect(rate(report, 2, 10)).toBeGreaterThan(74);
    expect(rate(report, 11, 20)).toBeGreaterThan(24);
    expect(rate(report, 27, 35)).toBeGreaterThan(74);
  });

  test("one that calls 60 times at once every ten minutes is refused at first, and never once its pauses are known", async () => {
    const bursts = { ...steady, calls: 60, everyMs: 600_000, jitter: 0 };
    const report = await runSharedHours({ service: byCategory(limiter), minutes: 60, seconds: [bursts] });
    expect(report.externalCalls).toBe(360);
    // A pause is known once they are back from it, and how many they are only once all of them were admitted.
    const known = 30;
    expect(report.rejected.ownPerMinute.filter((minute) => minute >= known)).toEqual([]);
    expect(report.rejected.externalPerMinute.filter((minute) => minute >= known)).toEqual([]);
    expect(rate(report, known, 60)).toBeGreaterThan(24);
  });

  test("one within the reserve is refused nothing, nor are we, though no header tells of it", async () => {
    const report = await runSharedHours({
      service: { ...byCategory(limiter), rateLimitHeaders: "off" },
      minutes: 30,
      seconds: [{ ...steady, everyMs: 4_000 }],
    });
    expect(report.rejected).toEqual({ ownPerMinute: [], externalPerMinute: [] });
    expect(report.reported.node_management).toBe(0);
    expect(rate(report, 0, 30)).toBeGreaterThan(74);
  });

  test("one beyond the reserve, of which no header tells, is made room for by refusals, more seldom each time", async () => {
    const report = await runSharedHours({
      service: { ...byCategory(limiter), rateLimitHeaders: "off" },
      minutes: 60,
      seconds: [steady],
    });
    expect(report.rejected.ownPerMinute.length).toBeGreaterThan(0);
    expect(report.rejected.ownPerMinute.length).toBeLessThanOrEqual(5);
    expect(report.rejected.externalPerMinute.length).toBeLessThan(0.02 * report.externalCalls);
    expect(rate(report, 0, 60)).toBeGreaterThan(20);
  });
});

test("what others called counts in the month, and survives in the store", async () => {
  const report = await runSharedHours({ service: byCategory("sliding_window"), minutes: 15, seconds: [steady] });
  const ours = report.ownCalls.reduce((sum, calls) => sum + calls, 0);
  expect(report.monthCalls).toBeGreaterThan(ours + 0.95 * report.externalCalls);
  expect(report.monthCalls).toBeLessThan(ours + 1.05 * report.externalCalls);
});

test("headers that speak of the plan tell of others in either category, and the plan's minute is shared with them", async () => {
  const categories = ["node_management", "session_monitoring"] as const;
  const report = await runSharedHours({
    service: { limiter: "sliding_window", rateLimitHeaders: "plan", plan: "starter" },
    minutes: 20,
    categories,
    seconds: categories.map((category) => ({ category, calls: 1, everyMs: 4_000, jitter: 0.5 })),
  });
  expect(report.rejected).toEqual({ ownPerMinute: [], externalPerMinute: [] });
  expect(report.reported).toMatchObject({ node_management: 0, session_monitoring: 0 });
  expect(report.reported.plan).toBeGreaterThan(0.95 * report.externalCalls);
  expect(rate(report, 5, 20)).toBeGreaterThan(40);
});
