import type { MonotonicMs } from "../model/time.ts";
import type { Lane } from "./limits.ts";

/** What calls of one category are told apart by when some are refused and others are not. */
export const ROUTES = ["action", "walk", "detail", "stats"] as const;
export type Route = (typeof ROUTES)[number];

/** Returns the route that calls of a lane take. */
export const routeOf = (lane: Lane): Route => (lane === "suspect" ? "detail" : lane);

/** What became of the recent calls of one route. */
export interface RouteRecord {
  /** No call of the route may go before. */
  refusedUntil: MonotonicMs;
  /** Refusals in a row, those of calls that were under way together counted once. */
  refusals: number;
  /** When the last of them was counted. */
  refusedAt: MonotonicMs;
  /** Answered and refused calls of late. Both counts are halved when they reach {@link CALLS_MAX}. */
  calls: number;
  refused: number;
}

/** Calls that are remembered of a route. */
const CALLS_MAX = 400;
/** Fewest refusals from which a route is compared with others. */
const REFUSED_MIN = 3;
/** Fewest refusals that the others must have been due, at the route's share: none by chance is then less than 2 %. */
const EXPECTED_MIN = 4;
/** The others were refused at most at this share of what they were due. */
const REFUSED_SHARE_MAX = 0.25;

/** Creates the record of a route that was not called yet. */
export const createRouteRecord = (): RouteRecord => ({
  refusedUntil: Number.NEGATIVE_INFINITY,
  refusals: 0,
  refusedAt: Number.NEGATIVE_INFINITY,
  calls: 0,
  refused: 0,
});

/** Takes in that a call sent at `sentAt` was answered. */
export function noteAnswered(record: RouteRecord, sentAt: MonotonicMs): void {
  if (sentAt >= record.refusedAt) record.refusals = 0;
  noteCall(record, 0);
}

/** Takes in that a call sent at `sentAt` was refused. Calls that were under way together count once. */
export function noteRefused(record: RouteRecord, sentAt: MonotonicMs, now: MonotonicMs): void {
  if (sentAt < record.refusedAt) return;
  record.refusals++;
  record.refusedAt = now;
  noteCall(record, 1);
}

function noteCall(record: RouteRecord, refused: 0 | 1): void {
  record.calls++;
  record.refused += refused;
  if (record.calls < CALLS_MAX) return;
  record.calls /= 2;
  record.refused /= 2;
}

/** Whether `own` calls are refused so much more often than `others` that a limit on both of them is ruled out. */
export function refusesAlone(own: readonly RouteRecord[], others: readonly RouteRecord[]): boolean {
  const refused = sum(own, "refused");
  const expected = (refused / Math.max(1, sum(own, "calls"))) * sum(others, "calls");
  return refused >= REFUSED_MIN && expected >= EXPECTED_MIN && sum(others, "refused") <= REFUSED_SHARE_MAX * expected;
}

const sum = (records: readonly RouteRecord[], key: "calls" | "refused"): number =>
  records.reduce((total, record) => total + record[key], 0);
