import { describe, expect, test } from "vitest";
import { availableBesideExternalUsage } from "../../../src/rate-limit/external-usage/external-usage.ts";
import { ExternalUsageOfLimit } from "../../../src/rate-limit/external-usage/usage-of-limit.ts";
import { createLedger } from "../../../src/rate-limit/ledger.ts";
import type { Lane } from "../../../src/rate-limit/limits.ts";
import { limitsWith, WINDOW_MS } from "../limited-service.ts";

const NEVER = Number.NEGATIVE_INFINITY;

describe("availability beside external usage", () => {
  const usageWith = (overrides: Partial<ExternalUsageOfLimit>): ExternalUsageOfLimit => {
    const defaults: Partial<ExternalUsageOfLimit> = {
      expectedCalls: () => 0,
      isTokenBucket: () => false,
      lastOwnCallAt: () => NEVER,
      ownCallsFewerThan: (calls) => calls * 1_000,
    };
    return Object.assign(new ExternalUsageOfLimit(), defaults, overrides);
  };
  interface Options {
    readonly lane?: Lane;
    readonly remaining?: number | null;
    readonly plan?: number;
    readonly ofPlan?: Partial<ExternalUsageOfLimit>;
  }
  const availableAt = (
    overrides: Partial<ExternalUsageOfLimit>,
    { lane = "walk", remaining = null, plan, ofPlan = {} }: Options = {},
  ) => {
    const ledger = createLedger(limitsWith(plan ?? null), 0);
    Object.assign(ledger.externalUsage, { node_management: usageWith(overrides), plan: usageWith(ofPlan) });
    const { stated } = ledger.categories.node_management;
    if (remaining !== null) stated.record(0, { limit: 100, remaining: remaining - 1, resetAt: null }, 0);
    return availableBesideExternalUsage(ledger, "node_management", lane, 7);
  };

  test("is immediate if no calls are expected, or if they fit into a bucket's reserve", () => {
    expect(availableAt({})).toBe(7);
    expect(availableAt({ expectedCalls: () => 20, isTokenBucket: () => true })).toBe(7);
    expect(availableAt({ expectedCalls: () => 21, isTokenBucket: () => true })).toBe(79_000);
  });

  test("leaves expected calls room in the window; actions may use their part of the reserve", () => {
    expect(availableAt({ expectedCalls: () => 10 })).toBe(80_000);
    expect(availableAt({ expectedCalls: () => 10 }, { lane: "action" })).toBe(90_000);
    expect(availableAt({ expectedCalls: () => 50 }, { lane: "action" })).toBe(52_000);
  });

  test("spaces our calls evenly if others need more than the reserve", () => {
    expect(availableAt({ expectedCalls: () => 20, lastOwnCallAt: () => 90_000 })).toBe(80_000);
    expect(availableAt({ expectedCalls: () => 50, lastOwnCallAt: () => 90_000 })).toBe(90_000 + WINDOW_MS / 50);
    expect(availableAt({ expectedCalls: () => 99, lastOwnCallAt: () => 90_000 })).toBe(90_000 + WINDOW_MS / 4);
  });

  test("is immediate while a bucket holds more than the calls of a window", () => {
    const bucket = { expectedCalls: () => 50, isTokenBucket: () => true };
    expect([
      availableAt(bucket, { remaining: 100 }),
      availableAt(bucket, { remaining: 101 }),
      availableAt(bucket),
    ]).toEqual([50_000, 7, 50_000]);
    expect(availableAt({ expectedCalls: () => 50 }, { remaining: 101 })).toBe(50_000);
  });

  test("leaves room under the plan for calls expected in any category", () => {
    expect(availableAt({ expectedCalls: () => 10 }, { plan: 500 })).toBe(400_000);
    expect(availableAt({}, { plan: 500, ofPlan: { expectedCalls: () => 200 } })).toBe(300_000);
    expect(availableAt({}, { plan: 500 })).toBe(7);
    expect(availableAt({ expectedCalls: () => 50, isTokenBucket: () => true }, { remaining: 101, plan: 500 })).toBe(
      400_000,
    );
  });
});
