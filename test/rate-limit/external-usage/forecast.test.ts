import { describe, expect, test } from "vitest";
import { UsageForecast } from "../../../src/rate-limit/external-usage/forecast.ts";

const MINUTE = 60_000;

/** Records the count of each window ten times. */
function recordWindows(forecast: UsageForecast, counts: readonly number[], fromWindow = 0): void {
  counts.forEach((count, window) => {
    for (let step = 1; step <= 10; step++) {
      forecast.record(count, MINUTE, (fromWindow + window) * MINUTE + step * 5_900);
    }
  });
}

/** Expected calls after `counts`, one per window, and a number of windows without a record. */
const expectedAfter = (counts: readonly number[], windows: number): number => {
  const forecast = new UsageForecast();
  recordWindows(forecast, counts);
  return forecast.expected((counts.length + windows) * MINUTE - 1);
};

test("expects nothing without external calls", () => {
  expect(new UsageForecast().expected(0)).toBe(0);
  expect(expectedAfter([0, 0, 0, 0], 0)).toBe(0);
});

test("expects the maximum of the last windows, plus a tenth, plus one", () => {
  expect(expectedAfter([40, 43, 38, 40, 41], 0)).toBe(Math.ceil(43 * 1.1 + 1));
});

test("expects calls for five windows after they stopped", () => {
  const steady = [40, 40, 40, 40, 40, 40];
  expect(expectedAfter(steady, 5)).toBe(45);
  expect(expectedAfter(steady, 6)).toBe(0);
});

describe("after pauses", () => {
  const bursts = (pause: number) => [60, ...new Array(pause - 1).fill(0), 60];

  test("expects the next burst for one and a half times the longest pause", () => {
    expect(expectedAfter(bursts(10), 15)).toBe(67);
    expect(expectedAfter(bursts(10), 16)).toBe(0);
  });

  test("expects no burst for more than 30 windows", () => {
    expect(expectedAfter(bursts(40), 30)).toBe(67);
    expect(expectedAfter(bursts(40), 31)).toBe(0);
  });

  test("a window with slightly fewer calls is not a pause", () => {
    expect(expectedAfter([60, 35, 35, 35, 35, 35, 35, 35, 60], 6)).toBe(0);
  });
});

test("extrapolates a rise above all previous windows until a count shows its end", () => {
  const forecast = new UsageForecast();
  recordWindows(forecast, [0, 0]);
  // Two calls per second for ten seconds.
  for (let second = 0; second <= 10; second++) forecast.record(2 * second, MINUTE, 2 * MINUTE + second * 1_000);
  const rising = 2 * MINUTE + 10_000;
  expect(forecast.expected(rising)).toBeGreaterThan(75);
  forecast.record(20, MINUTE, rising + 20_000);
  expect(forecast.expected(rising + 20_000)).toBe(23);
});

test("a rise without a later count lasts for a window", () => {
  const forecast = new UsageForecast();
  recordWindows(forecast, [0, 0]);
  for (let second = 0; second <= 10; second++) forecast.record(2 * second, MINUTE, 2 * MINUTE + second * 1_000);
  expect(forecast.expected(3 * MINUTE)).toBeGreaterThan(75);
  expect(forecast.expected(4 * MINUTE)).toBe(23);
});

test("the calls of a whole window are not extrapolated", () => {
  const forecast = new UsageForecast();
  forecast.recordWindow(40, MINUTE, 10_000);
  expect(forecast.expected(10_000)).toBe(45);
});

test("a lower count in the same window does not lower the expectation", () => {
  const forecast = new UsageForecast();
  forecast.recordWindow(40, MINUTE, 10_000);
  forecast.recordWindow(20, MINUTE, 20_000);
  expect(forecast.expected(20_000)).toBe(45);
  forecast.recordWindow(60, MINUTE, 30_000);
  expect(forecast.expected(30_000)).toBe(67);
});

test("extrapolates the last quarter of a window over three more quarters", () => {
  const forecast = new UsageForecast();
  recordWindows(forecast, [0, 0]);
  forecast.record(0, MINUTE, 2 * MINUTE);
  forecast.record(30, MINUTE, 2 * MINUTE + 15_000);
  expect(forecast.expected(2 * MINUTE + 15_000)).toBe(Math.ceil((30 + 3 * 30) * 1.1 + 1));
  forecast.record(60, MINUTE, 2 * MINUTE + 30_000);
  expect(forecast.expected(2 * MINUTE + 30_000)).toBe(Math.ceil((60 + 3 * 30) * 1.1 + 1));
});

test("one call is expected again, and less than one call is none", () => {
  expect(expectedAfter([1], 0)).toBe(3);
  expect(expectedAfter([0.9], 0)).toBe(0);
});
