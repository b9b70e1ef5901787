import fc from "fast-check";
import { expect, test } from "vitest";
import {
  createView,
  leastRemaining,
  type Mark,
  markAnswered,
  markLost,
  markSent,
  settleLost,
  underWay,
} from "../../src/rate-limit/limit-headers.ts";

/** One thing that happens: a call goes out, arrives, is answered, or is lost. The number chooses which call. */
const happening = fc.tuple(fc.constantFrom("send", "arrive", "answer", "lose", "refill" as const), fc.nat(20));

interface Flight {
  readonly mark: Mark;
  remaining: number | null;
}

test("what the view says is left is never more than is left, however calls overlap, arrive late or get lost", () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 200 }), fc.integer({ min: 20, max: 200 }), (happenings, capacity) => {
      const view = createView();
      const onTheWay: Flight[] = [];
      const arrived: Flight[] = [];
      const neverAnswered: Flight[] = [];
      let left = capacity;
      let now = 0;
      for (const [what, which] of happenings) {
        now++;
        if (what === "send") onTheWay.push({ mark: markSent(view), remaining: null });
        // The service may count calls in another order than they were sent in.
        if (what === "arrive" && onTheWay.length > 0) {
          const flight = onTheWay.splice(which % onTheWay.length, 1)[0]!;
          flight.remaining = --left;
          arrived.push(flight);
        }
        if (what === "answer" && arrived.length > 0) {
          const flight = arrived.splice(which % arrived.length, 1)[0]!;
          markAnswered(view, flight.mark, { limit: 100, remaining: flight.remaining!, resetAt: null }, now);
        }
        if (what === "lose" && arrived.length > 0) {
          neverAnswered.push(arrived.splice(which % arrived.length, 1)[0]!);
          markLost(view, now + 50);
        }
        if (what === "refill") left = Math.min(capacity, left + (which % 3));
        settleLost(view, now);
        // What has been sent and not yet counted will be counted: it is spent already.
        expect(leastRemaining(view) ?? Number.NEGATIVE_INFINITY).toBeLessThanOrEqual(left - onTheWay.length);
      }
    }),
    { numRuns: 500 },
  );
});

test("alone, the view says exactly what is left", () => {
  const view = createView();
  for (let left = 99; left > 90; left--) {
    markAnswered(view, markSent(view), { limit: 100, remaining: left, resetAt: null }, 0);
    expect(leastRemaining(view)).toBe(left);
  }
});

test("a newer answer that shows less, for others spent it, is believed", () => {
  const view = createView();
  markAnswered(view, markSent(view), { limit: 100, remaining: 90, resetAt: null }, 0);
  markAnswered(view, markSent(view), { limit: 100, remaining: 30, resetAt: null }, 1);
  expect(leastRemaining(view)).toBe(30);
});

test("an answer that overlaps another one is believed where it shows more, and is not where it shows less", () => {
  const leastAfter = (remaining: number) => {
    const view = createView();
    const [first, second] = [markSent(view), markSent(view)];
    markAnswered(view, second, { limit: 100, remaining: 98, resetAt: null }, 0);
    markAnswered(view, first, { limit: 100, remaining, resetAt: null }, 1);
    return leastRemaining(view);
  };
  expect([leastAfter(99), leastAfter(98), leastAfter(50)]).toEqual([98, 97, 97]);
});

test("a lost call is under way no more, and counts as counted from when the service must have counted it", () => {
  const view = createView();
  markSent(view);
  markSent(view);
  markLost(view, 100);
  expect(underWay(view)).toBe(1);
  settleLost(view, 99);
  expect([view.settled, underWay(view)]).toEqual([0, 1]);
  settleLost(view, 100);
  expect([view.settled, underWay(view)]).toEqual([1, 1]);
});
