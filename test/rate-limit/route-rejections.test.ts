import { expect, test } from "vitest";
import {
  createRouteHistory,
  isRejectedAlone,
  type RouteHistory,
  recordRouteAnswered,
  recordRouteRejected,
  routeOf,
} from "../../src/rate-limit/route-rejections.ts";

/** The history of a route with sequential calls, of which `rejected` got 429. */
function historyOf(calls: number, rejected: number): RouteHistory {
  const record = createRouteHistory();
  for (let call = 0; call < calls; call++) {
    const isRejected = Math.floor(((call + 1) * rejected) / calls) > Math.floor((call * rejected) / calls);
    if (isRejected) recordRouteRejected(record, call, call);
    else recordRouteAnswered(record, call);
  }
  return record;
}

test("a route is rejected alone if other routes with as many calls are not", () => {
  expect(isRejectedAlone([historyOf(5, 5)], [historyOf(5, 0)])).toBe(true);
  expect(isRejectedAlone([historyOf(50, 5)], [historyOf(50, 0)])).toBe(true);
});

test("routes that are rejected at the same rate share a limit", () => {
  expect(isRejectedAlone([historyOf(100, 16)], [historyOf(100, 16)])).toBe(false);
  expect(isRejectedAlone([historyOf(100, 16)], [historyOf(50, 4)])).toBe(false);
});

test("a few 429s, or few calls of the others, prove nothing", () => {
  expect(isRejectedAlone([historyOf(2, 2)], [historyOf(100, 0)])).toBe(false);
  expect(isRejectedAlone([historyOf(100, 10)], [historyOf(30, 0)])).toBe(false);
  expect(isRejectedAlone([historyOf(10, 10)], [])).toBe(false);
});

test("429s of concurrent calls count once", () => {
  const record = createRouteHistory();
  for (let call = 0; call < 5; call++) recordRouteRejected(record, 100, 150);
  expect(record).toMatchObject({ rejectionsInRow: 1, rejected: 1, calls: 1 });
});

test("old calls lose weight", () => {
  const record = historyOf(400, 400);
  for (let call = 0; call < 1_400; call++) recordRouteAnswered(record, 1_000 + call);
  expect(record.rejected / record.calls).toBeLessThan(0.05);
  expect(record.calls).toBeLessThan(400);
});

test("reads of single nodes share a route, unless they are for actions", () => {
  expect((["action", "walk", "lookup", "suspect", "detail", "stats"] as const).map(routeOf)).toEqual([
    ...["action", "walk", "detail", "detail", "detail", "stats"],
  ]);
});

test("a success of a call that was sent after the last 429 resets the count of 429s in a row", () => {
  const rejections = (sentAt: number) => {
    const record = createRouteHistory();
    recordRouteRejected(record, 100, 150);
    recordRouteAnswered(record, sentAt);
    return record.rejectionsInRow;
  };
  expect([rejections(149), rejections(150)]).toEqual([1, 0]);
});

test("a 429 of a call that was sent after the last 429 counts again", () => {
  const record = createRouteHistory();
  recordRouteRejected(record, 100, 150);
  recordRouteRejected(record, 149, 200);
  recordRouteRejected(record, 150, 200);
  expect(record).toMatchObject({ rejectionsInRow: 2, rejected: 2, rejectedAt: 200 });
});

test("the counts are halved at 400 calls", () => {
  expect([historyOf(399, 0).calls, historyOf(400, 0).calls]).toEqual([399, 200]);
});

test("a route is compared from three 429s and four expected ones, and others may have a quarter of those", () => {
  expect(isRejectedAlone([historyOf(3, 3)], [historyOf(4, 0)])).toBe(true);
  expect(isRejectedAlone([historyOf(3, 3)], [historyOf(3, 0)])).toBe(false);
  expect(isRejectedAlone([historyOf(10, 10)], [historyOf(16, 4)])).toBe(true);
  expect(isRejectedAlone([historyOf(10, 10)], [historyOf(16, 5)])).toBe(false);
});
