import { describe, expect, test } from "vitest";
import { TokenBucketHypothesis } from "../../../src/rate-limit/external-usage/token-bucket.ts";
import { countsOf, followStatements } from "./limit-statements.ts";

describe("a token bucket", () => {
  const bucket = () => followStatements(new TokenBucketHypothesis());

  test("proves nothing before two statements", () => {
    const { hypothesis, call } = bucket();
    const nothing = { proven: 0, hidden: 0, inWindow: 0, lastWindow: 0 };
    expect(hypothesis.isTokenBucket).toBe(true);
    expect(countsOf(hypothesis)).toEqual(nothing);
    expect(call(0, 20)).toBe(true);
    expect(countsOf(hypothesis)).toEqual(nothing);
  });

  test("proves external calls from what is missing beyond our own call and the refill", () => {
    const { hypothesis, call } = bucket();
    call(0, 150);
    expect(call(600, 145)).toBe(true);
    expect(hypothesis.provenCalls).toBe(5);
    expect(call(1_200, 145)).toBe(true);
    expect(hypothesis.provenCalls).toBe(5);
    expect(call(1_800, 144)).toBe(true);
    expect(hypothesis.provenCalls).toBe(6);
    expect(hypothesis.hiddenCalls).toBe(0);
  });

  test("counts external calls for a window length after they were proven", () => {
    const { hypothesis, call } = bucket();
    call(0, 150);
    call(600, 145);
    call(6_000, 146);
    expect(hypothesis.callsInWindow(6_000)).toBe(9);
    expect(hypothesis.callsInWindow(60_599)).toBe(9);
    expect(hypothesis.callsInWindow(60_600)).toBe(4);
    expect(hypothesis.callsInWindow(66_000)).toBe(0);
    call(90_000, 100);
    expect(hypothesis.callsInWindow(90_000)).toBe(hypothesis.provenCalls - 9);
  });

  test("counts a call from its sending: the refill during its latency proves nothing", () => {
    const { hypothesis, call } = bucket();
    call(0, 150);
    expect(call(600, 150, { tookMs: 600 })).toBe(true);
    expect(hypothesis.provenCalls).toBe(0);
    const other = bucket();
    other.call(0, 150);
    expect(other.call(600, 149, { tookMs: 600 })).toBe(true);
    expect(other.hypothesis.provenCalls).toBe(1);
  });

  test("is ruled out if more than two calls come back beyond the refill", () => {
    const isPossible = (remaining: number) => {
      const { call } = bucket();
      call(0, 50);
      return call(600, remaining);
    };
    expect([50, 52, 53, 54].map(isPossible)).toEqual([true, true, true, false]);
  });

  test("adjusts the balance to a small mismatch", () => {
    const { hypothesis, call } = bucket();
    call(0, 150);
    expect(call(600, 153)).toBe(true);
    expect(call(1_200, 153)).toBe(true);
    expect(hypothesis.provenCalls).toBe(0);
    expect(call(1_800, 150)).toBe(true);
    expect(hypothesis.provenCalls).toBe(3);
  });

  test("allows that a call in doubt was counted or not", () => {
    const isPossible = (remaining: number) => {
      const { call, doubtfulCall } = bucket();
      call(0, 50);
      doubtfulCall(200);
      return call(600, remaining);
    };
    expect([49, 53, 54].map(isPossible)).toEqual([true, true, false]);
  });

  test("estimates hidden calls by the ratio of the time in which the bucket was full to the time in which it was not", () => {
    const hiddenAfter = (sentAt: number, remaining: number, first = 199) => {
      const { hypothesis, call } = bucket();
      call(0, 199);
      if (first < 199) call(600, first);
      const before = hypothesis.provenCalls;
      call(sentAt, remaining);
      return [hypothesis.provenCalls - before, hypothesis.hiddenCalls];
    };
    expect(hiddenAfter(1_800, 199)).toEqual([0, 0]);
    expect(hiddenAfter(1_800, 198)).toEqual([1, 2]);
    expect(hiddenAfter(6_000, 194)).toEqual([5, 8]);
    const [calls, hidden] = hiddenAfter(4_800, 198, 194);
    expect(calls).toBe(1);
    expect(hidden).toBeCloseTo(600 / 3_600, 9);
  });

  test("proves no external calls from our own back-to-back calls if it was full", () => {
    const provedAfter = (remaining: number) => {
      const { hypothesis, call, bareCall } = bucket();
      call(0, 199);
      for (const at of [59_997, 59_998, 59_999]) bareCall(at);
      call(60_000, remaining);
      return hypothesis.provenCalls;
    };
    expect([196, 195, 190].map(provedAfter)).toEqual([0, 1, 6]);
  });

  test("starts again if another limit is stated", () => {
    const { hypothesis, call } = bucket();
    call(0, 150);
    expect(call(600, 20, { limit: 50 })).toBe(true);
    expect(hypothesis.provenCalls).toBe(0);
    expect(call(1_800, 18, { limit: 50 })).toBe(true);
    expect(hypothesis.provenCalls).toBe(2);
  });
});
