import { expect, test } from "vitest";
import { MonthCallCount } from "../../src/api-client/month-call-count.ts";
import { DAY_MS, SECOND_MS } from "../../src/base/duration.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { createLedger } from "../../src/rate-limit/ledger.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { createPlanLimits, createRecordingLog, START_MS } from "../harness/virtual-daemon.ts";

/** Starts counting on March 1st. */
function startCount() {
  const { calls } = createMemoryStateStore();
  const clock = createVirtualClock(START_MS);
  const ledger = createLedger(createPlanLimits("enterprise"), 0, 0);
  const seen = { writes: 0, sent: 0 };
  const counter = {
    since: calls.since,
    add(day: string, added: number) {
      seen.writes++;
      return calls.add(day, added);
    },
  };
  const month = new MonthCallCount({ clock, calls: counter, log: createRecordingLog() }, ledger, 1);
  /**
   * Counts `count` calls as the rate limiter does. Returns the most calls that were counted in the store and not sent.
   */
  async function send(count: number, everyMs: number): Promise<number> {
    let aheadMax = 0;
    for (let call = 0; call < count; call++) {
      month.update();
      ledger.monthUsed++;
      await month.add(1);
      const ahead = calls.since("2026-03-01") - ++seen.sent;
      // After a crash no call is missing.
      expect(ahead).toBeGreaterThanOrEqual(0);
      aheadMax = Math.max(aheadMax, ahead);
      await clock.advance(everyMs);
    }
    return aheadMax;
  }
  return { month, calls, clock, ledger, seen, send };
}

test("fast calls are counted ahead in the store, at most 100, and the rest is taken back at the end", async () => {
  const { month, calls, seen, send } = startCount();
  expect(await send(2_000, 10)).toBeLessThanOrEqual(100);
  // The calls of the first second are counted one by one.
  expect(seen.writes).toBeLessThan(130);
  await month.flush();
  expect(calls.since("2026-03-01")).toBe(2_000);
});

test.each([5 * SECOND_MS, 120])("calls every %i ms are counted one by one", async (everyMs) => {
  const { seen, send } = startCount();
  expect(await send(20, everyMs)).toBe(0);
  expect(seen.writes).toBe(20);
});

test("calls that were counted ahead at the end of a month do not reduce the count of the next month", async () => {
  const { month, calls, clock, ledger, send } = startCount();
  await clock.advance(31 * DAY_MS - 5 * SECOND_MS);
  await send(1_000, 10);
  await month.flush();
  expect([ledger.monthUsed, calls.since("2026-04-01")]).toEqual([500, 500]);
});
