import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DAY_MS } from "../../src/base/duration.ts";
import { systemClock } from "../../src/platform/clock.ts";

/** Returns whether a promise is settled after all pending microtasks have run. */
async function isSettled(promise: Promise<void>): Promise<boolean> {
  let settled = false;
  promise.then(() => {
    settled = true;
  });
  await vi.advanceTimersByTimeAsync(0);
  return settled;
}

describe("the system clock's sleep", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("ends after its time, not before, and leaves neither timer nor listener", async () => {
    const controller = new AbortController();
    const sleep = systemClock.sleep(250, controller.signal);
    await vi.advanceTimersByTimeAsync(249);
    expect(await isSettled(sleep)).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await isSettled(sleep)).toBe(true);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("ends immediately when the signal aborts, and leaves neither timer nor listener", async () => {
    const controller = new AbortController();
    const sleep = systemClock.sleep(DAY_MS, controller.signal);
    controller.abort();
    expect(await isSettled(sleep)).toBe(true);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("ends immediately if the signal has already aborted", async () => {
    await expect(systemClock.sleep(Number.POSITIVE_INFINITY, AbortSignal.abort())).resolves.toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("may be longer than the longest timer", async () => {
    const sleep = systemClock.sleep(60 * DAY_MS);
    await vi.advanceTimersByTimeAsync(60 * DAY_MS - 1);
    expect(await isSettled(sleep)).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await isSettled(sleep)).toBe(true);
  });

  test("of Infinity lasts until the signal aborts", async () => {
    const controller = new AbortController();
    const sleep = systemClock.sleep(Number.POSITIVE_INFINITY, controller.signal);
    await vi.advanceTimersByTimeAsync(100 * DAY_MS);
    expect(await isSettled(sleep)).toBe(false);
    controller.abort();
    expect(await isSettled(sleep)).toBe(true);
  });

  test("of zero or less ends in the next turn of the event loop", async () => {
    expect(await isSettled(systemClock.sleep(0))).toBe(true);
    expect(await isSettled(systemClock.sleep(-5))).toBe(true);
  });
});

test("the monotonic clock never goes back", () => {
  const readings = Array.from({ length: 1_000 }, () => systemClock.monotonic());
  expect(readings).toEqual([...readings].sort((a, b) => a - b));
});
