import type { DurationMs } from "../../src/base/duration.ts";
import type { Share } from "../../src/base/percent.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { MONTH_MS } from "./cell.ts";
import { type Latencies, quantile } from "./detection.ts";
import type { Script } from "./script.ts";

/** The pollers that are compared. */
export const CONTENDERS = ["proxywarden", "even", "naive", "oracle"] as const;
export type Contender = (typeof CONTENDERS)[number];

/** How closely an inventory followed the fleet. */
export interface InventoryResult {
  /** Largest number of missing and wrongly kept nodes, as a share of the fleet. */
  readonly error: Share;
  /** Share of snapshots whose list was fresh enough for /metrics to show the nodes. */
  readonly fresh: Share;
}

/** The result of a contender in a cell. */
export interface Result {
  readonly latencies: Latencies;
  /** Admitted calls. */
  readonly callsPerMinute: number;
  /** Calls answered with 429. */
  readonly rejectedPerMinute: number;
  readonly rejected: number;
  /** Calls in 30 days at this rate. */
  readonly callsInMonth: number;
  /** Share of the month for which its calls last, at most 1. */
  readonly monthShare: number;
  /** Median age of the details, or null if the contender keeps none. */
  readonly medianAgeMs: DurationMs | null;
  /** Null if the contender keeps none. */
  readonly inventory: InventoryResult | null;
}

/** Number of times at which the inventory and the ages of details are recorded. */
export const AGE_MOMENTS = 24;

/** Returns the times between `from` and `to` at which the ages of details are recorded. */
export const ageMoments = (from: EpochMs, to: EpochMs): readonly EpochMs[] =>
  Array.from({ length: AGE_MOMENTS }, (_, count) => from + ((to - from) * (count + 1)) / (AGE_MOMENTS + 1));

/** Computes the result from the counts over `spanMs`. */
export function toResult(counts: {
  readonly latencies: Latencies;
  readonly calls: number;
  readonly rejected: number;
  readonly spanMs: DurationMs;
  readonly callsPerMonth: number | null;
  readonly ages: readonly DurationMs[];
  readonly inventory: InventoryResult | null;
}): Result {
  const { latencies, calls, rejected, spanMs, callsPerMonth, ages, inventory } = counts;
  const minutes = spanMs / 60_000;
  const callsInMonth = (calls / spanMs) * MONTH_MS;
  return {
    latencies,
    callsPerMinute: calls / minutes,
    rejectedPerMinute: rejected / minutes,
    rejected,
    callsInMonth,
    monthShare: callsPerMonth === null ? 1 : Math.min(1, callsPerMonth / callsInMonth),
    medianAgeMs: ages.length === 0 ? null : quantile(ages, 0.5),
    inventory,
  };
}

/**
 * Returns the median age at `at` of the details of the eligible nodes. `detailedAt` returns when a node's was last
 * read.
 */
export function ageAt(
  { eligible }: Pick<Script, "eligible">,
  detailedAt: (index: number) => number,
  at: number,
): DurationMs {
  const sorted = Float64Array.from(eligible, detailedAt).sort();
  return at - sorted[sorted.length >> 1]!;
}
