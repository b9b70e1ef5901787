import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Safety } from "../../../src/config/schema/safety.ts";
import {
  assumedActionTimes,
  effectiveLimits,
  incidentNodesMin,
  limitsByName,
} from "../../../src/policy/guards/safety-limits.ts";
import { defaultSafety } from "../../harness/policies.ts";
import { propertyRuns } from "../../harness/run-length.ts";

const limits = (nodes: number, safety: Partial<Safety> = {}) => effectiveLimits({ ...defaultSafety, ...safety }, nodes);

describe("effective limits", () => {
  test.each([
    [1, { maxUnhealthy: 1, maxDisrupted: 1, breaker: 10 }],
    [3, { maxUnhealthy: 1, maxDisrupted: 1, breaker: 10 }],
    [20, { maxUnhealthy: 4, maxDisrupted: 1, breaker: 10 }],
    [39, { maxUnhealthy: 7, maxDisrupted: 1, breaker: 10 }],
    [40, { maxUnhealthy: 8, maxDisrupted: 2, breaker: 10 }],
    [220, { maxUnhealthy: 44, maxDisrupted: 5, breaker: 11 }],
    [100_000, { maxUnhealthy: 20_000, maxDisrupted: 5, breaker: 5_000 }],
  ])("of a fleet of %i nodes with the default safety", (nodes, expected) => {
    expect(limits(nodes)).toEqual(expected);
  });

  test("shares round down, with rounding errors compensated", () => {
    expect(limits(100, { maxUnhealthy: { share: 0.29 } }).maxUnhealthy).toBe(29);
    expect(limits(99, { maxUnhealthy: { share: 0.29 } }).maxUnhealthy).toBe(28);
    expect(limits(1_000, { maxUnhealthy: { share: 0.007 } }).maxUnhealthy).toBe(7);
  });

  test("a share of 0 allows no node, and so does an amount of 0", () => {
    const none = { maxUnhealthy: { share: 0 }, maxDisrupted: { share: 0, amount: 5 } };
    expect(limits(100_000, none)).toMatchObject({ maxUnhealthy: 0, maxDisrupted: 0 });
    expect(limits(100, { maxDisrupted: { share: 1, amount: 0 } }).maxDisrupted).toBe(0);
    expect(limits(100, { breaker: { share: 0, amount: 0, withinMs: 1 } }).breaker).toBe(0);
  });

  test("a share above 0 is at least one node, at most the fleet, and not more in a smaller fleet", () => {
    const shares = fc.integer({ min: 1, max: 10_000 }).map((hundredths) => hundredths / 10_000);
    fc.assert(
      fc.property(shares, fc.integer({ min: 1, max: 200_000 }), (share, nodes) => {
        const of = (count: number) => limits(count, { maxUnhealthy: { share } }).maxUnhealthy;
        expect(of(nodes)).toBeGreaterThanOrEqual(1);
        expect(of(nodes)).toBeLessThanOrEqual(nodes);
        expect(of(nodes)).toBe(Math.max(1, Math.floor((Math.round(share * 10_000) * nodes) / 10_000)));
        expect(of(nodes)).toBeLessThanOrEqual(of(nodes + 1));
      }),
      propertyRuns(2_000),
    );
  });
});

test("an incident needs at least two nodes, however small the region or the share", () => {
  const size = (nodes: number, share: number, domainNodes: number) =>
    incidentNodesMin({ ...defaultSafety, correlated: { ...defaultSafety.correlated, nodes, share } }, domainNodes);
  expect([0, 1, 3, 5, 6, 9, 10, 500].map((domainNodes) => size(5, 0.5, domainNodes))).toEqual([2, 2, 2, 2, 3, 4, 5, 5]);
  expect(size(5, 0, 100)).toBe(2);
  expect(size(2, 1, 100)).toBe(2);
});

test("limits have the names of the configuration, and limits per region or country exist only if set", () => {
  expect(limitsByName(defaultSafety, 100)).toEqual({
    max_unhealthy: 20,
    max_disrupted: 5,
    "max_disrupted_per.region": 1,
    "min_online_per.region": 1,
    max_in_flight: 1,
    max_actions: 6,
    breaker: 10,
  });
  const safety = { ...defaultSafety, maxDisruptedPer: { region: null, country: 0 } };
  const named = limitsByName(safety, 100);
  expect(named["max_disrupted_per.country"]).toBe(0);
  expect(named).not.toHaveProperty("max_disrupted_per.region");
});

describe("a new journal assumes that max_actions is used up,", () => {
  const MINUTE = 60_000;
  /** Minutes from the journal's beginning until each of them counts no more. */
  const freeAfter = (perMinutes: number, now: number, beganAt: number | null = 0) =>
    assumedActionTimes(
      beganAt,
      { ...defaultSafety, maxActions: { amount: 6, perMs: perMinutes * MINUTE } },
      now * MINUTE,
    ).map((at) => at / MINUTE + perMinutes);

  test("and becomes available evenly over the period", () => {
    expect(freeAfter(30, 0)).toEqual([5, 10, 15, 20, 25, 30]);
    expect(freeAfter(30, 9)).toEqual([10, 15, 20, 25, 30]);
    expect(freeAfter(30, 10)).toEqual([15, 20, 25, 30]);
    expect([freeAfter(30, 29), freeAfter(30, 30)]).toEqual([[30], []]);
    expect(freeAfter(30, -5)).toHaveLength(6);
  });

  test("for at most an hour, however long the period of max_actions is", () => {
    expect(freeAfter(24 * 60, 0)).toEqual([10, 20, 30, 40, 50, 60]);
    expect([freeAfter(24 * 60, 59), freeAfter(24 * 60, 60)]).toEqual([[60], []]);
  });

  test("but not if the journal has all actions", () => {
    expect(freeAfter(30, 0, null)).toEqual([]);
  });
});
