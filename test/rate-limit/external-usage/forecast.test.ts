import { describe, expect, test } from "vitest";
import { UsageForecast } from "../../../src/rate-limit/external-usage/forecast.ts";

const MINUTE = 60_000;

/** Counts of whole windows, each looked at ten times, as its calls come evenly. */
function noteEvenly(forecast: UsageForecast, counts: readonly number[], fromWindow = 0): void {
  counts.forEach((count, window) => {
    for (let look = 1; look <= 10; look++) {
      forecast.record(count, MINUTE, (fromWindow + window) * MINUTE + look * 5_900);
    }
  });
}

/** Looks at a count in one window after another, all at once in each. */
const expectedAfter = (counts: readonly number[], windows: number): number => {
  const forecast = new UsageForecast();
  noteEvenly(forecast, counts);
  return forecast.expected((counts.length + windows) * MINUTE - 1);
};

test("of others that were never seen nothing is expected", () => {
  expect(new UsageForecast().expected(0)).toBe(0);
  expect(expectedAfter([0, 0, 0, 0], 0)).toBe(0);
});

test("others are expected to do again the most of the last windows, and a tenth and one more", () => {
  expect(expectedAfter([40, 43, 38, 40, 41], 0)).toBe(Math.ceil(43 * 1.1 + 1));
});

test("who stopped is expected for five more windows, and then no more", () => {
  const steady = [40, 40, 40, 40, 40, 40];
  expect(expectedAfter(steady, 5)).toBe(45);
  expect(expectedAfter(steady, 6)).toBe(0);
});

describe("of who makes pauses", () => {
  const bursts = (pause: number) => [60, ...new Array(pause - 1).fill(0), 60];

  test("the next burst is expected for half as long again as the longest pause", () => {
    expect(expectedAfter(bursts(10), 15)).toBe(67);
    expect(expectedAfter(bursts(10), 16)).toBe(0);
  });

  test("nobody is expected for longer than half an hour of windows", () => {
    expect(expectedAfter(bursts(40), 30)).toBe(67);
    expect(expectedAfter(bursts(40), 31)).toBe(0);
  });

  test("a window with a little less is no pause", () => {
    expect(expectedAfter([60, 35, 35, 35, 35, 35, 35, 35, 60], 6)).toBe(0);
  });
});

test("who does more than ever is taken to go on so, until a count says otherwise", () => {
  const forecast = new UsageForecast();
  noteEvenly(forecast, [0, 0]);
  // Two a second, for ten seconds.
  for (let second = 0; second <= 10; second++) forecast.record(2 * second, MINUTE, 2 * MINUTE + second * 1_000);
  const rising = 2 * MINUTE + 10_000;
  expect(forecast.expected(rising)).toBeGreaterThan(75);
  forecast.record(20, MINUTE, rising + 20_000);
  expect(forecast.expected(rising + 20_000)).toBe(23);
});

test("a rise that no count follows is believed for a window and no longer", () => {
  const forecast = new UsageForecast();
  noteEvenly(forecast, [0, 0]);
  for (let second = 0; second <= 10; second++) forecast.record(2 * second, MINUTE, 2 * MINUTE + second * 1_000);
  expect(forecast.expected(3 * MINUTE)).toBeGreaterThan(75);
  expect(forecast.expected(4 * MINUTE)).toBe(23);
});

test("what is only remembered says nothing of how it goes on", () => {
  const forecast = new UsageForecast();
  forecast.recordWindow(40, MINUTE, 10_000);
  expect(forecast.expected(10_000)).toBe(45);
});

test("a count that falls within its window doesn't lower what is expected", () => {
  const forecast = new UsageForecast();
  forecast.recordWindow(40, MINUTE, 10_000);
  forecast.recordWindow(20, MINUTE, 20_000);
  expect(forecast.expected(20_000)).toBe(45);
  forecast.recordWindow(60, MINUTE, 30_000);
  expect(forecast.expected(30_000)).toBe(67);
});

test("a rise goes on for three more quarters of a window, as in the last one", () => {
  const forecast = new UsageForecast();
  noteEvenly(forecast, [0, 0]);
  forecast.record(0, MINUTE, 2 * MINUTE);
  forecast.record(30, MINUTE, 2 * MINUTE + 15_000);
  expect(forecast.expected(2 * MINUTE + 15_000)).toBe(Math.ceil((30 + 3 * 30) * 1.1 + 1));
  forecast.record(60, MINUTE, 2 * MINUTE + 30_000);
  expect(forecast.expected(2 * MINUTE + 30_000)).toBe(Math.ceil((60 + 3 * 30) * 1.1 + 1));
});

test("one call is enough to be expected again, and less than one is none", () => {
  expect(expectedAfter([1], 0)).toBe(3);
  expect(expectedAfter([0.9], 0)).toBe(0);
});
