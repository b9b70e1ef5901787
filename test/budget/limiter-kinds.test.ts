import { describe, expect, test } from "vitest";
import { createBucketKind } from "../../src/budget/bucketkind.ts";
import { createFixedKind } from "../../src/budget/fixedkind.ts";
import type { LimiterKind } from "../../src/budget/limiterkind.ts";
import { createOwnCalls } from "../../src/budget/owncalls.ts";
import { createSlidingKind } from "../../src/budget/slidingkind.ts";

const WINDOW_MS = 60_000;
const LIMIT = 100;

interface Stated {
  readonly limit?: number;
  /** How long the answer took. */
  readonly tookMs?: number;
  /** When the window began that the answer's reset ends; resets are rounded up by a second. */
  readonly beganAt?: number;
}

/** A kind of limiter that follows the statements on our calls, of which one token comes back each 600 ms. */
function follow(kind: LimiterKind) {
  const own = createOwnCalls();
  return {
    kind,
    /** A call of ours whose answer states what remains; false: the kind is ruled out. */
    call(sentAt: number, remaining: number, { limit = LIMIT, tookMs = 0, beganAt = 0 }: Stated = {}): boolean {
      const answeredAt = sentAt + tookMs;
      own.send(sentAt);
      const resetAt = beganAt + WINDOW_MS + 1_000;
      const isPossible = kind.read({ sentAt, answeredAt, limit, remaining, resetAt, windowMs: WINDOW_MS }, own);
      own.end(answeredAt);
      return isPossible;
    },
    /** A call of ours whose answer states nothing. */
    bareCall(at: number) {
      own.send(at);
      own.end(at);
    },
    /** A call of ours that may have been counted or not. */
    doubtfulCall(at: number) {
      own.send(at);
      own.endInDoubt(at, at);
    },
  };
}

describe("a bucket", () => {
  const bucket = () => follow(createBucketKind());

  test("is one, and shows nothing before two statements", () => {
    const { kind, call } = bucket();
    expect([kind.isBucket, kind.proved(), kind.hidden(), kind.lastWindow(), kind.inWindow(0)]).toEqual([
      ...[true, 0, 0, 0, 0],
    ]);
    expect(call(0, 20)).toBe(true);
    expect([kind.proved(), kind.hidden(), kind.inWindow(0)]).toEqual([0, 0, 0]);
  });

  test("shows as calls of others what is missing beyond our own call and what flowed in", () => {
    const { kind, call } = bucket();
    call(0, 150);
    expect(call(600, 145)).toBe(true);
    expect(kind.proved()).toBe(5);
    expect(call(1_200, 145)).toBe(true);
    expect(kind.proved()).toBe(5);
    expect(call(1_800, 144)).toBe(true);
    expect(kind.proved()).toBe(6);
    expect(kind.hidden()).toBe(0);
  });

  test("shows them in the window's length after they were seen", () => {
    const { kind, call } = bucket();
    call(0, 150);
    call(600, 145);
    call(6_000, 146);
    expect(kind.inWindow(6_000)).toBe(9);
    expect(kind.inWindow(60_599)).toBe(9);
    expect(kind.inWindow(60_600)).toBe(4);
    expect(kind.inWindow(66_000)).toBe(0);
    call(90_000, 100);
    expect(kind.inWindow(90_000)).toBe(kind.proved() - 9);
  });

  test("counts a call from its sending on: what flowed in while it was under way proves nobody", () => {
    const { kind, call } = bucket();
    call(0, 150);
    expect(call(600, 150, { tookMs: 600 })).toBe(true);
    expect(kind.proved()).toBe(0);
    const other = bucket();
    other.call(0, 150);
    expect(other.call(600, 149, { tookMs: 600 })).toBe(true);
    expect(other.kind.proved()).toBe(1);
  });

  test("is ruled out where more comes back than flows in, but for a slip of two", () => {
    const isPossible = (remaining: number) => {
      const { call } = bucket();
      call(0, 50);
      return call(600, remaining);
    };
    expect([50, 52, 53, 54].map(isPossible)).toEqual([true, true, true, false]);
  });

  test("takes a slip for what is so from then on", () => {
    const { kind, call } = bucket();
    call(0, 150);
    expect(call(600, 153)).toBe(true);
    expect(call(1_200, 153)).toBe(true);
    expect(kind.proved()).toBe(0);
    expect(call(1_800, 150)).toBe(true);
    expect(kind.proved()).toBe(3);
  });

  test("may have counted a call in doubt, or not", () => {
    const isPossible = (remaining: number) => {
      const { call, doubtfulCall } = bucket();
      call(0, 50);
      doubtfulCall(200);
      return call(600, remaining);
    };
    expect([49, 53, 54].map(isPossible)).toEqual([true, true, false]);
  });

  test("that is full hides calls: as many more are likely as it was full longer than not", () => {
    const hiddenAfter = (sentAt: number, remaining: number, first = 199) => {
      const { kind, call } = bucket();
      call(0, 199);
      if (first < 199) call(600, first);
      const before = kind.proved();
      call(sentAt, remaining);
      return [kind.proved() - before, kind.hidden()];
    };
    expect(hiddenAfter(1_800, 199)).toEqual([0, 0]);
    expect(hiddenAfter(1_800, 198)).toEqual([1, 2]);
    expect(hiddenAfter(6_000, 194)).toEqual([5, 8]);
    const [calls, hidden] = hiddenAfter(4_800, 198, 194);
    expect(calls).toBe(1);
    expect(hidden).toBeCloseTo(600 / 3_600, 9);
  });

  test("that is full proves no others by our own calls at once", () => {
    const provedAfter = (remaining: number) => {
      const { kind, call, bareCall } = bucket();
      call(0, 199);
      for (const at of [59_997, 59_998, 59_999]) bareCall(at);
      call(60_000, remaining);
      return kind.proved();
    };
    expect([196, 195, 190].map(provedAfter)).toEqual([0, 1, 6]);
  });

  test("begins anew where another limit is stated", () => {
    const { kind, call } = bucket();
    call(0, 150);
    expect(call(600, 20, { limit: 50 })).toBe(true);
    expect(kind.proved()).toBe(0);
    expect(call(1_800, 18, { limit: 50 })).toBe(true);
    expect(kind.proved()).toBe(2);
  });
});

