import fc from "fast-check";
import { expect, test } from "vitest";
import { OwnCalls } from "../../../src/rate-limit/external-usage/own-calls.ts";

test("counts calls by the time of their sending and of their end", () => {
  const own = new OwnCalls();
  own.recordSent(10);
  own.recordSent(20);
  own.recordEnd(30);
  expect([own.sentBy(9), own.sentBy(10), own.sentBy(20)]).toEqual([0, 1, 2]);
  expect([own.endedBefore(30), own.endedBefore(31)]).toEqual([0, 1]);
  expect([own.endOf(1), own.endOf(2)]).toEqual([30, Number.POSITIVE_INFINITY]);
  expect(own.lastSentAt()).toBe(20);
});

test("a call in doubt ends when the service must have counted it, and is counted as in doubt", () => {
  const own = new OwnCalls();
  own.recordSent(10);
  own.recordInDoubt(50, 1_050);
  expect([own.endedBefore(1_050), own.endedBefore(1_051)]).toEqual([0, 1]);
  expect([own.inDoubtAfter(49), own.inDoubtAfter(50)]).toEqual([1, 0]);
});

test("removes a call that was not sent, even if its sending is forgotten already", () => {
  const own = new OwnCalls();
  own.recordSent(10);
  own.recordSent(20);
  own.recordUnsent(10);
  expect([own.sentBy(10), own.sentBy(20)]).toEqual([0, 1]);
  for (let call = 0; call < 2_000; call++) own.recordSent(100 + call);
  own.forget(1_500);
  own.recordUnsent(20);
  expect(own.sentBy(3_000)).toBe(2_000);
});

test("forgotten calls stay in all later counts", () => {
  const times = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 600, maxLength: 2_000 });
  fc.assert(
    fc.property(times, fc.integer({ min: 0, max: 5_000 }), fc.nat(5_000), (sent, forgotten, later) => {
      const own = new OwnCalls();
      for (const at of sent) {
        own.recordSent(at);
        own.recordEnd(at + 7);
      }
      own.forget(forgotten);
      const at = forgotten + later;
      expect(own.sentBy(at)).toBe(sent.filter((time) => time <= at).length);
      expect(own.endedBefore(at + 7)).toBe(sent.filter((time) => time < at).length);
    }),
    { numRuns: 50 },
  );
});
