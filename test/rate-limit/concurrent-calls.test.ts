import { describe, expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { concurrencyAvailableAt, createConcurrentCalls, endCall } from "../../src/rate-limit/concurrent-calls.ts";
import { type Limits, PLANS } from "../../src/rate-limit/limits.ts";
import { createPlanLimits } from "../harness/daemon/virtual-daemon.ts";

/** Eight concurrent polling calls, and one more for an action. */
const starter = createPlanLimits("starter");
const HOUR = 60 * MINUTE_MS;

/** Creates the calls of a process that has run for long, with this many in flight. */
function start(inFlight: number, limits: Limits = starter) {
  const calls = createConcurrentCalls(limits, 0);
  calls.inFlight = inFlight;
  concurrencyAvailableAt(calls, limits, "walk", HOUR);
  return calls;
}

describe("an abandoned call", () => {
  test("counts for a minute, and an answered one no longer", () => {
    const calls = start(8);
    expect(concurrencyAvailableAt(calls, starter, "walk", HOUR)).toBe(Number.POSITIVE_INFINITY);
    endCall(calls, true, HOUR);
    expect(concurrencyAvailableAt(calls, starter, "walk", HOUR + SECOND_MS)).toBe(HOUR + MINUTE_MS);
    endCall(calls, false, HOUR + SECOND_MS);
    expect(concurrencyAvailableAt(calls, starter, "walk", HOUR + SECOND_MS)).toBe(HOUR + SECOND_MS);
    calls.inFlight = 7;
    expect(concurrencyAvailableAt(calls, starter, "walk", HOUR + MINUTE_MS)).toBe(HOUR + MINUTE_MS);
  });

  test("leaves room for an action, and each that ends leaves room for one call", () => {
    const calls = start(9);
    for (let second = 0; second < 9; second++) endCall(calls, true, HOUR + second * SECOND_MS);
    const now = HOUR + 30 * SECOND_MS;
    expect(concurrencyAvailableAt(calls, starter, "walk", now)).toBe(HOUR + MINUTE_MS + SECOND_MS);
    expect(concurrencyAvailableAt(calls, starter, "action", now)).toBe(HOUR + MINUTE_MS);
    calls.inFlight = 2;
    expect(concurrencyAvailableAt(calls, starter, "walk", now)).toBe(HOUR + MINUTE_MS + 3 * SECOND_MS);
  });
});

test.each([
  ["starter", 1, 8],
  ["business", 5, 40],
] as const)("%s: a new process makes %d concurrent calls, and %d after a minute", (plan, first, later) => {
  const limits = createPlanLimits(plan);
  const most = (at: number) => {
    const calls = createConcurrentCalls(limits, 0);
    while (concurrencyAvailableAt(calls, limits, "walk", at) <= at) calls.inFlight++;
    return calls.inFlight;
  };
  expect([most(0), most(MINUTE_MS - 1), most(MINUTE_MS)]).toEqual([first, first, later]);
});

test.each([null, 1, 2, 3])("a process whose plan allows %s concurrent calls can always make one", (cap) => {
  const limits: Limits = { ...starter, plan: { ...PLANS.starter, concurrentRequests: cap } };
  expect(concurrencyAvailableAt(createConcurrentCalls(limits, 0), limits, "walk", 0)).toBe(0);
});
