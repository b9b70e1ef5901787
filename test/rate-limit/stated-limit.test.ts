import fc from "fast-check";
import { expect, test } from "vitest";
import {
  callsInFlight,
  createStatedLimit,
  recordAnswered,
  recordLost,
  recordSent,
  remainingAtLeast,
  settleLostCalls,
} from "../../src/rate-limit/stated-limit.ts";

/** An event: a call is sent, arrives, is answered or lost, or calls are refilled. The number chooses the call. */
const event = fc.tuple(fc.constantFrom("send", "arrive", "answer", "lose", "refill" as const), fc.nat(20));

interface SentCall {
  readonly settledBefore: number;
  remaining: number | null;
}

test("never states more remaining calls than there are, however calls overlap, arrive late or get lost", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), fc.integer({ min: 20, max: 200 }), (events, capacity) => {
      const limit = createStatedLimit();
      const sent: SentCall[] = [];
      const arrived: SentCall[] = [];
      const lost: SentCall[] = [];
      let left = capacity;
      let now = 0;
      for (const [what, which] of events) {
        now++;
        if (what === "send") sent.push({ settledBefore: recordSent(limit), remaining: null });
        // The service may count calls in a different order.
        if (what === "arrive" && sent.length > 0) {
          const call = sent.splice(which % sent.length, 1)[0]!;
          call.remaining = --left;
          arrived.push(call);
        }
        if (what === "answer" && arrived.length > 0) {
          const call = arrived.splice(which % arrived.length, 1)[0]!;
          recordAnswered(limit, call.settledBefore, { limit: 100, remaining: call.remaining!, resetAt: null }, now);
        }
        if (what === "lose" && arrived.length > 0) {
          lost.push(arrived.splice(which % arrived.length, 1)[0]!);
          recordLost(limit, now + 50);
        }
        if (what === "refill") left = Math.min(capacity, left + (which % 3));
        settleLostCalls(limit, now);
        // Calls that were sent but not counted yet will be counted.
        expect(remainingAtLeast(limit) ?? Number.NEGATIVE_INFINITY).toBeLessThanOrEqual(left - sent.length);
      }
    }),
    { numRuns: 500 },
  );
});

test("is exact without external usage", () => {
  const limit = createStatedLimit();
  for (let left = 99; left > 90; left--) {
    recordAnswered(limit, recordSent(limit), { limit: 100, remaining: left, resetAt: null }, 0);
    expect(remainingAtLeast(limit)).toBe(left);
  }
});

test("accepts a lower value of a newer response, since others may have made calls", () => {
  const limit = createStatedLimit();
  recordAnswered(limit, recordSent(limit), { limit: 100, remaining: 90, resetAt: null }, 0);
  recordAnswered(limit, recordSent(limit), { limit: 100, remaining: 30, resetAt: null }, 1);
  expect(remainingAtLeast(limit)).toBe(30);
});

test("accepts a higher value of an overlapping response, but not a lower one", () => {
  const leastAfter = (remaining: number) => {
    const limit = createStatedLimit();
    const [first, second] = [recordSent(limit), recordSent(limit)];
    recordAnswered(limit, second, { limit: 100, remaining: 98, resetAt: null }, 0);
    recordAnswered(limit, first, { limit: 100, remaining, resetAt: null }, 1);
    return remainingAtLeast(limit);
  };
  expect([leastAfter(99), leastAfter(98), leastAfter(50)]).toEqual([98, 97, 97]);
});

test("a lost call is not in flight, and is settled when the service must have counted it", () => {
  const limit = createStatedLimit();
  recordSent(limit);
  recordSent(limit);
  recordLost(limit, 100);
  expect(callsInFlight(limit)).toBe(1);
  settleLostCalls(limit, 99);
  expect([limit.settled, callsInFlight(limit)]).toEqual([0, 1]);
  settleLostCalls(limit, 100);
  expect([limit.settled, callsInFlight(limit)]).toEqual([1, 1]);
});
