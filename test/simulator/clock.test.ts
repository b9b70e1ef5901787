import fc from "fast-check";
import { expect, test } from "vitest";
import { createScaledClock, createVirtualClock } from "../../src/simulator/clock.ts";

const START = Date.UTC(2026, 0, 1);

test("time changes only when it is advanced", async () => {
  const clock = createVirtualClock(START);
  expect([clock.now(), clock.monotonic()]).toEqual([START, 0]);
  await clock.advance(1_500);
  expect([clock.now(), clock.monotonic()]).toEqual([START + 1_500, 1_500]);
});

test("sleepers wake in the order of their times, then of their calls", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 50 })), async (lengths) => {
      const clock = createVirtualClock(START);
      const woken: [at: number, sleeper: number][] = [];
      lengths.forEach((ms, sleeper) => {
        void clock.sleep(ms).then(() => woken.push([clock.monotonic(), sleeper]));
      });
      await clock.advance(50);
      const expected = lengths.map((ms, sleeper): [number, number] => [ms, sleeper]);
      expect(woken).toEqual(expected.sort((one, other) => one[0] - other[0] || one[1] - other[1]));
      expect(clock.sleeperCount()).toBe(0);
    }),
    { numRuns: 30 },
  );
});

test("a sleeper that sleeps again starts at its wake-up time", async () => {
  const clock = createVirtualClock(START);
  const ticks: number[] = [];
  const tick = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(400);
      ticks.push(clock.monotonic());
    }
  };
  void tick();
  await clock.advance(1_700);
  expect(ticks).toEqual([400, 800, 1_200, 1_600]);
  expect(clock.sleeperCount()).toBe(1);
});

test("promises and chains of setImmediate settle before the next sleeper wakes", async () => {
  const clock = createVirtualClock(START);
  const events: string[] = [];
  const slices = async (): Promise<void> => {
    await clock.sleep(10);
    for (let slice = 0; slice < 5; slice += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await null;
      events.push(`slice ${slice} at ${clock.monotonic()}`);
    }
  };
  void slices();
  void clock.sleep(11).then(() => events.push(`next at ${clock.monotonic()}`));
  await clock.advance(20);
  expect(events).toEqual([0, 1, 2, 3, 4].map((slice) => `slice ${slice} at 10`).concat("next at 11"));
});

test("an abort wakes only its own sleeper", async () => {
  const clock = createVirtualClock(START);
  const abort = new AbortController();
  const woken: string[] = [];
  void clock.sleep(1_000, abort.signal).then(() => woken.push("aborted"));
  void clock.sleep(1_000).then(() => woken.push("other"));
  abort.abort();
  await clock.advance(0);
  expect(woken).toEqual(["aborted"]);
  expect(clock.sleeperCount()).toBe(1);
  await clock.sleep(1_000, abort.signal);
  await clock.advance(1_000);
  expect(woken).toEqual(["aborted", "other"]);
});

test("thousands of aborted sleepers do not affect the others", async () => {
  const clock = createVirtualClock(START);
  let woken = 0;
  void clock.sleep(500).then(() => woken++);
  for (let round = 0; round < 3_000; round += 1) {
    const abort = new AbortController();
    void clock.sleep(60_000 + round, abort.signal);
    abort.abort();
  }
  expect(clock.sleeperCount()).toBe(1);
  await clock.advance(499);
  expect(woken).toBe(0);
  await clock.advance(1);
  expect(woken).toBe(1);
});

test("a step moves only the wall clock and wakes no sleeper", async () => {
  const clock = createVirtualClock(START);
  let woken = false;
  void clock.sleep(1_000).then(() => {
    woken = true;
  });
  clock.stepWallClock(3_600_000);
  clock.stepWallClock(-7_200_000);
  await clock.advance(999);
  expect([clock.now(), clock.monotonic(), woken]).toEqual([START - 3_600_000 + 999, 999, false]);
});

test("rejects two concurrent calls of advance", async () => {
  const clock = createVirtualClock(START);
  const first = clock.advance(10);
  await expect(clock.advance(10)).rejects.toThrow("already being advanced");
  await first;
});

test("a scaled clock starts at the time of its base and runs at its own speed", async () => {
  const base = createVirtualClock(START);
  await base.advance(7_000);
  const fast = createScaledClock(base, 60);
  expect([fast.now(), fast.monotonic()]).toEqual([base.now(), base.monotonic()]);
  let wokenAt = 0;
  void fast.sleep(60_000).then(() => {
    wokenAt = base.monotonic();
  });
  await base.advance(2_000);
  expect(wokenAt).toBe(8_000);
  expect([fast.now(), fast.monotonic()]).toEqual([START + 7_000 + 120_000, 7_000 + 120_000]);
});
