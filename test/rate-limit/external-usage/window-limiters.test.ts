import { describe, expect, test } from "vitest";
import { FixedWindowHypothesis } from "../../../src/rate-limit/external-usage/fixed-window.ts";
import { SlidingCounterHypothesis } from "../../../src/rate-limit/external-usage/sliding-counter.ts";
import { SlidingWindowHypothesis } from "../../../src/rate-limit/external-usage/sliding-window.ts";
import { OwnCalls } from "../../../src/rate-limit/own-calls.ts";
import { countsOf, followStatements, LIMIT, WINDOW_MS } from "./limit-statements.ts";

describe.each([
  { name: "a fixed window", create: () => new FixedWindowHypothesis() },
  { name: "a sliding window", create: () => new SlidingWindowHypothesis() },
  { name: "a sliding counter", create: () => new SlidingCounterHypothesis() },
])("$name", ({ create }) => {
  test("is not a token bucket and proves nothing before a statement", () => {
    const hypothesis = create();
    expect(hypothesis.isTokenBucket).toBe(false);
    expect(countsOf(hypothesis)).toEqual({ proven: 0, hidden: 0, inWindow: 0, lastWindow: 0 });
  });

  test("proves external calls from what is spent beyond our own calls and the calls before the first statement", () => {
    const { hypothesis, call } = followStatements(create());
    expect(call(1_000, 69)).toBe(true);
    expect([hypothesis.provenCalls, hypothesis.callsInWindow(1_000)]).toEqual([0, 0]);
    expect(call(11_000, 63)).toBe(true);
    expect([hypothesis.provenCalls, hypothesis.callsInWindow(11_000)]).toEqual([5, 5]);
  });
});

describe("a fixed window that is reset", () => {
  const fixed = () => followStatements(new FixedWindowHypothesis());

  test("proves no call twice", () => {
    const { hypothesis, call } = fixed();
    call(1_000, 69);
    call(11_000, 63);
    expect(call(21_000, 62)).toBe(true);
    expect(hypothesis.provenCalls).toBe(5);
  });

  test("subtracts our own calls before the first statement", () => {
    const { hypothesis, call, bareCall } = fixed();
    bareCall(2_000);
    call(3_000, 68);
    call(4_000, 67);
    expect(hypothesis.provenCalls).toBe(0);
    call(5_000, 65);
    expect(hypothesis.provenCalls).toBe(1);
  });

  test("counts external calls until the earliest end of the window that the resets allow", () => {
    const end = (beganAt: number) => {
      const { hypothesis, call } = fixed();
      call(1_000, 99);
      call(11_000, 93, { beganAt });
      return [
        hypothesis.callsInWindow(60_499),
        hypothesis.callsInWindow(60_500),
        hypothesis.callsInWindow(60_999),
        hypothesis.callsInWindow(61_000),
      ];
    };
    expect(end(0)).toEqual([5, 5, 5, 0]);
    expect(end(500)).toEqual([5, 5, 5, 0]);
    expect(end(-500)).toEqual([5, 0, 0, 0]);
  });

  test("extrapolates the last observed external calls to the end of the window", () => {
    const { hypothesis, call } = fixed();
    call(1_000, 99);
    call(11_000, 93);
    call(21_000, 92);
    expect(hypothesis.lastWindowCalls).toBe(0);
    expect(call(61_500, 95, { beganAt: 60_000 })).toBe(true);
    // Five calls in the 20 s that were observed, and 39 s that were not.
    expect(hypothesis.hiddenCalls).toBeCloseTo(9.75, 9);
    expect(hypothesis.lastWindowCalls).toBeCloseTo(14.75, 9);
    expect([hypothesis.provenCalls, hypothesis.callsInWindow(61_500)]).toEqual([9, 4]);
  });

  test("extrapolates from the last quarter of a window", () => {
    const { hypothesis, call } = fixed();
    call(1_000, 99);
    call(11_000, 48);
    call(30_000, 47);
    call(50_000, 46);
    call(61_500, 99, { beganAt: 60_000 });
    expect(hypothesis.hiddenCalls).toBe(0);
    const short = fixed();
    short.call(1_000, 99);
    short.call(4_000, 88);
    short.call(61_500, 99, { beganAt: 60_000 });
    expect(short.hypothesis.hiddenCalls).toBeCloseTo((10 * 56_000) / 15_000, 9);
  });

  test("extrapolates to no more than the remaining calls", () => {
    const { hypothesis, call } = fixed();
    call(1_000, 99);
    call(11_000, 4);
    call(61_500, 99, { beganAt: 60_000 });
    expect([hypothesis.hiddenCalls, hypothesis.lastWindowCalls]).toEqual([4, 98]);
  });

  test("is ruled out if more than two calls come back within a window", () => {
    const isPossible = (remaining: number, between?: "bareCall" | "doubtfulCall") => {
      const followed = fixed();
      followed.call(1_000, 94);
      followed.call(11_000, 93);
      if (between !== undefined) followed[between](12_000);
      return followed.call(21_000, remaining);
    };
    expect([94, 95].map((remaining) => isPossible(remaining))).toEqual([true, false]);
    expect([93, 94].map((remaining) => isPossible(remaining, "bareCall"))).toEqual([true, false]);
    expect([94, 95].map((remaining) => isPossible(remaining, "doubtfulCall"))).toEqual([true, false]);
  });

  test("is ruled out if a window starts more than a second early", () => {
    const isPossible = (beganAt: number) => {
      const { call } = fixed();
      call(1_000, 99);
      return call(61_500, 99, { beganAt });
    };
    expect([57_000, 56_999, 30_000].map(isPossible)).toEqual([true, false, false]);
  });

  test("is ruled out if the start of the window moves back", () => {
    const isPossible = (beganAt: number) => {
      const { call } = fixed();
      call(1_000, 99);
      return call(2_000, 98, { beganAt });
    };
    expect([-2_000, -2_001].map(isPossible)).toEqual([true, false]);
  });

  test("is ruled out if the whole limit remains after a call, or if the reset is further than a window away", () => {
    expect([99, 100, 101].map((remaining) => fixed().call(1_000, remaining))).toEqual([true, false, false]);
    expect([3_000, 3_001].map((beganAt) => fixed().call(1_000, 99, { beganAt }))).toEqual([true, false]);
  });

  test("is ruled out if no reset is stated", () => {
    const own = new OwnCalls();
    own.sent.add(0);
    const statement = { sentAt: 0, answeredAt: 0, limit: LIMIT, remaining: 99, resetAt: null, windowMs: WINDOW_MS };
    expect(new FixedWindowHypothesis().update(statement, own)).toBe(false);
  });
});

