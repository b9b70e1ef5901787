import { expect, test } from "vitest";
import { startTimeout } from "../../src/api-client/timeout.ts";
import { SECOND_MS } from "../../src/base/duration.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";

const LIMIT_MS = 10 * SECOND_MS;

function start(outer = new AbortController()) {
  const clock = createVirtualClock(0);
  return { clock, outer, timeout: startTimeout(clock, LIMIT_MS, outer.signal) };
}

test("the signal aborts after the limit, and only then", async () => {
  const { clock, timeout } = start();
  await clock.advance(LIMIT_MS - 1);
  expect([timeout.signal.aborted, timeout.expired()]).toEqual([false, false]);
  await clock.advance(1);
  expect([timeout.signal.aborted, timeout.expired()]).toEqual([true, true]);
});

test("the signal aborts with the outer one and its reason, and has then not expired, however long it takes", async () => {
  const { clock, outer, timeout } = start();
  outer.abort("stop");
  expect(timeout.signal.reason).toBe("stop");
  await clock.advance(LIMIT_MS);
  expect(timeout.expired()).toBe(false);
});

test("the signal is aborted from the start if the outer one is", () => {
  const outer = new AbortController();
  outer.abort("stop");
  expect(start(outer).timeout.signal.reason).toBe("stop");
});

test("after stop nothing aborts the signal, and nothing waits for it", async () => {
  const { clock, outer, timeout } = start();
  timeout.stop();
  expect(clock.sleeperCount()).toBe(0);
  outer.abort();
  await clock.advance(LIMIT_MS);
  expect([timeout.signal.aborted, timeout.expired()]).toEqual([false, false]);
});
