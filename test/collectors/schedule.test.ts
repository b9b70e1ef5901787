import { expect, test } from "vitest";
import { type PlannedSchedule, runOnSchedule, schedulePeriodMs } from "../../src/collectors/schedule.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { START_MS } from "../harness/daemon/virtual-daemon.ts";

const MINUTE = 60_000;
/** A collector that has not run before, without a minimum interval. */
const ALONE = { minIntervalMs: () => 0, firstWait: () => 0, lastStart: null, onRun: () => {} };

/** Runs a collector for a while and returns the seconds at which its runs started. */
async function beginnings(
  cadence: () => PlannedSchedule,
  forMs: number,
  { tookMs = 0, succeeds = (): boolean => true, firstWait = (): number => 0 } = {},
) {
  const clock = createVirtualClock(START_MS);
  const stop = new AbortController();
  const begun: number[] = [];
  const timing = { clock, random: () => 0 };
  const done = runOnSchedule(
    timing,
    { ...ALONE, schedule: cadence, firstWait },
    async () => {
      begun.push(Math.round(clock.monotonic() / 1_000));
      await clock.sleep(tookMs, stop.signal);
      return succeeds();
    },
    stop.signal,
  );
  await clock.advance(forMs);
  stop.abort();
  await clock.advance(0);
  await done;
  return begun;
}

const every = (intervalMs: number) => (): PlannedSchedule => ({ kind: "every", intervalMs });

test("a run starts one interval after the start of the previous run, however long that took", async () => {
  expect(await beginnings(every(MINUTE), 3.5 * MINUTE, { tookMs: 40_000 })).toEqual([0, 60, 120, 180]);
});

test("a run that took longer than the interval is followed immediately by one run, not by all missed ones", async () => {
  expect(await beginnings(every(MINUTE), 5.5 * MINUTE, { tookMs: 130_000 })).toEqual([0, 130, 260]);
});

test("follows a plan that changes during the wait", async () => {
  let intervalMs = 60 * MINUTE;
  const cadence = (): PlannedSchedule => {
    const now = { kind: "every", intervalMs } as const;
    intervalMs = MINUTE;
    return now;
  };
  expect((await beginnings(cadence, 3 * MINUTE)).length).toBeGreaterThanOrEqual(3);
});

test("delays the first run by the first wait, which may change in the meantime", async () => {
  let asked = 0;
  const firstWait = () => (asked++ < 3 ? 60 * MINUTE : 0);
  expect(await beginnings(every(MINUTE), 2 * MINUTE, { firstWait })).toEqual([30, 90]);
});

test("a cron schedule runs once at the start, then at its times", async () => {
  const cadence = (): PlannedSchedule => ({ kind: "cron", expression: "2 * * * *" });
  expect(await beginnings(cadence, 130 * MINUTE)).toEqual([0, 120, 3_720, 7_320]);
});

test("times of a cron schedule within the minimum interval are skipped, and failed runs are not retried", async () => {
  const cadence = (): PlannedSchedule => ({ kind: "cron", expression: "* * * * *", minIntervalMs: 150_000 });
  expect(await beginnings(cadence, 7 * MINUTE)).toEqual([0, 180, 360]);
  expect(await beginnings(cadence, 7 * MINUTE, { succeeds: () => false })).toEqual([0, 180, 360]);
  const never = (): PlannedSchedule => ({ ...cadence(), minIntervalMs: Number.POSITIVE_INFINITY });
  expect(await beginnings(never, 7 * MINUTE)).toEqual([0]);
});

test("a failed run of a cron schedule is retried after 1, 2, 4 minutes and so on, until the next time", async () => {
  const cadence = (): PlannedSchedule => ({ kind: "cron", expression: "30 * * * *" });
  const begun = await beginnings(cadence, 29 * MINUTE, { succeeds: () => false });
  expect(begun.map((second) => second / 60)).toEqual([0, 1, 3, 7, 15]);
});

test("a cron schedule continues if the wall clock is set back by a day", async () => {
  const clock = createVirtualClock(START_MS);
  const stop = new AbortController();
  let runs = 0;
  const run = async () => {
    runs++;
    return true;
  };
  const timing = { clock, random: () => 0 };
  const cadence = () => ({ kind: "cron", expression: "2 * * * *" }) as const;
  const done = runOnSchedule(timing, { ...ALONE, schedule: cadence }, run, stop.signal);
  await clock.advance(10 * MINUTE);
  clock.stepWallClock(-24 * 60 * MINUTE);
  await clock.advance(5 * 60 * MINUTE);
  expect(runs).toBeGreaterThanOrEqual(6);
  stop.abort();
  await clock.advance(0);
  await done;
});

test("the period of a regular cron schedule is the time between two runs", () => {
  const timing = { clock: createVirtualClock(START_MS) };
  expect(schedulePeriodMs({ kind: "cron", expression: "2 * * * *" }, timing)).toBe(60 * MINUTE);
  expect(schedulePeriodMs({ kind: "every", intervalMs: 5 }, timing)).toBe(5);
});

test("the period of an irregular cron schedule is the mean, whatever the time of the start", () => {
  const periodAt = (expression: string, now: number) =>
    schedulePeriodMs({ kind: "cron", expression }, { clock: createVirtualClock(now) });
  // Every ten minutes from 8:00 to 18:50 are 66 runs a day.
  for (let hour = 0; hour < 24; hour++) {
    const period = periodAt("*/10 8-18 * * *", Date.UTC(2026, 2, 4, hour, 45));
    expect(period).toBeGreaterThan(15 * MINUTE);
    expect(period).toBeLessThan(30 * MINUTE);
  }
  expect(periodAt("0,10 * * * *", Date.UTC(2026, 2, 4, 0, 5))).toBe(30 * MINUTE);
  expect(periodAt("0 3 1 * *", Date.UTC(2026, 2, 4))).toBe(30 * 24 * 60 * MINUTE);
  // Twice a month, at the start of two days in a row.
  for (const day of [1, 2, 15]) {
    const days = periodAt("0 0 1,2 * *", Date.UTC(2026, 2, day, 12)) / (24 * 60 * MINUTE);
    expect(days).toBeGreaterThan(10);
    expect(days).toBeLessThan(16);
  }
});
