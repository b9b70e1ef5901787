import { expect, test } from "vitest";
import {
  createRouteHistory,
  isRejectedAlone,
  type RouteHistory,
  recordRouteAnswered,
  recordRouteRejected,
  routeOf,
} from "../../src/rate-limit/route-rejections.ts";

/** The record of a route with so many calls, `refused` of them refused, each sent after the one before was settled. */
function recordOf(calls: number, refused: number): RouteHistory {
  const record = createRouteHistory();
  for (let call = 0; call < calls; call++) {
    const isRefused = Math.floor(((call + 1) * refused) / calls) > Math.floor((call * refused) / calls);
    if (isRefused) recordRouteRejected(record, call, call);
    else recordRouteAnswered(record, call);
  }
  return record;
}

test("a route is refused alone where the others, called as often, are not", () => {
  expect(isRejectedAlone([recordOf(5, 5)], [recordOf(5, 0)])).toBe(true);
  expect(isRejectedAlone([recordOf(50, 5)], [recordOf(50, 0)])).toBe(true);
});

test("routes that are refused at the same rate share a limit", () => {
  expect(isRejectedAlone([recordOf(100, 16)], [recordOf(100, 16)])).toBe(false);
  expect(isRejectedAlone([recordOf(100, 16)], [recordOf(50, 4)])).toBe(false);
});

test("a few refusals, or few calls of the others, prove nothing", () => {
  expect(isRejectedAlone([recordOf(2, 2)], [recordOf(100, 0)])).toBe(false);
  expect(isRejectedAlone([recordOf(100, 10)], [recordOf(30, 0)])).toBe(false);
  expect(isRejectedAlone([recordOf(10, 10)], [])).toBe(false);
});

test("calls that were under way together are refused once", () => {
  const record = createRouteHistory();
  for (let call = 0; call < 5; call++) recordRouteRejected(record, 100, 150);
  expect(record).toMatchObject({ rejectionsInRow: 1, rejected: 1, calls: 1 });
});

test("old calls weigh less and less", () => {
  const record = recordOf(400, 400);
  for (let call = 0; call < 1_400; call++) recordRouteAnswered(record, 1_000 + call);
  expect(record.rejected / record.calls).toBeLessThan(0.05);
  expect(record.calls).toBeLessThan(400);
});

test("reads of suspects and routine reads take the same route", () => {
  expect((["action", "walk", "suspect", "detail", "stats"] as const).map(routeOf)).toEqual([
    ...["action", "walk", "detail", "detail", "stats"],
  ]);
});

test("an answer to a call that was sent after the last refusal ends the row of refusals", () => {
  const rejections = (sentAt: number) => {
    const record = createRouteHistory();
    recordRouteRejected(record, 100, 150);
    recordRouteAnswered(record, sentAt);
    return record.rejectionsInRow;
  };
  expect([rejections(149), rejections(150)]).toEqual([1, 0]);
});

test("a call that was sent when the last refusal came is refused anew", () => {
  const record = createRouteHistory();
  recordRouteRejected(record, 100, 150);
  recordRouteRejected(record, 149, 200);
  recordRouteRejected(record, 150, 200);
  expect(record).toMatchObject({ rejectionsInRow: 2, rejected: 2, rejectedAt: 200 });
});

test("counts are halved at 400 calls", () => {
  expect([recordOf(399, 0).calls, recordOf(400, 0).calls]).toEqual([399, 200]);
});

test("three refusals are enough where the others were due four, and a quarter of what they were due is no chance", () => {
  expect(isRejectedAlone([recordOf(3, 3)], [recordOf(4, 0)])).toBe(true);
  expect(isRejectedAlone([recordOf(3, 3)], [recordOf(3, 0)])).toBe(false);
  expect(isRejectedAlone([recordOf(10, 10)], [recordOf(16, 4)])).toBe(true);
  expect(isRejectedAlone([recordOf(10, 10)], [recordOf(16, 5)])).toBe(false);
});
