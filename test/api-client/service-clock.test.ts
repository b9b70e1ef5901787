import fc from "fast-check";
import { expect, test } from "vitest";
import { createServiceClock } from "../../src/api-client/service-clock.ts";

const START = Date.UTC(2026, 2, 1);

/** Answers of a service whose clock is `skewMs` ahead: each takes some way there and some way back. */
const answers = fc.array(fc.record({ restMs: fc.nat(5_000), thereMs: fc.nat(300), backMs: fc.nat(300) }), {
  minLength: 1,
  maxLength: 60,
});

test("is accurate to a second plus the shortest latency", () => {
  fc.assert(
    fc.property(fc.integer({ min: -3_600_000, max: 3_600_000 }), answers, (skewMs, given) => {
      const clock = createServiceClock();
      let now = START;
      for (const { restMs, thereMs, backMs } of given) {
        const sentAt = now + restMs;
        const date = Math.floor((sentAt + thereMs + skewMs) / 1_000) * 1_000;
        now = sentAt + thereMs + backMs;
        clock.recordDate(date, sentAt, now);
      }
      const fastest = Math.min(...given.map(({ thereMs, backMs }) => thereMs + backMs));
      expect(Math.abs(clock.timeAt(now)! - (now + skewMs))).toBeLessThanOrEqual((1_000 + fastest) / 2);
    }),
  );
});

test("is accurate to a tenth of a second after many responses", () => {
  const clock = createServiceClock();
  for (let call = 0; call < 100; call++) {
    const sentAt = START + call * 1_730;
    clock.recordDate(Math.floor((sentAt + 20 + 7_654) / 1_000) * 1_000, sentAt, sentAt + 40);
  }
  expect(Math.abs(clock.timeAt(START)! - (START + 7_654))).toBeLessThan(100);
});

test("follows a service whose clock was set", () => {
  const clock = createServiceClock();
  expect(clock.timeAt(0)).toBeNull();
  clock.recordDate(START, 0, 0);
  clock.recordDate(START + 90_000, 10_000, 10_000);
  expect(clock.timeAt(10_000)).toBe(START + 90_500);
});

test("keeps the earlier time for what was received before the service's clock was set", () => {
  const clock = createServiceClock();
  clock.recordDate(START, 0, 0);
  clock.recordDate(START + 90_000, 9_000, 10_000);
  clock.recordDate(START + 21_000, 20_500, 21_000);
  expect([0, 9_999, 10_000, 20_999, 21_000].map((at) => clock.timeAt(at)! - START - at)).toEqual([
    500, 500, 81_000, 81_000, 750,
  ]);
});

test("is accurate to a second after a month of drift by 50 parts per million", () => {
  const clock = createServiceClock();
  for (let at = 0; at < 30 * 86_400_000; at += 61_234) {
    const serviceAt = START + at * (1 + 50e-6);
    clock.recordDate(Math.floor((serviceAt + 20) / 1_000) * 1_000, at, at + 40);
    expect(Math.abs(clock.timeAt(at)! - serviceAt)).toBeLessThanOrEqual(1_040);
  }
});
