import { describe, expect, test } from "vitest";
import { TokenBucketHypothesis } from "../../../src/rate-limit/external-usage/token-bucket.ts";
import { followStatements } from "./limit-statements.ts";

describe("a bucket", () => {
  const bucket = () => followStatements(new TokenBucketHypothesis());

  test("is one, and shows nothing before two statements", () => {
    const { kind, call } = bucket();
    expect([
      kind.isTokenBucket,
      kind.provenCalls(),
      kind.hiddenCalls(),
      kind.lastWindowCalls(),
      kind.callsInWindow(0),
    ]).toEqual([...[true, 0, 0, 0, 0]]);
    expect(call(0, 20)).toBe(true);
    expect([kind.provenCalls(), kind.hiddenCalls(), kind.callsInWindow(0)]).toEqual([0, 0, 0]);
  });

  test("shows as calls of others what is missing beyond our own call and what flowed in", () => {
    const { kind, call } = bucket();
    call(0, 150);
    expect(call(600, 145)).toBe(true);
    expect(kind.provenCalls()).toBe(5);
    expect(call(1_200, 145)).toBe(true);
    expect(kind.provenCalls()).toBe(5);
    expect(call(1_800, 144)).toBe(true);
    expect(kind.provenCalls()).toBe(6);
    expect(kind.hiddenCalls()).toBe(0);
  });

  test("shows them in the window's length after they were seen", () => {
    const { kind, call } = bucket();
    call(0, 150);
    call(600, 145);
    call(6_000, 146);
    expect(kind.callsInWindow(6_000)).toBe(9);
    expect(kind.callsInWindow(60_599)).toBe(9);
    expect(kind.callsInWindow(60_600)).toBe(4);
    expect(kind.callsInWindow(66_000)).toBe(0);
    call(90_000, 100);
    expect(kind.callsInWindow(90_000)).toBe(kind.provenCalls() - 9);
  });

  test("counts a call from its sending on: what flowed in while it was under way proves nobody", () => {
    const { kind, call } = bucket();
    call(0, 150);
    expect(call(600, 150, { tookMs: 600 })).toBe(true);
    expect(kind.provenCalls()).toBe(0);
    const other = bucket();
    other.call(0, 150);
    expect(other.call(600, 149, { tookMs: 600 })).toBe(true);
    expect(other.kind.provenCalls()).toBe(1);
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
    expect(kind.provenCalls()).toBe(0);
    expect(call(1_800, 150)).toBe(true);
    expect(kind.provenCalls()).toBe(3);
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
      const before = kind.provenCalls();
      call(sentAt, remaining);
      return [kind.provenCalls() - before, kind.hiddenCalls()];
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
      return kind.provenCalls();
    };
    expect([196, 195, 190].map(provedAfter)).toEqual([0, 1, 6]);
  });

  test("begins anew where another limit is stated", () => {
    const { kind, call } = bucket();
    call(0, 150);
    expect(call(600, 20, { limit: 50 })).toBe(true);
    expect(kind.provenCalls()).toBe(0);
    expect(call(1_800, 18, { limit: 50 })).toBe(true);
    expect(kind.provenCalls()).toBe(2);
  });
});
