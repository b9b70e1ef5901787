import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ServiceClock } from "../../src/api-client/service-clock.ts";

const START = Date.UTC(2026, 2, 1);

/** Answers of a service whose clock is `skewMs` ahead: each takes some way there and some way back. */
const answers = fc.array(fc.record({ restMs: fc.nat(5_000), thereMs: fc.nat(300), backMs: fc.nat(300) }), {
  minLength: 1,
  maxLength: 60,
});

test("is accurate to a second plus the shortest latency", () => {
  fc.assert(
    fc.property(fc.integer({ min: -3_600_000, max: 3_600_000 }), answers, (skewMs, given) => {
      const clock = new ServiceClock();
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
  const clock = new ServiceClock();
  for (let call = 0; call < 100; call++) {
    const sentAt = START + call * 1_730;
    clock.recordDate(Math.floor((sentAt + 20 + 7_654) / 1_000) * 1_000, sentAt, sentAt + 40);
  }
  expect(Math.abs(clock.timeAt(START)! - (START + 7_654))).toBeLessThan(100);
});

describe("a clock that contradicts the earlier responses", () => {
  /** A clock that has seen one response, received at 1,000. */
  function createSeenClock() {
    const clock = new ServiceClock();
    expect(clock.timeAt(0)).toBeNull();
    clock.recordDate(START, 1_000, 1_000);
    return clock;
  }
  const aheadOf = (clock: ServiceClock, at: number) => clock.timeAt(at)! - START - at + 1_000;
  const secondsAhead = (clock: ServiceClock, at: number) => Math.floor(aheadOf(clock, at) / 1_000);

  test("counts once a second response agrees, for all that was observed since", () => {
    const clock = createSeenClock();
    const observedAt = clock.recordDate(START + 90_000, 9_000, 10_000);
    expect(observedAt).toBe(9_000);
    expect(clock.timeAt(observedAt)).toBeNull();
    expect([0, 8_999, 9_001, 20_000].map((at) => aheadOf(clock, at))).toEqual([500, 500, 500, 500]);
    clock.recordDate(START + 92_000, 12_000, 12_000);
    expect([0, 8_999, 9_000, 20_000].map((at) => aheadOf(clock, at))).toEqual([500, 500, 81_500, 81_500]);
  });

  test("does not count if only one response shows it", () => {
    const clock = createSeenClock();
    const observedAt = clock.recordDate(START + 90_000, 9_000, 10_000);
    clock.recordDate(START + 11_000, 12_000, 12_000);
    expect([observedAt, 20_000].map((at) => aheadOf(clock, at))).toEqual([500, 500]);
  });

  test("does not count if the responses that show it are not consecutive", () => {
    const clock = createSeenClock();
    const first = clock.recordDate(START + 90_000, 9_000, 10_000);
    // Some responses of the service have a wrong Date, and the requests of all of these were in flight together.
    for (let at = 10_100; at < 10_900; at += 100) clock.recordDate(START + 9_000, 9_000, at);
    const second = clock.recordDate(START + 91_000, 9_500, 11_000);
    expect([first, second].map((at) => clock.timeAt(at))).toEqual([null, null]);
    expect(aheadOf(clock, 11_000)).toBe(500);
    clock.recordDate(START + 11_000, 12_000, 12_000);
    expect([first, second].map((at) => aheadOf(clock, at))).toEqual([500, 500]);
  });

  test("does not count if the next response contradicts both", () => {
    const clock = createSeenClock();
    clock.recordDate(START + 90_000, 9_000, 10_000);
    clock.recordDate(START - 90_000, 11_000, 12_000);
    expect(aheadOf(clock, 20_000)).toBe(500);
  });

  test("is found although requests from before the change are still answered by the old clock", () => {
    const clock = createSeenClock();
    const set = clock.recordDate(START + 90_000, 9_000, 10_000);
    // Sent before the clock was seen to be set, and before that but after the request that showed it.
    const late = [
      [8_500, 10_500],
      [9_500, 11_000],
    ].map(([sentAt, receivedAt]) => clock.recordDate(START + 8_000, sentAt!, receivedAt!));
    const next = clock.recordDate(START + 92_000, 8_800, 12_000);
    expect([set, next].map((at) => clock.timeAt(at))).toEqual([null, null]);
    clock.recordDate(START + 92_000, 9_900, 12_200);
    const last = clock.recordDate(START + 8_000, 9_600, 12_500);
    expect([...late, last].map((at) => [at < set, secondsAhead(clock, at)])).toEqual([0, 0, 0].map((s) => [true, s]));
    expect([set, next].map((at) => secondsAhead(clock, at))).toEqual([82, 82]);
  });

  test("is that of a response to an earlier request than the last that showed the old one", () => {
    const clock = createSeenClock();
    const before = clock.recordDate(START + 6_000, 7_000, 7_000);
    const set = clock.recordDate(START + 90_000, 5_000, 10_000);
    clock.recordDate(START + 90_000, 10_000, 10_000);
    expect([before, set].map((at) => secondsAhead(clock, at))).toEqual([0, 81]);
  });

  test("never dates a response after its request, since its Date may be wrong", () => {
    const clock = createSeenClock();
    clock.recordDate(START + 8_000, 9_000, 9_000);
    const one = clock.recordDate(START + 90_000, 5_000, 10_000);
    expect(one).toBeLessThanOrEqual(5_000);
    expect(clock.timeAt(one)).toBeNull();
    const other = clock.recordDate(START + 90_000, 6_000, 10_000);
    const third = clock.recordDate(START + 90_000, 7_000, 10_000);
    expect([other <= 6_000, third <= 7_000]).toEqual([true, true]);
    expect([one, other, third, 8_000, 10_000].map((at) => secondsAhead(clock, at))).toEqual([83, 83, 83, 0, 83]);
  });

  test("leaves each response with the clock by which it was written, whatever was in flight", () => {
    const requests = fc.array(
      fc.record({ sentAt: fc.integer({ min: 1_000, max: 60_000 }), thereMs: fc.nat(4_000), backMs: fc.nat(4_000) }),
      {
        minLength: 5,
        maxLength: 60,
      },
    );
    const steps = fc.integer({ min: 15_000, max: 7_200_000 }).chain((ms) => fc.constantFrom(ms, -ms));
    fc.assert(
      fc.property(requests, steps, fc.nat(60_000), (sent, stepMs, setAt) => {
        const clock = createSeenClock();
        const skewAt = (at: number) => (at >= setAt ? stepMs : 0);
        const responses = sent
          .map(({ sentAt, thereMs, backMs }) => ({
            sentAt,
            writtenAt: sentAt + thereMs,
            at: sentAt + thereMs + backMs,
          }))
          .toSorted((a, b) => a.at - b.at)
          .map(({ sentAt, writtenAt, at }) => {
            const date = Math.floor((START - 1_000 + writtenAt + skewAt(writtenAt)) / 1_000) * 1_000;
            return { sentAt, writtenAt, observedAt: clock.recordDate(date, sentAt, at) };
          });
        // Two responses agree in the end.
        for (const at of [70_000, 71_000]) clock.recordDate(START - 1_000 + at + stepMs, at, at);
        for (const { sentAt, writtenAt, observedAt } of responses) {
          expect(observedAt).toBeLessThanOrEqual(sentAt);
          expect(Math.abs(aheadOf(clock, observedAt) - skewAt(writtenAt))).toBeLessThan(10_000);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test("counts each time if two servers with different clocks answer in turns of two", () => {
    const clock = createSeenClock();
    for (const [turn, aheadMs] of [90_000, 0, 90_000].entries()) {
      const at = 10_000 * (turn + 1);
      for (const each of [at, at + 1_000]) clock.recordDate(START + aheadMs + each - 1_000, each, each);
      expect(secondsAhead(clock, at + 1_000)).toBe(aheadMs / 1_000);
    }
  });
});

test.each([
  [-50, 0],
  [50, 60_000],
])("is accurate to a second if a slow response is the first to show a drift of %d ms", (driftMs, writtenAfterMs) => {
  const clock = new ServiceClock();
  clock.recordDate(START, 0, 0);
  clock.recordDate(START, 999, 999);
  clock.recordDate(START + 1_000, 1_000, 1_000);
  // Written as soon as the second began or as it ended, whichever shows the drift.
  const sentAt = 100_000 - driftMs - (driftMs < 0 ? 1 : 0);
  const date = Math.floor((START + sentAt + writtenAfterMs + driftMs) / 1_000) * 1_000;
  clock.recordDate(date, sentAt, sentAt + 60_000);
  expect(Math.abs(clock.timeAt(sentAt)! - (START + sentAt + driftMs))).toBeLessThan(1_000);
});

test("is accurate to a second after a month of drift by 50 parts per million", () => {
  const clock = new ServiceClock();
  for (let at = 0; at < 30 * 86_400_000; at += 61_234) {
    const serviceAt = START + at * (1 + 50e-6);
    clock.recordDate(Math.floor((serviceAt + 20) / 1_000) * 1_000, at, at + 40);
    expect(Math.abs(clock.timeAt(at)! - serviceAt)).toBeLessThanOrEqual(1_040);
  }
});
