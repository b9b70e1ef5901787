import fc from "fast-check";
import { expect, test } from "vitest";
import { OwnCalls } from "../../src/rate-limit/own-calls.ts";
import { StatedLimit } from "../../src/rate-limit/stated-limit.ts";

/** A limit of 100 calls, and the calls under it. */
function createLimit() {
  const own = new OwnCalls();
  const limit = new StatedLimit(own);
  return {
    own,
    limit,
    /** Sends a call. Returns how many were settled before. */
    send(at: number): number {
      own.sent.add(at);
      return own.settledBy(at);
    },
    answer(settledBefore: number, remaining: number, at: number): void {
      own.ended.add(at);
      limit.record(settledBefore, { limit: 100, remaining, resetAt: null }, at);
    },
  };
}

/** An event: a call is sent, arrives, is answered or lost, or calls are refilled. The number chooses the call. */
const event = fc.tuple(fc.constantFrom("send", "arrive", "answer", "lose", "refill" as const), fc.nat(20));

interface SentCall {
  readonly settledBefore: number;
  remaining: number | null;
}

test("never states more remaining calls than there are, however calls overlap, arrive late or get lost", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), fc.integer({ min: 20, max: 200 }), (events, capacity) => {
      const { own, limit, send, answer } = createLimit();
      const sent: SentCall[] = [];
      const arrived: SentCall[] = [];
      const lost: SentCall[] = [];
      let left = capacity;
      let now = 0;
      for (const [what, which] of events) {
        now++;
        if (what === "send") sent.push({ settledBefore: send(now), remaining: null });
        // The service may count calls in a different order.
        if (what === "arrive" && sent.length > 0) {
          const call = sent.splice(which % sent.length, 1)[0]!;
          call.remaining = --left;
          arrived.push(call);
        }
        if (what === "answer" && arrived.length > 0) {
          const call = arrived.splice(which % arrived.length, 1)[0]!;
          answer(call.settledBefore, call.remaining!, now);
        }
        if (what === "lose" && arrived.length > 0) {
          lost.push(arrived.splice(which % arrived.length, 1)[0]!);
          own.recordInDoubt(now, now + 50);
        }
        if (what === "refill") left = Math.min(capacity, left + (which % 3));
        // Calls that were sent but not counted yet will be counted.
        expect(limit.remainingAtLeast() ?? Number.NEGATIVE_INFINITY).toBeLessThanOrEqual(left - sent.length);
      }
    }),
    { numRuns: 500 },
  );
});

test("is exact without external usage", () => {
  const { limit, send, answer } = createLimit();
  for (let left = 99; left > 90; left--) {
    answer(send(0), left, 0);
    expect(limit.remainingAtLeast()).toBe(left);
  }
});

test("accepts a lower value of a newer response, since others may have made calls", () => {
  const { limit, send, answer } = createLimit();
  answer(send(0), 90, 0);
  answer(send(1), 30, 1);
  expect(limit.remainingAtLeast()).toBe(30);
});

test("accepts a higher value of an overlapping response, but not a lower one", () => {
  const leastAfter = (remaining: number) => {
    const { limit, send, answer } = createLimit();
    const [first, second] = [send(0), send(0)];
    answer(second, 98, 0);
    answer(first, remaining, 1);
    return limit.remainingAtLeast();
  };
  expect([leastAfter(99), leastAfter(98), leastAfter(50)]).toEqual([98, 97, 97]);
});
