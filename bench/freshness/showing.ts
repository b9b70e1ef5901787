import type { DurationMs } from "../../src/base/duration.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { MONTH_MS } from "./cell.ts";
import { type Latencies, quantile } from "./finding.ts";

/** Who polls. */
export const CONTENDERS = ["proxywarden", "even", "naive", "oracle"] as const;
export type Contender = (typeof CONTENDERS)[number];

/** How a contender did in a cell. */
export interface Showing {
  readonly latencies: Latencies;
  /** Calls that were let in, and calls that were answered 429, both a minute. */
  readonly callsAMinute: number;
  readonly refusedAMinute: number;
  readonly refused: number;
  /** Calls that a month of 30 days would take at this pace. */
  readonly callsAMonth: number;
  /** Share of the month until its calls are spent; 1: they last. */
  readonly sees: number;
  /** Of all details at moments of the run; null: it keeps none. */
  readonly medianAgeMs: DurationMs | null;
}

/** Moments at which ages are looked at. */
const AGE_MOMENTS = 24;

/** The moments between `from` and `to` at which the ages of details are taken. */
export const ageMoments = (from: EpochMs, to: EpochMs): readonly EpochMs[] =>
  Array.from({ length: AGE_MOMENTS }, (_, count) => from + ((to - from) * (count + 1)) / (AGE_MOMENTS + 1));

/** A showing of what was counted over `spanMs`. */
export function showingOf(counted: {
  readonly latencies: Latencies;
  readonly calls: number;
  readonly refused: number;
  readonly spanMs: DurationMs;
  readonly callsPerMonth: number | null;
  readonly ages: readonly DurationMs[];
}): Showing {
  const { latencies, calls, refused, spanMs, callsPerMonth, ages } = counted;
  const minutes = spanMs / 60_000;
  const callsAMonth = (calls / spanMs) * MONTH_MS;
  return {
    latencies,
    callsAMinute: calls / minutes,
    refusedAMinute: refused / minutes,
    refused,
    callsAMonth,
    sees: callsPerMonth === null ? 1 : Math.min(1, callsPerMonth / callsAMonth),
    medianAgeMs: ages.length === 0 ? null : quantile(ages, 0.5),
  };
}

/** The median age of what was known when, at a moment of the same clock. */
export function ageAt(known: Float64Array, at: number): DurationMs {
  const sorted = known.toSorted();
  return at - sorted[sorted.length >> 1]!;
}
