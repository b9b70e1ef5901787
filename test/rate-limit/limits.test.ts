import { expect, test } from "vitest";
import {
  actionReserveOf,
  allowanceOf,
  effectiveReserve,
  externalFloorOf,
  PLANS,
  reservedCalls,
} from "../../src/rate-limit/limits.ts";
import { pollingCallsLeft, storedMonthOf } from "../../src/rate-limit/monthly-budget.ts";
import { categoryPaceRates, createPace, paceAvailableAt, payForCall } from "../../src/rate-limit/window-pace.ts";
import { limitsWithoutPlan } from "./limited-service.ts";

const DAY_MS = 86_400_000;
const WINDOW_MS = 60_000;

/** Pace rates under a limit of which polling leaves 20%. */
function paceRatesOf(requests: number) {
  const limits = limitsWithoutPlan("enterprise");
  const category = { requests, burst: requests, windowMs: WINDOW_MS };
  const categories = { ...limits.categories, node_management: category };
  return categoryPaceRates({ ...limits, categories }, "node_management");
}

test("polling leaves the reserve, rounded up, and at least 12%", () => {
  expect([reservedCalls(100, 0.2), reservedCalls(99, 0.2), reservedCalls(5, 0.2)]).toEqual([20, 20, 1]);
  expect([effectiveReserve(0), effectiveReserve(0.12), effectiveReserve(0.5)]).toEqual([0.12, 0.12, 0.5]);
});

test("actions may use half of the reserve unless others need it", () => {
  expect(allowanceOf(100, 0.2, 0)).toEqual({ polling: 80, reserved: 20, actionReserve: 10 });
  expect(allowanceOf(100, 0.2, 15)).toEqual({ polling: 80, reserved: 20, actionReserve: 5 });
  expect(allowanceOf(100, 0.2, 20)).toEqual({ polling: 80, reserved: 20, actionReserve: 0 });
  expect([actionReserveOf(20), actionReserveOf(21), actionReserveOf(1)]).toEqual([10, 10, 0]);
});

test("external usage above the reserve leaves at least one polling call", () => {
  expect(allowanceOf(100, 0.2, 50)).toEqual({ polling: 50, reserved: 50, actionReserve: 0 });
  expect(allowanceOf(100, 0.2, 200)).toEqual({ polling: 1, reserved: 100, actionReserve: 0 });
});

test("2% of a limit, rounded up, are always left to others", () => {
  expect([externalFloorOf(100), externalFloorOf(101), externalFloorOf(10)]).toEqual([2, 3, 1]);
});

test("at the even pace no window exceeds the polling calls, including those sent back to back", () => {
  expect(paceRatesOf(100).evenPace).toEqual({ costMs: WINDOW_MS / 79, capacity: 1 });
  expect(paceRatesOf(500).evenPace).toEqual({ costMs: WINDOW_MS / 392, capacity: 8 });
  expect(paceRatesOf(1).evenPace).toEqual({ costMs: WINDOW_MS, capacity: 1 });
});

test("actions may use half of the polling calls in the long run", () => {
  expect(paceRatesOf(100).actionPace).toEqual({ costMs: 1_500, capacity: 10 });
  expect(paceRatesOf(1).actionPace).toEqual({ costMs: WINDOW_MS, capacity: 1 });
});

test("a pace starts empty and saves at most its capacity", () => {
  const rates = { evenPace: { costMs: 100, capacity: 3 }, actionPace: { costMs: 100, capacity: 3 } };
  const pace = createPace(rates, 1_000);
  const availableAt = () => [paceAvailableAt(pace, rates, "walk", 3), paceAvailableAt(pace, rates, "action", 3)];
  expect(availableAt()).toEqual([1_100, 1_100]);
  payForCall(pace, rates, "walk", 1_100);
  expect(availableAt()).toEqual([1_200, 1_200]);
  payForCall(pace, rates, "walk", 9_000);
  expect(availableAt()).toEqual([8_900, 8_900]);
});

test("polling leaves actions 1% of the month or what they need, but at most half of the calls left", () => {
  const limits = { ...limitsWithoutPlan("starter"), plan: PLANS.starter };
  const left = (used: number, actionsPerDay: number) =>
    pollingCallsLeft(limits, { callsUsed: used, leftMs: 10 * DAY_MS }, actionsPerDay);
  expect(left(50_000, 0)).toBe(49_000);
  expect(left(50_000, 1_000)).toBe(40_000);
  expect(left(50_000, 10_000)).toBe(25_000);
  expect([left(98_900, 0), left(99_500, 0), left(200_000, 0)]).toEqual([100, 0, 0]);
  expect(pollingCallsLeft(limitsWithoutPlan("starter"), { callsUsed: 0, leftMs: DAY_MS }, 0)).toBe(null);
});

test("the stored month counts if the wall clock is before it, and not if it can't be read", () => {
  const now = Date.UTC(2026, 2, 20);
  const days = [null, "soon", "2026-02-05", "2026-04-05"].map((fact) => storedMonthOf(fact, now, 5).firstDay);
  expect(days).toEqual(["2026-03-05", "2026-03-05", "2026-03-05", "2026-04-05"]);
});
