import { describe, expect, test } from "vitest";
import { FixedWindowHypothesis } from "../../../src/rate-limit/external-usage/fixed-window.ts";
import { OwnCalls } from "../../../src/rate-limit/external-usage/own-calls.ts";
import { SlidingWindowHypothesis } from "../../../src/rate-limit/external-usage/sliding-window.ts";
import { followStatements, LIMIT, WINDOW_MS } from "./limit-statements.ts";

describe("a fixed window", () => {
  const fixed = () => followStatements(new FixedWindowHypothesis());

  test("is no bucket, and shows nothing before a statement", () => {
    const { kind } = fixed();
    expect([
      kind.isTokenBucket,
      kind.provenCalls(),
      kind.hiddenCalls(),
      kind.lastWindowCalls(),
      kind.callsInWindow(0),
    ]).toEqual([...[false, 0, 0, 0, 0]]);
  });

  test("shows as calls of others what is spent beyond our own calls, and beyond what was spent at first sight", () => {
    const { kind, call } = fixed();
    expect(call(1_000, 69)).toBe(true);
    expect([kind.provenCalls(), kind.callsInWindow(1_000)]).toEqual([0, 0]);
    expect(call(11_000, 63)).toBe(true);
    expect([kind.provenCalls(), kind.callsInWindow(11_000)]).toEqual([5, 5]);
    expect(call(21_000, 62)).toBe(true);
    expect(kind.provenCalls()).toBe(5);
  });

  test("knows our own calls before the first statement", () => {
    const { kind, call, bareCall } = fixed();
    bareCall(2_000);
    call(3_000, 68);
    call(4_000, 67);
    expect(kind.provenCalls()).toBe(0);
    call(5_000, 65);
    expect(kind.provenCalls()).toBe(1);
  });

  test("shows them until the window ends, at the earliest that the resets allow", () => {
    const end = (beganAt: number) => {
      const { kind, call } = fixed();
      call(1_000, 99);
      call(11_000, 93, { beganAt });
      return [
        kind.callsInWindow(60_499),
        kind.callsInWindow(60_500),
        kind.callsInWindow(60_999),
        kind.callsInWindow(61_000),
      ];
    };
    expect(end(0)).toEqual([5, 5, 5, 0]);
    expect(end(500)).toEqual([5, 5, 5, 0]);
    expect(end(-500)).toEqual([5, 0, 0, 0]);
  });

  test("reckons that what others did last went on to the end of the window, unseen", () => {
    const { kind, call } = fixed();
    call(1_000, 99);
    call(11_000, 93);
    call(21_000, 92);
    expect(kind.lastWindowCalls()).toBe(0);
    expect(call(61_500, 95, { beganAt: 60_000 })).toBe(true);
    // Five in the 20 s that were looked at, and 39 s that were not.
    expect(kind.hiddenCalls()).toBeCloseTo(9.75, 9);
    expect(kind.lastWindowCalls()).toBeCloseTo(14.75, 9);
    expect([kind.provenCalls(), kind.callsInWindow(61_500)]).toEqual([9, 4]);
  });

  test("reckons by the last quarter of a window alone, and by no less than that", () => {
    const { kind, call } = fixed();
    call(1_000, 99);
    call(11_000, 48);
    call(30_000, 47);
    call(50_000, 46);
    call(61_500, 99, { beganAt: 60_000 });
    expect(kind.hiddenCalls()).toBe(0);
    const short = fixed();
    short.call(1_000, 99);
    short.call(4_000, 88);
    short.call(61_500, 99, { beganAt: 60_000 });
    expect(short.kind.hiddenCalls()).toBeCloseTo((10 * 56_000) / 15_000, 9);
  });

  test("reckons with no more than was left", () => {
    const { kind, call } = fixed();
    call(1_000, 99);
    call(11_000, 4);
    call(61_500, 99, { beganAt: 60_000 });
    expect([kind.hiddenCalls(), kind.lastWindowCalls()]).toEqual([4, 98]);
  });

  test("is ruled out where calls come back within a window, but for a slip of two", () => {
    const isPossible = (remaining: number, between?: "bareCall" | "doubtfulCall") => {
      const played = fixed();
      played.call(1_000, 94);
      played.call(11_000, 93);
      if (between !== undefined) played[between](12_000);
      return played.call(21_000, remaining);
    };
    expect([94, 95].map((remaining) => isPossible(remaining))).toEqual([true, false]);
    expect([93, 94].map((remaining) => isPossible(remaining, "bareCall"))).toEqual([true, false]);
    expect([94, 95].map((remaining) => isPossible(remaining, "doubtfulCall"))).toEqual([true, false]);
  });

  test("is ruled out where a window begins before its time, but for a slip of a second", () => {
    const isPossible = (beganAt: number) => {
      const { call } = fixed();
      call(1_000, 99);
      return call(61_500, 99, { beganAt });
    };
    expect([57_000, 56_999, 30_000].map(isPossible)).toEqual([true, false, false]);
  });

  test("is ruled out where the window's beginning moves back", () => {
    const isPossible = (beganAt: number) => {
      const { call } = fixed();
      call(1_000, 99);
      return call(2_000, 98, { beganAt });
    };
    expect([-2_000, -2_001].map(isPossible)).toEqual([true, false]);
  });

  test("is ruled out where a whole limit is left after a call, or where the reset is further away than a window", () => {
    expect([99, 100, 101].map((remaining) => fixed().call(1_000, remaining))).toEqual([true, false, false]);
    expect([3_000, 3_001].map((beganAt) => fixed().call(1_000, 99, { beganAt }))).toEqual([true, false]);
  });

  test("is ruled out where no reset is stated", () => {
    const own = new OwnCalls();
    own.recordSent(0);
    const statement = { sentAt: 0, answeredAt: 0, limit: LIMIT, remaining: 99, resetAt: null, windowMs: WINDOW_MS };
    expect(new FixedWindowHypothesis().update(statement, own)).toBe(false);
  });
});

