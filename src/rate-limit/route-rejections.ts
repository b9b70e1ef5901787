import type { MonotonicMs } from "../model/time.ts";
import type { Lane } from "./limits.ts";

/** Groups of calls in a category that may be limited separately. */
export const ROUTES = ["action", "walk", "detail", "stats"] as const;
export type Route = (typeof ROUTES)[number];

/** Returns the route of a lane. */
export const routeOf = (lane: Lane): Route => (lane === "suspect" || lane === "lookup" ? "detail" : lane);

/** Number of calls after which the counts of a route are halved. */
const RECORDED_CALLS_MAX = 400;
/** Minimum number of 429s for a route to be compared with others. */
const REJECTIONS_MIN = 3;
/**
 * Minimum number of 429s expected of the others, at the route's rate. The probability of having none by chance is then
 * below 2%.
 */
const EXPECTED_MIN = 4;
/** The other routes must have at most this share of the expected 429s. */
const REJECTED_SHARE_MAX = 0.25;

/** Creates the history of a route without calls. */
export const createRouteHistory = () => ({
  /** No call of the route may be sent before this time. */
  heldUntil: Number.NEGATIVE_INFINITY,
  /** 429s in a row; those of concurrent calls count once. */
  rejectionsInRow: 0,
  /** When the last of them was counted. */
  rejectedAt: Number.NEGATIVE_INFINITY,
  /** Recent calls with a response. This and `rejected` are halved when it reaches {@link RECORDED_CALLS_MAX}. */
  calls: 0,
  /** Those with 429. */
  rejected: 0,
});

/** Outcomes of the recent calls of one route. */
export type RouteHistory = ReturnType<typeof createRouteHistory>;

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

function recordRouteCall(record: RouteHistory, rejected: 0 | 1): void {
  record.calls++;
  record.rejected += rejected;
  if (record.calls < RECORDED_CALLS_MAX) return;
  record.calls /= 2;
  record.rejected /= 2;
}

/** Returns whether `own` calls get 429 so much more often than `others` that a common limit is ruled out. */
export function isRejectedAlone(own: readonly RouteHistory[], others: readonly RouteHistory[]): boolean {
  const rejected = sum(own, "rejected");
  const expected = (rejected / Math.max(1, sum(own, "calls"))) * sum(others, "calls");
  return (
    rejected >= REJECTIONS_MIN && expected >= EXPECTED_MIN && sum(others, "rejected") <= REJECTED_SHARE_MAX * expected
  );
}

const sum = (records: readonly RouteHistory[], key: "calls" | "rejected"): number =>
  records.reduce((total, record) => total + record[key], 0);
