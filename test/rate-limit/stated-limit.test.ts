import fc from "fast-check";
import { expect, test } from "vitest";
import { StatedLimit } from "../../src/rate-limit/stated-limit.ts";

/** An event: a call is sent, arrives, is answered or lost, or calls are refilled. The number chooses the call. */
const event = fc.tuple(fc.constantFrom("send", "arrive", "answer", "lose", "refill" as const), fc.nat(20));

interface SentCall {
  readonly settledBefore: number;
  remaining: number | null;
}

test("never states more remaining calls than there are, however calls overlap, arrive late or get lost", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), fc.integer({ min: 20, max: 200 }), (events, capacity) => {
      const limit = new StatedLimit();
      const sent: SentCall[] = [];
      const arrived: SentCall[] = [];
      const lost: SentCall[] = [];
      let left = capacity;
      let now = 0;
      for (const [what, which] of events) {
        now++;
        if (what === "send") sent.push({ settledBefore: limit.recordSent(), remaining: null });
        // The service may count calls in a different order.
        if (what === "arrive" && sent.length > 0) {
          const call = sent.splice(which % sent.length, 1)[0]!;
          call.remaining = --left;
          arrived.push(call);
        }
        if (what === "answer" && arrived.length > 0) {
          const call = arrived.splice(which % arrived.length, 1)[0]!;
          limit.recordAnswered(call.settledBefore, { limit: 100, remaining: call.remaining!, resetAt: null }, now);
        }
        if (what === "lose" && arrived.length > 0) {
          lost.push(arrived.splice(which % arrived.length, 1)[0]!);
          limit.recordLost(now + 50);
        }
        if (what === "refill") left = Math.min(capacity, left + (which % 3));
        limit.settleLostCalls(now);
        // Calls that were sent but not counted yet will be counted.
        expect(limit.remainingAtLeast() ?? Number.NEGATIVE_INFINITY).toBeLessThanOrEqual(left - sent.length);
      }
    }),
    { numRuns: 500 },
  );
});

test("is exact without external usage", () => {
  const limit = new StatedLimit();
  for (let left = 99; left > 90; left--) {
    limit.recordAnswered(limit.recordSent(), { limit: 100, remaining: left, resetAt: null }, 0);
    expect(limit.remainingAtLeast()).toBe(left);
  }
});

test("accepts a lower value of a newer response, since others may have made calls", () => {
  const limit = new StatedLimit();
  limit.recordAnswered(limit.recordSent(), { limit: 100, remaining: 90, resetAt: null }, 0);
  limit.recordAnswered(limit.recordSent(), { limit: 100, remaining: 30, resetAt: null }, 1);
  expect(limit.remainingAtLeast()).toBe(30);
});

test("accepts a higher value of an overlapping response, but not a lower one", () => {
  const leastAfter = (remaining: number) => {
    const limit = new StatedLimit();
    const [first, second] = [limit.recordSent(), limit.recordSent()];
    limit.recordAnswered(second, { limit: 100, remaining: 98, resetAt: null }, 0);
    limit.recordAnswered(first, { limit: 100, remaining, resetAt: null }, 1);
    return limit.remainingAtLeast();
  };
  expect([leastAfter(99), leastAfter(98), leastAfter(50)]).toEqual([98, 97, 97]);
});

test("a lost call is not in flight, and is settled when the service must have counted it", () => {
  const limit = new StatedLimit();
  limit.recordSent();
  limit.recordSent();
  limit.recordLost(100);
  expect(limit.callsInFlight()).toBe(1);
  limit.settleLostCalls(99);
  expect([limit.settled, limit.callsInFlight()]).toEqual([0, 1]);
  limit.settleLostCalls(100);
  expect([limit.settled, limit.callsInFlight()]).toEqual([1, 1]);
});
