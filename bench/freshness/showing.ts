import type { DurationMs } from "../../src/base/duration.ts";
import type { Share } from "../../src/base/percent.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { MONTH_MS } from "./cell.ts";
import { type Latencies, quantile } from "./finding.ts";
import type { Script } from "./script.ts";

/** Who polls. */
export const CONTENDERS = ["proxywarden", "even", "naive", "oracle"] as const;
export type Contender = (typeof CONTENDERS)[number];

/** How well an inventory followed the fleet. */
export interface InventoryShowing {
  /** Nodes that it lacked or wrongly had, as a share of the fleet, at worst. */
  readonly error: Share;
  /** Share of the snapshots whose list was fresh enough for metrics to show the nodes. */
  readonly fresh: Share;
}

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
  /** Null: it keeps none. */
  readonly inventory: InventoryShowing | null;
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
  readonly inventory: InventoryShowing | null;
}): Showing {
  const { latencies, calls, refused, spanMs, callsPerMonth, ages, inventory } = counted;
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
    inventory,
  };
}

/** The median age, at a moment of the same clock, of those details that are watched. `known`: when each was known. */
export function ageAt({ watched }: Pick<Script, "watched">, known: (index: number) => number, at: number): DurationMs {
  const sorted = Float64Array.from(watched, known).sort();
  return at - sorted[sorted.length >> 1]!;
}
