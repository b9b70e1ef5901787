import fc from "fast-check";
import { expect, test } from "vitest";
import {
  callsInFlight,
  createStatedLimit,
  recordAnswered,
  recordLost,
  recordSent,
  remainingAtLeast,
  type SendMark,
  settleLostCalls,
} from "../../src/rate-limit/limit-headers.ts";

/** One thing that happens: a call goes out, arrives, is answered, or is lost. The number chooses which call. */
const happening = fc.tuple(fc.constantFrom("send", "arrive", "answer", "lose", "refill" as const), fc.nat(20));

interface Flight {
  readonly mark: SendMark;
  remaining: number | null;
}

test("what the view says is left is never more than is left, however calls overlap, arrive late or get lost", () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 200 }), fc.integer({ min: 20, max: 200 }), (happenings, capacity) => {
      const view = createStatedLimit();
      const onTheWay: Flight[] = [];
      const arrived: Flight[] = [];
      const neverAnswered: Flight[] = [];
      let left = capacity;
      let now = 0;
      for (const [what, which] of happenings) {
        now++;
        if (what === "send") onTheWay.push({ mark: recordSent(view), remaining: null });
        // The service may count calls in another order than they were sent in.
        if (what === "arrive" && onTheWay.length > 0) {
          const flight = onTheWay.splice(which % onTheWay.length, 1)[0]!;
          flight.remaining = --left;
          arrived.push(flight);
        }
        if (what === "answer" && arrived.length > 0) {
          const flight = arrived.splice(which % arrived.length, 1)[0]!;
          recordAnswered(view, flight.mark, { limit: 100, remaining: flight.remaining!, resetAt: null }, now);
        }
        if (what === "lose" && arrived.length > 0) {
          neverAnswered.push(arrived.splice(which % arrived.length, 1)[0]!);
          recordLost(view, now + 50);
        }
        if (what === "refill") left = Math.min(capacity, left + (which % 3));
        settleLostCalls(view, now);
        // What has been sent and not yet counted will be counted: it is spent already.
        expect(remainingAtLeast(view) ?? Number.NEGATIVE_INFINITY).toBeLessThanOrEqual(left - onTheWay.length);
      }
    }),
    { numRuns: 500 },
  );
});

test("alone, the view says exactly what is left", () => {
  const view = createStatedLimit();
  for (let left = 99; left > 90; left--) {
    recordAnswered(view, recordSent(view), { limit: 100, remaining: left, resetAt: null }, 0);
    expect(remainingAtLeast(view)).toBe(left);
  }
});

test("a newer answer that shows less, for others spent it, is believed", () => {
  const view = createStatedLimit();
  recordAnswered(view, recordSent(view), { limit: 100, remaining: 90, resetAt: null }, 0);
  recordAnswered(view, recordSent(view), { limit: 100, remaining: 30, resetAt: null }, 1);
  expect(remainingAtLeast(view)).toBe(30);
});

test("an answer that overlaps another one is believed where it shows more, and is not where it shows less", () => {
  const leastAfter = (remaining: number) => {
    const view = createStatedLimit();
    const [first, second] = [recordSent(view), recordSent(view)];
    recordAnswered(view, second, { limit: 100, remaining: 98, resetAt: null }, 0);
    recordAnswered(view, first, { limit: 100, remaining, resetAt: null }, 1);
    return remainingAtLeast(view);
  };
  expect([leastAfter(99), leastAfter(98), leastAfter(50)]).toEqual([98, 97, 97]);
});

test("a lost call is under way no more, and counts as counted from when the service must have counted it", () => {
  const view = createStatedLimit();
  recordSent(view);
  recordSent(view);
  recordLost(view, 100);
  expect(callsInFlight(view)).toBe(1);
  settleLostCalls(view, 99);
  expect([view.settled, callsInFlight(view)]).toEqual([0, 1]);
  settleLostCalls(view, 100);
  expect([view.settled, callsInFlight(view)]).toEqual([1, 1]);
});
