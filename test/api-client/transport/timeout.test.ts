import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { startTimeout } from "../../../src/api-client/timeout.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";

/** Starts a limit of a second. */
function start(outer = new AbortController()) {
  const clock = createVirtualClock(0);
  return { clock, outer, timeout: startTimeout(clock, 1_000, outer.signal) };
}

test("the signal aborts at the time limit, and no earlier", async () => {
  const { clock, timeout } = start();
  await clock.advance(999);
  expect([timeout.signal.aborted, timeout.expired()]).toEqual([false, false]);
  await clock.advance(1);
  expect([timeout.signal.aborted, timeout.expired()]).toEqual([true, true]);
});

test.each([false, true])(
  "the signal aborts with the outer one, for the same reason; aborted before: %s",
  (isBefore) => {
    const outer = new AbortController();
    if (isBefore) outer.abort("stopped");
    const { timeout } = start(outer);
    outer.abort("stopped");
    expect([timeout.signal.reason, timeout.expired()]).toEqual(["stopped", false]);
  },
);

test("once it is stopped, the signal no longer aborts, and the outer signal has no listeners left", async () => {
  const { clock, outer, timeout } = start();
  timeout.stop();
  expect(getEventListeners(outer.signal, "abort")).toEqual([]);
  await clock.advance(2_000);
  outer.abort();
  expect([timeout.signal.aborted, timeout.expired()]).toEqual([false, false]);
});
