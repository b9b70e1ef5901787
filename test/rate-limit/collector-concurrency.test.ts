import { expect, test } from "vitest";
import {
  callsInFlightMax,
  callsInFlightNeeded,
  createMeanLatency,
  createPagesInFlight,
} from "../../src/rate-limit/collector-concurrency.ts";
import { createPlanLimits } from "../harness/daemon/virtual-daemon.ts";

test.each([
  { spacingMs: 13, latencyMs: 70, max: 256, calls: 11 },
  { spacingMs: 13, latencyMs: 2_000, max: 256, calls: 256 },
  { spacingMs: 13, latencyMs: 2_000, max: 40, calls: 40 },
  { spacingMs: 1_000, latencyMs: 50, max: 40, calls: 4 },
  { spacingMs: 1_000, latencyMs: 50, max: 1, calls: 1 },
  { spacingMs: 1_000, latencyMs: 0, max: 40, calls: 4 },
  { spacingMs: 0, latencyMs: 50, max: 40, calls: 40 },
  { spacingMs: Number.POSITIVE_INFINITY, latencyMs: 50, max: 40, calls: 4 },
])("needs $calls concurrent calls for one every $spacingMs ms with a latency of $latencyMs ms, at most $max", (row) => {
  expect(callsInFlightNeeded(row.spacingMs, row.latencyMs, row.max)).toBe(row.calls);
});

test("the number of concurrent pages grows up to 256, unless pages take more than twice as long as first pages", () => {
  const pages = createPagesInFlight();
  pages.record(100, true);
  expect(pages.max()).toBe(4);
  for (let page = 0; page < 20; page++) pages.record(150, false);
  expect(pages.max()).toBe(24);
  for (let page = 0; page < 6; page++) pages.record(300, false);
  expect(pages.max()).toBe(12);
  for (let page = 0; page < 50; page++) pages.record(10_000, false);
  expect(pages.max()).toBe(4);
  for (let page = 0; page < 500; page++) pages.record(100, false);
  expect(pages.max()).toBe(256);
});

test("is limited by the plan's concurrency less the reserve, and by 256", () => {
  expect(callsInFlightMax(createPlanLimits("starter"))).toBe(8);
  expect(callsInFlightMax(createPlanLimits("business"))).toBe(40);
  expect(callsInFlightMax(createPlanLimits("enterprise"))).toBe(256);
});

test("the mean latency follows a change within a few dozen calls, and a single slow call has little effect", () => {
  const latency = createMeanLatency();
  expect(latency.meanMs()).toBe(0);
  for (let call = 0; call < 100; call++) latency.record(50);
  latency.record(10_000);
  expect(latency.meanMs()).toBeLessThan(400);
  for (let call = 0; call < 100; call++) latency.record(1_000);
  expect(latency.meanMs()).toBeGreaterThan(900);
});