describe("a sliding window", () => {
  const sliding = () => followStatements(new SlidingWindowHypothesis());

  test("is no bucket, hides nothing, and shows nothing before a statement", () => {
    const { kind } = sliding();
    expect([
      kind.isTokenBucket,
      kind.provenCalls(),
      kind.hiddenCalls(),
      kind.lastWindowCalls(),
      kind.callsInWindow(0),
    ]).toEqual([...[false, 0, 0, 0, 0]]);
  });

  test("shows as calls of others what is spent beyond our own calls, and beyond what was spent at first sight", () => {
    const { kind, call } = sliding();
    expect(call(1_000, 69)).toBe(true);
    expect([kind.provenCalls(), kind.callsInWindow(1_000)]).toEqual([0, 0]);
    expect(call(11_000, 63)).toBe(true);
    expect([kind.provenCalls(), kind.callsInWindow(11_000)]).toEqual([5, 5]);
    expect([kind.callsInWindow(70_999), kind.callsInWindow(71_000)]).toEqual([5, 0]);
  });

  test("forgets what was spent at first sight after a window, and adds up what comes after what has left", () => {
    const { kind, call } = sliding();
    call(1_000, 69);
    call(11_000, 63);
    call(61_000, 90);
    expect([kind.provenCalls(), kind.callsInWindow(61_000)]).toEqual([7, 7]);
    call(80_000, 90);
    expect([kind.provenCalls(), kind.callsInWindow(80_000)]).toEqual([13, 8]);
    call(160_000, 95);
    expect([kind.provenCalls(), kind.callsInWindow(160_000)]).toEqual([17, 4]);
  });

  test("is ruled out where less is spent than our own calls of a window, but for a slip of two and calls in doubt", () => {
    const isPossible = (remaining: number, between: "bareCall" | "doubtfulCall" = "bareCall") => {
      const played = sliding();
      for (const at of [1_000, 2_000, 3_000]) played.call(at, 100 - at / 1_000);
      played[between](4_000);
      return played.call(5_000, remaining);
    };
    expect([95, 97, 98].map((remaining) => isPossible(remaining))).toEqual([true, true, false]);
    expect([98, 99].map((remaining) => isPossible(remaining, "doubtfulCall"))).toEqual([true, false]);
  });

  test("does not expect our own calls of the window before", () => {
    const { kind, call } = sliding();
    for (const at of [1_000, 2_000, 3_000, 4_000]) call(at, 100 - at / 1_000);
    expect(call(65_000, 99)).toBe(true);
    expect(kind.provenCalls()).toBe(0);
  });
});
