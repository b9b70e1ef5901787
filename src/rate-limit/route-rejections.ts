import type { MonotonicMs } from "../model/time.ts";
import type { Lane } from "./limits.ts";

/** Groups of calls in a category that may be limited separately. */
export const ROUTES = ["action", "walk", "detail", "stats"] as const;
export type Route = (typeof ROUTES)[number];

/** Returns the route of a lane. */
export const routeOf = (lane: Lane): Route => (lane === "suspect" ? "detail" : lane);

/** Outcomes of the recent calls of one route. */
export interface RouteHistory {
  /** No call of the route may go before. */
  rejectedUntil: MonotonicMs;
  /** Refusals in a row, those of calls that were under way together counted once. */
  rejectionsInRow: number;
  /** When the last of them was counted. */
  rejectedAt: MonotonicMs;
  /** Answered and refused calls of late. Both counts are halved when they reach {@link RECORDED_CALLS_MAX}. */
  calls: number;
  refused: number;
}

/** Calls that are remembered of a route. */
const RECORDED_CALLS_MAX = 400;
/** Fewest refusals from which a route is compared with others. */
const REJECTIONS_MIN = 3;
/** Fewest refusals that the others must have been due, at the route's share: none by chance is then less than 2 %. */
const EXPECTED_MIN = 4;
/** The others were refused at most at this share of what they were due. */
const REJECTED_SHARE_MAX = 0.25;

/** Creates the history of a route without calls. */
export const createRouteHistory = (): RouteHistory => ({
  rejectedUntil: Number.NEGATIVE_INFINITY,
  rejectionsInRow: 0,
  rejectedAt: Number.NEGATIVE_INFINITY,
  calls: 0,
  refused: 0,
});

/** Records that a call sent at `sentAt` was answered. */
export function recordRouteAnswered(record: RouteHistory, sentAt: MonotonicMs): void {
  if (sentAt >= record.rejectedAt) record.rejectionsInRow = 0;
  recordRouteCall(record, 0);
}

/** Records that a call sent at `sentAt` got 429. Concurrent calls count once. */
export function recordRouteRejected(record: RouteHistory, sentAt: MonotonicMs, now: MonotonicMs): void {
  if (sentAt < record.rejectedAt) return;
  record.rejectionsInRow++;
  record.rejectedAt = now;
  recordRouteCall(record, 1);
}

function recordRouteCall(record: RouteHistory, refused: 0 | 1): void {
  record.calls++;
  record.refused += refused;
  if (record.calls < RECORDED_CALLS_MAX) return;
  record.calls /= 2;
  record.refused /= 2;
}

/** Whether `own` calls get 429 so much more often than `others` that a common limit is ruled out. */
export function isRejectedAlone(own: readonly RouteHistory[], others: readonly RouteHistory[]): boolean {
  const refused = sum(own, "refused");
  const expected = (refused / Math.max(1, sum(own, "calls"))) * sum(others, "calls");
  return (
    refused >= REJECTIONS_MIN && expected >= EXPECTED_MIN && sum(others, "refused") <= REJECTED_SHARE_MAX * expected
  );
}

const sum = (records: readonly RouteHistory[], key: "calls" | "refused"): number =>
  records.reduce((total, record) => total + record[key], 0);
