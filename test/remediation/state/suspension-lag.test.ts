import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import {
  CLOCK_BEHIND_FACT,
  CLOCK_FACT,
  CLOCK_LAG_FACT,
  CLOCK_UNCERTAIN_FACT,
  JournalClock,
} from "../../../src/remediation/state/journal-clock.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createRecordingLog, START_MS } from "../../harness/daemon/virtual-daemon.ts";

/** Returns the facts of a journal whose clock showed `last` when it was written, and then lagged. */
const factsOf = (last: number, lagMs = 0): ReadonlyMap<string, string> =>
  new Map([
    [CLOCK_FACT, String(last)],
    [CLOCK_LAG_FACT, String(lagMs)],
  ]);

test("a suspension right after the start, before the clocks are compared again, is found and corrected", async () => {
  const clock = createVirtualClock(START_MS);
  const journalClock = new JournalClock(factsOf(START_MS - HOUR_MS, 5 * MINUTE_MS), clock, createRecordingLog());
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
  const first = new JournalClock(factsOf(START_MS), clock, log);
  clock.stepWallClock(-3 * HOUR_MS);
  first.check(START_MS);
  await clock.advance(2 * MINUTE_MS);
  const suspendedMs = 2 * MINUTE_MS;
  const serviceNow = () => START_MS + clock.monotonic() + suspendedMs;
  expect(first.checkSuspension(serviceNow())).toBeNull();
  const last = first.now();
  const facts = new Map(factsOf(last, first.lagMs()));
  facts.set(CLOCK_UNCERTAIN_FACT, String(first.uncertainUntil()));
  facts.set(CLOCK_BEHIND_FACT, String(first.behindSince()));
  const downMs = MINUTE_MS;
  await clock.advance(downMs);
  const second = new JournalClock(facts, clock, log);
  second.check(serviceNow());
  expect(second.isSettled()).toBe(true);
  expect(second.now() - last).toBeGreaterThan(downMs - 5 * SECOND_MS);
  expect(second.now() - last).toBeLessThanOrEqual(downMs);
});

test("a short suspension is not caught up with either if the clocks disagree after a long downtime", () => {
  const clock = createVirtualClock(START_MS);
  const [downMs, lagMs] = [HOUR_MS, 2 * MINUTE_MS];
  const last = START_MS - downMs - lagMs;
  const journalClock = new JournalClock(factsOf(last, lagMs), clock, createRecordingLog());
  journalClock.check(START_MS + 26 * HOUR_MS);
  expect(journalClock.now() - last).toBeGreaterThan(downMs - 5 * SECOND_MS);
  expect(journalClock.now() - last).toBeLessThanOrEqual(downMs);
});

test("a wall clock that is set while it disagrees with the service's Date does not move the journal's clock", async () => {
  const clock = createVirtualClock(START_MS);
  const journalClock = new JournalClock(factsOf(START_MS - 2 * HOUR_MS), clock, createRecordingLog());
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
