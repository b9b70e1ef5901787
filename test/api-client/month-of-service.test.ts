import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { MONTH_FACT } from "../../src/rate-limit/monthly-budget.ts";
import { createTestRateLimiter } from "../harness/daemon/virtual-daemon.ts";
import { createClientSetup } from "./client-fixture.ts";

test.each([31, -31])(
  "calls count in the month of the service while our wall clock is wrong by %i days",
  async (days) => {
    const { get, clock, rateLimiter } = createClientSetup();
    await get();
    await get();
    clock.stepWallClock(days * DAY_MS);
    for (let call = 0; call < 5; call++) await get();
    expect(rateLimiter.monthUsed()).toBe(7);
    clock.stepWallClock(-days * DAY_MS);
    await get();
    expect(rateLimiter.monthUsed()).toBe(8);
    await clock.advance(31 * DAY_MS);
    expect(rateLimiter.monthUsed()).toBe(0);
  },
);

test("a wall clock that is behind does not delay a new month, even without responses", async () => {
  const { get, clock, rateLimiter } = createClientSetup();
  await get();
  await get();
  clock.stepWallClock(-31 * DAY_MS);
  await clock.advance(31 * DAY_MS);
  expect(rateLimiter.monthUsed()).toBe(0);
});

test("the wall clock begins a new month if no response has shown the service's time for six hours", async () => {
  const { get, clock, rateLimiter } = createClientSetup();
  await get();
  await get();
  clock.stepWallClock(31 * DAY_MS);
  expect(rateLimiter.monthUsed()).toBe(2);
  await clock.advance(6 * HOUR_MS);
  expect(rateLimiter.monthUsed()).toBe(0);
});

test("a restart with a wall clock in an earlier month counts calls in the month of the process before", async () => {
  const { clock, store, rateLimiter } = createClientSetup();
  const month = rateLimiter.month();
  const facts = new Map([[MONTH_FACT, month.firstDay]]);
  clock.stepWallClock(-40 * DAY_MS);
  const restarted = createTestRateLimiter({
    clock,
    calls: store.calls,
    facts: { read: (key) => facts.get(key) ?? null, write: (key, value) => void facts.set(key, value) },
  });
  const permit = restarted.acquire("node_management", "walk", new AbortController().signal);
  await clock.advance(MINUTE_MS);
  restarted.release((await permit)!, { kind: "answered", reading: null });
  expect(restarted.month()).toEqual(month);
  expect(store.calls.since(month.firstDay)).toBe(1);
});
