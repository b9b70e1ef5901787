import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { JournalClock } from "../../../src/remediation/state/journal-clock.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createRecordingLog, START_MS } from "../../harness/virtual-daemon.ts";

test("a suspension right after the start, before the clocks are compared again, is found and corrected", async () => {
  const clock = createVirtualClock(START_MS);
  const journaled = { last: START_MS - HOUR_MS, lagMs: 5 * MINUTE_MS };
  const journalClock = new JournalClock(journaled, clock, createRecordingLog());
  journalClock.check(START_MS);
  const settledAt = journalClock.now();
  clock.stepWallClock(6 * HOUR_MS);
  expect(journalClock.checkSuspension(clock.now())).toBe(settledAt);
  journalClock.check(clock.now());
  expect(journalClock.now()).toBe(clock.now());
});

test("a short suspension while the clocks disagree is not caught up with at the next start", async () => {
  const clock = createVirtualClock(START_MS);
  const log = createRecordingLog();
  const first = new JournalClock({ last: START_MS }, clock, log);
  clock.stepWallClock(-3 * HOUR_MS);
  first.check(START_MS);
  await clock.advance(2 * MINUTE_MS);
  const suspendedMs = 2 * MINUTE_MS;
  const serviceNow = () => START_MS + clock.monotonic() + suspendedMs;
  expect(first.checkSuspension(serviceNow())).toBeNull();
  const [last, lagMs, behindSince] = [first.now(), first.lagMs(), first.behindSince()];
  const downMs = MINUTE_MS;
  await clock.advance(downMs);
  const second = new JournalClock({ last, uncertainUntil: first.uncertainUntil(), behindSince, lagMs }, clock, log);
  second.check(serviceNow());
  expect(second.isSettled()).toBe(true);
  expect(second.now() - last).toBeGreaterThan(downMs - 5 * SECOND_MS);
  expect(second.now() - last).toBeLessThanOrEqual(downMs);
});

test("a short suspension is not caught up with either if the clocks disagree after a long downtime", () => {
  const clock = createVirtualClock(START_MS);
  const [downMs, lagMs] = [HOUR_MS, 2 * MINUTE_MS];
  const journaled = { last: START_MS - downMs - lagMs, lagMs };
  const journalClock = new JournalClock(journaled, clock, createRecordingLog());
  journalClock.check(START_MS + 26 * HOUR_MS);
  expect(journalClock.now() - journaled.last).toBeGreaterThan(downMs - 5 * SECOND_MS);
  expect(journalClock.now() - journaled.last).toBeLessThanOrEqual(downMs);
});

test("a wall clock that is set while it disagrees with the service's Date does not move the journal's clock", async () => {
  const clock = createVirtualClock(START_MS);
  const journalClock = new JournalClock({ last: START_MS - 2 * HOUR_MS }, clock, createRecordingLog());
  const serviceAheadMs = 3 * HOUR_MS;
  const checkAndCompare = () => {
    journalClock.check(START_MS + clock.monotonic() + serviceAheadMs);
    return Math.abs(journalClock.now() - START_MS - clock.monotonic());
  };
  expect(checkAndCompare()).toBeLessThan(MINUTE_MS);
  clock.stepWallClock(4 * HOUR_MS);
  await clock.advance(2 * HOUR_MS);
  expect(checkAndCompare()).toBeLessThan(MINUTE_MS);
  expect(journalClock.isSettled()).toBe(true);
});