describe("a sliding window over time", () => {
  const sliding = () => followStatements(new SlidingWindowHypothesis());

  test("counts external calls for a window after the last statement", () => {
    const { hypothesis, call } = sliding();
    call(1_000, 69);
    call(11_000, 63);
    expect([hypothesis.callsInWindow(70_999), hypothesis.callsInWindow(71_000)]).toEqual([5, 0]);
  });

  test("forgets the calls before the first statement after a window, and adds up the calls of later windows", () => {
    const { hypothesis, call } = sliding();
    call(1_000, 69);
    call(11_000, 63);
    call(61_000, 90);
    expect([hypothesis.provenCalls, hypothesis.callsInWindow(61_000)]).toEqual([7, 7]);
    call(80_000, 90);
    expect([hypothesis.provenCalls, hypothesis.callsInWindow(80_000)]).toEqual([13, 8]);
    call(160_000, 95);
    expect([hypothesis.provenCalls, hypothesis.callsInWindow(160_000)]).toEqual([17, 4]);
  });

  test("is ruled out if less is spent than our own calls, apart from two calls and calls in doubt", () => {
    const isPossible = (remaining: number, between: "bareCall" | "doubtfulCall" = "bareCall") => {
      const followed = sliding();
      for (const at of [1_000, 2_000, 3_000]) followed.call(at, 100 - at / 1_000);
      followed[between](4_000);
      return followed.call(5_000, remaining);
    };
    expect([95, 97, 98].map((remaining) => isPossible(remaining))).toEqual([true, true, false]);
    expect([98, 99].map((remaining) => isPossible(remaining, "doubtfulCall"))).toEqual([true, false]);
  });

  test("does not count our own calls of the window before", () => {
    const { hypothesis, call } = sliding();
    for (const at of [1_000, 2_000, 3_000, 4_000]) call(at, 100 - at / 1_000);
    expect(call(65_000, 99)).toBe(true);
    expect(hypothesis.provenCalls).toBe(0);
  });
});

describe("a sliding counter over time", () => {
  const counter = () => followStatements(new SlidingCounterHypothesis());
  const inWindow = (window: number) => ({ beganAt: window * WINDOW_MS });

  test("proves nothing from our own calls of the previous window, which still count in part", () => {
    const { hypothesis, call } = counter();
    for (let calls = 1; calls <= 40; calls++) call(calls * 1_000, 100 - calls);
    // Half of the 40 calls, and this one.
    expect(call(90_000, 79, inWindow(1))).toBe(true);
    expect([hypothesis.provenCalls, hypothesis.callsInWindow(90_000)]).toEqual([0, 0]);
  });

  test("proves external calls of a window in full, and counts them in the next one by their share", () => {
    const { hypothesis, call } = counter();
    call(1_000, 99);
    call(50_000, 58);
    expect([hypothesis.provenCalls, hypothesis.callsInWindow(50_000)]).toEqual([40, 40]);
    call(62_000, 58, inWindow(1));
    call(117_000, 86, inWindow(1));
    // 10 more, less what the rounding of times and calls leaves open.
    expect(hypothesis.provenCalls).toBeGreaterThanOrEqual(46);
    expect(hypothesis.provenCalls).toBeLessThanOrEqual(50);
    expect(hypothesis.lastWindowCalls).toBe(40);
    expect(hypothesis.callsInWindow(500_000)).toBe(0);
  });

  test("is ruled out if less is spent than our own calls, those of the previous window by their share", () => {
    const isPossible = (remaining: number) => {
      const { call } = counter();
      for (let calls = 1; calls <= 40; calls++) call(calls * 1_000, 100 - calls);
      return call(90_000, remaining, inWindow(1));
    };
    expect([79, 82, 90].map(isPossible)).toEqual([true, true, false]);
  });

  test("is ruled out if the windows don't follow each other without gaps", () => {
    const isPossible = (beganAt: number) => {
      const { call } = counter();
      call(1_000, 99);
      return call(190_000, 99, { beganAt });
    };
    expect([180_000, 183_001, 150_000].map(isPossible)).toEqual([true, false, false]);
  });

  test("is ruled out if the whole limit remains after a call, or if the reset is further than a window away", () => {
    expect([99, 100].map((remaining) => counter().call(1_000, remaining))).toEqual([true, false]);
    expect([3_000, 3_001].map((beganAt) => counter().call(1_000, 99, { beganAt }))).toEqual([true, false]);
  });
});
