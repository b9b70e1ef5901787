import { expect, test } from "vitest";
import { MonthCallCount } from "../../src/api-client/month-call-count.ts";
import { DAY_MS, SECOND_MS } from "../../src/base/duration.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { createLedger } from "../../src/rate-limit/ledger.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { createPlanLimits, createRecordingLog, START_MS } from "../harness/daemon/virtual-daemon.ts";

/** Starts counting on March 1st. The store is to count `ahead` calls in advance. */
function startCount(ahead = 0) {
  const { calls } = createMemoryStateStore();
  const clock = createVirtualClock(START_MS);
  const ledger = createLedger(createPlanLimits("enterprise"), 0);
  const seen = { writes: 0, sent: 0 };
  const log = createRecordingLog();
  const fault = { isUnreadable: false, storing: Promise.resolve() };
  const counter = {
    ahead,
    since(day: string) {
      if (fault.isUnreadable) throw new Error("disk I/O error");
      return calls.since(day);
    },
    async add(day: string, added: number) {
      seen.writes++;
      await fault.storing;
      await calls.add(day, added);
    },
  };
  const month = new MonthCallCount({ clock, calls: counter, log }, ledger, 1);
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
  return { month, calls, clock, ledger, seen, send, log, fault };
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

test("a store that takes long counts calls in blocks before they are sent, and none waits while half of a block is left", async () => {
  const { month, calls, seen, send, fault } = startCount(100);
  expect(await send(1, 5 * SECOND_MS)).toBe(100);
  const { promise, resolve } = Promise.withResolvers<void>();
  fault.storing = promise;
  expect(await send(100, 5 * SECOND_MS)).toBe(99);
  expect([seen.writes, calls.since("2026-03-01")]).toEqual([2, 101]);
  resolve();
  await month.flush();
  expect(calls.since("2026-03-01")).toBe(101);
});

test("a block that is left at the end of a day is taken back from that day", async () => {
  const { calls, clock, send, month } = startCount(100);
  await send(1, 0);
  await clock.advance(DAY_MS);
  await send(1, 0);
  await month.flush();
  expect([calls.since("2026-03-01"), calls.since("2026-03-02")]).toEqual([2, 1]);
});

test("a call is not counted in a block of the day before that is still being stored", async () => {
  const { calls, clock, send, month, fault } = startCount(100);
  await clock.advance(DAY_MS - SECOND_MS);
  await send(1, 0);
  const { promise, resolve } = Promise.withResolvers<void>();
  fault.storing = promise;
  await send(51, 0);
  await clock.advance(SECOND_MS);
  const added = month.add(1);
  resolve();
  await added;
  await month.flush();
  expect([calls.since("2026-03-01"), calls.since("2026-03-02")]).toEqual([53, 1]);
});

test("calls that were counted ahead at the end of a month do not reduce the count of the next month", async () => {
  const { month, calls, clock, ledger, send } = startCount();
  await clock.advance(31 * DAY_MS - 5 * SECOND_MS);
  await send(1_000, 10);
  await month.flush();
  expect([ledger.monthUsed, calls.since("2026-04-01")]).toEqual([500, 500]);
});

test("a count that can't be read when the month changes is logged once, and read as soon as possible", async () => {
  const { month, clock, ledger, send, log, fault } = startCount();
  await send(5, 10);
  fault.isUnreadable = true;
  await clock.advance(31 * DAY_MS);
  for (let call = 0; call < 3; call++) month.update();
  expect([ledger.monthUsed, log.lines.length]).toEqual([5, 1]);
  fault.isUnreadable = false;
  for (let call = 0; call < 3; call++) month.update();
  expect(ledger.monthUsed).toBe(0);
  expect(log.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    "error the monthly call count can't be read",
    "info the monthly call count can be read again",
  ]);
});

test("a new start day applies once the count can be read, even within the old month", async () => {
  const { month, clock, ledger, send, fault } = startCount();
  await send(5, 10);
  await clock.advance(10 * DAY_MS);
  fault.isUnreadable = true;
  month.setStartDay(10);
  fault.isUnreadable = false;
  month.update();
  expect([ledger.monthUsed, month.leftMs() > 28 * DAY_MS]).toEqual([0, true]);
});
