import fc from "fast-check";
import { expect, test } from "vitest";
import { OwnCalls } from "../../src/rate-limit/own-calls.ts";

test("counts calls by the time of their sending and of their end", () => {
  const own = new OwnCalls();
  own.sent.add(10);
  own.sent.add(20);
  own.ended.add(30);
  expect([own.sent.countBy(9), own.sent.countBy(10), own.sent.countBy(20)]).toEqual([0, 1, 2]);
  expect([own.ended.countBefore(30), own.ended.countBefore(31)]).toEqual([0, 1]);
  expect([own.ended.nth(1), own.ended.nth(2)]).toEqual([30, Number.POSITIVE_INFINITY]);
  expect(own.sent.last()).toBe(20);
});

test("a call in doubt ends when the service must have counted it, and is counted as in doubt", () => {
  const own = new OwnCalls();
  own.sent.add(10);
  own.recordInDoubt(50, 1_050);
  expect([own.ended.countBefore(1_050), own.ended.countBefore(1_051)]).toEqual([0, 1]);
  expect([own.inDoubtAfter(49), own.inDoubtAfter(50)]).toEqual([1, 0]);
});

test("a call in doubt is not in flight, and is settled when the service must have counted it", () => {
  const own = new OwnCalls();
  own.sent.add(0);
  own.sent.add(0);
  own.recordInDoubt(0, 100);
  expect([own.settledBy(99), own.inFlight()]).toEqual([0, 1]);
  expect([own.settledBy(100), own.inFlight()]).toEqual([1, 1]);
});

test("removes a call that was not sent, even if its sending is forgotten already", () => {
  const own = new OwnCalls();
  own.sent.add(10);
  own.sent.add(20);
  own.sent.remove(10);
  expect([own.sent.countBy(10), own.sent.countBy(20)]).toEqual([0, 1]);
  for (let call = 0; call < 2_000; call++) own.sent.add(100 + call);
  own.forget(1_500);
  own.sent.remove(20);
  expect(own.sent.countBy(3_000)).toBe(2_000);
});

test("forgotten calls stay in all later counts", () => {
  const times = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 600, maxLength: 2_000 });
  fc.assert(
    fc.property(times, fc.integer({ min: 0, max: 5_000 }), fc.nat(5_000), (sent, forgotten, later) => {
      const own = new OwnCalls();
      for (const at of sent) {
        own.sent.add(at);
        own.ended.add(at + 7);
      }
      own.forget(forgotten);
      const at = forgotten + later;
      expect(own.sent.countBy(at)).toBe(sent.filter((time) => time <= at).length);
      expect(own.ended.countBefore(at + 7)).toBe(sent.filter((time) => time < at).length);
    }),
    { numRuns: 50 },
  );
});