describe("a fixed window", () => {
  const fixed = () => follow(createFixedKind());

  test("is no bucket, and shows nothing before a statement", () => {
    const { kind } = fixed();
    expect([kind.isBucket, kind.proved(), kind.hidden(), kind.lastWindow(), kind.inWindow(0)]).toEqual([
      ...[false, 0, 0, 0, 0],
    ]);
  });

  test("shows as calls of others what is spent beyond our own calls, and beyond what was spent at first sight", () => {
    const { kind, call } = fixed();
    expect(call(1_000, 69)).toBe(true);
    expect([kind.proved(), kind.inWindow(1_000)]).toEqual([0, 0]);
    expect(call(11_000, 63)).toBe(true);
    expect([kind.proved(), kind.inWindow(11_000)]).toEqual([5, 5]);
    expect(call(21_000, 62)).toBe(true);
    expect(kind.proved()).toBe(5);
  });

  test("knows our own calls before the first statement", () => {
    const { kind, call, bareCall } = fixed();
    bareCall(2_000);
    call(3_000, 68);
    call(4_000, 67);
    expect(kind.proved()).toBe(0);
    call(5_000, 65);
    expect(kind.proved()).toBe(1);
  });

  test("shows them until the window ends, at the earliest that the resets allow", () => {
    const end = (beganAt: number) => {
      const { kind, call } = fixed();
      call(1_000, 99);
      call(11_000, 93, { beganAt });
      return [kind.inWindow(60_499), kind.inWindow(60_500), kind.inWindow(60_999), kind.inWindow(61_000)];
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
    expect(kind.lastWindow()).toBe(0);
    expect(call(61_500, 95, { beganAt: 60_000 })).toBe(true);
    // Five in the 20 s that were looked at, and 39 s that were not.
    expect(kind.hidden()).toBeCloseTo(9.75, 9);
    expect(kind.lastWindow()).toBeCloseTo(14.75, 9);
    expect([kind.proved(), kind.inWindow(61_500)]).toEqual([9, 4]);
  });

  test("reckons by the last quarter of a window alone, and by no less than that", () => {
    const { kind, call } = fixed();
    call(1_000, 99);
    call(11_000, 48);
    call(30_000, 47);
    call(50_000, 46);
    call(61_500, 99, { beganAt: 60_000 });
    expect(kind.hidden()).toBe(0);
    const short = fixed();
    short.call(1_000, 99);
    short.call(4_000, 88);
    short.call(61_500, 99, { beganAt: 60_000 });
    expect(short.kind.hidden()).toBeCloseTo((10 * 56_000) / 15_000, 9);
  });

  test("reckons with no more than was left", () => {
    const { kind, call } = fixed();
    call(1_000, 99);
    call(11_000, 4);
    call(61_500, 99, { beganAt: 60_000 });
    expect([kind.hidden(), kind.lastWindow()]).toEqual([4, 98]);
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
    const own = createOwnCalls();
    own.send(0);
    const statement = { sentAt: 0, answeredAt: 0, limit: LIMIT, remaining: 99, resetAt: null, windowMs: WINDOW_MS };
    expect(createFixedKind().read(statement, own)).toBe(false);
  });
});

describe("a sliding window", () => {
  const sliding = () => follow(createSlidingKind());

  test("is no bucket, hides nothing, and shows nothing before a statement", () => {
    const { kind } = sliding();
    expect([kind.isBucket, kind.proved(), kind.hidden(), kind.lastWindow(), kind.inWindow(0)]).toEqual([
      ...[false, 0, 0, 0, 0],
    ]);
  });

  test("shows as calls of others what is spent beyond our own calls, and beyond what was spent at first sight", () => {
    const { kind, call } = sliding();
    expect(call(1_000, 69)).toBe(true);
    expect([kind.proved(), kind.inWindow(1_000)]).toEqual([0, 0]);
    expect(call(11_000, 63)).toBe(true);
    expect([kind.proved(), kind.inWindow(11_000)]).toEqual([5, 5]);
    expect([kind.inWindow(70_999), kind.inWindow(71_000)]).toEqual([5, 0]);
  });

  test("forgets what was spent at first sight after a window, and adds up what comes after what has left", () => {
    const { kind, call } = sliding();
    call(1_000, 69);
    call(11_000, 63);
    call(61_000, 90);
    expect([kind.proved(), kind.inWindow(61_000)]).toEqual([7, 7]);
    call(80_000, 90);
    expect([kind.proved(), kind.inWindow(80_000)]).toEqual([13, 8]);
    call(160_000, 95);
    expect([kind.proved(), kind.inWindow(160_000)]).toEqual([17, 4]);
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
    expect(kind.proved()).toBe(0);
  });
});
