import type { DurationMs } from "../base/duration.ts";
import { growColumn } from "../base/typed-column.ts";
import { type Threshold, USAGES, type Usage } from "../model/policy/policy.ts";
import type { MonotonicMs } from "../model/time.ts";

/** Usages as one detail showed them, 0 to 1; NaN: missing. */
export type UsageReading = Readonly<Record<Usage, number>>;

/** Where the usages of nodes go: which of them stand near a threshold, or are about to cross one. */
export interface UsageTrends {
  /** Takes in a detail. Slopes are judged by what is usual in a round. */
  recordReading(slot: number, reading: UsageReading, at: MonotonicMs, roundMs: DurationMs): void;
  /** What was read of the slot speaks of another node. */
  forgetNode(slot: number): void;
  /** What was read of any slot means nothing any more. */
  forgetAll(): void;
  setThresholds(thresholds: readonly Threshold[]): void;
  /** How soon after its last read the slot is worth another one; null: in its turn. */
  outlook(slot: number, roundMs: DurationMs): UsageOutlook | null;
}

/** `rising`: it moves towards a threshold and is predicted to cross it; `near`: it merely stands close to one. */
export interface UsageOutlook {
  readonly kind: "rising" | "near";
  readonly afterMs: DurationMs;
}

/** What is closer to a threshold than this stands near it. */
const NEAR_MARGIN = 0.05;
/** A node that stands near is read two to so many times a round, by how near it is. */
const NEAR_READS_MAX = 4;
/** An outlook of fewer reads a round is none: its turn comes soon enough. */
const READS_MIN = 2;
/**
 * The next look at what rises comes after this share of the way to the threshold, the one after that after as much of
 * the rest: whatever was wrong with the prediction is corrected on the way, at the cost of a few reads a crossing.
 */
const LEAD_SHARE = 1 / 3;
/** What is about to cross is read so many times a round at most. */
const RISING_READS_MAX = 64;
/**
 * A rise that nothing foretold may have begun a moment ago, and be steeper than it looks from one round to the next: a
 * second look after this part of a round tells.
 */
const SURPRISE_READS = 16;
/** Over less than this share of a round, a small change is noise: it bends the slope by a part alone. */
const SLOPE_SHARE = 0.5;
/** A change of this many times the usual one of a round is no noise. */
const UNUSUAL_DEVIATIONS = 3;
/**
 * One of so many is worth reads of its own. Where a round takes days, disks that fill and are cleaned by the week rise as
 * trouble does: what all nodes do must not take the reads of those that are in trouble.
 */
const ALARMING_DEVIATIONS = 8;
/** The usual change of a round is taken for this at least. */
const USUAL_CHANGE_MIN = 0.01;
/** Reads over which the usual change is learned, over all nodes: where all of them rise, as in the morning, none stands out. */
const USUAL_READS = 2_048;
/** The minimum counts for so many to begin with, for one fault among the first reads makes nothing usual. */
const USUAL_READS_MIN = 32;

/** A threshold; `sign`: 1 if trouble is above it, -1 if below. */
interface ThresholdLine {
  readonly value: number;
  readonly sign: 1 | -1;
}

/** Knows no node and no threshold. */
export function createUsageTrends(): UsageTrends {
  let readAt = new Float64Array(0);
  // By slot, a cell each usage. Slopes are a millisecond's; a surprise is the sign of a change that nothing foretold.
  let values = new Float32Array(0);
  let slopes = new Float32Array(0);
  let surprises = new Int8Array(0);
  const usualChanges = USAGES.map(() => ({ change: USUAL_CHANGE_MIN, reads: USUAL_READS_MIN }));
  let lines: readonly (readonly ThresholdLine[])[] = USAGES.map(() => []);

  const unusual = (usage: number): number =>
    UNUSUAL_DEVIATIONS * Math.max(USUAL_CHANGE_MIN, usualChanges[usage]!.change);

  const alarming = (usage: number): number => (ALARMING_DEVIATIONS / UNUSUAL_DEVIATIONS) * unusual(usage);

  function updateUsualChange(usage: number, change: number): void {
    const learned = usualChanges[usage]!;
    learned.reads = Math.min(USUAL_READS, learned.reads + 1);
    learned.change += (Math.abs(change) - learned.change) / learned.reads;
  }

  /** Moves a cell on by `elapsed`; NaN: nothing was known before. */
  function updateSlope(cell: number, usage: number, value: number, elapsed: DurationMs, roundMs: DurationMs): void {
    const change = value - values[cell]!;
    values[cell] = value;
    if (!Number.isFinite(elapsed) || !Number.isFinite(change)) {
      slopes[cell] = 0;
      surprises[cell] = 0;
      return;
    }
    // A second read of the same moment says nothing of slopes.
    if (elapsed <= 0) return;
    const known = slopes[cell]!;
    const unexpectedChange = change - known * elapsed;
    const isLarge = Math.abs(change) > unusual(usage);
    const isReported = isLarge || Math.abs(unexpectedChange) > unusual(usage);
    const weight = isReported ? 1 : Math.min(1, elapsed / (SLOPE_SHARE * roundMs));
    slopes[cell] = known + weight * (change / elapsed - known);
    const isSurprise =
      Math.abs(change) > alarming(usage) &&
      Math.abs(unexpectedChange) > unusual(usage) / 2 &&
      elapsed > (1.5 * roundMs) / SURPRISE_READS;
    surprises[cell] = isSurprise ? Math.sign(unexpectedChange) : 0;
    if (elapsed >= SLOPE_SHARE * roundMs) updateUsualChange(usage, change);
  }

  /** How often a round a cell is worth reading for the sake of a line. */
  function readsFor(
    cell: number,
    usage: number,
    line: ThresholdLine,
    roundMs: DurationMs,
  ): { rising: number; near: number } {
    const distance = line.sign * (line.value - values[cell]!);
    // Beyond the line a timer waits; where there is no value, nobody knows.
    if (!(distance >= 0)) return { rising: 0, near: 0 };
    const movement = line.sign * slopes[cell]! * roundMs;
    const lead = movement > alarming(usage) ? Math.min(RISING_READS_MAX, movement / (LEAD_SHARE * distance)) : 0;
    return {
      rising: line.sign === surprises[cell] ? SURPRISE_READS : lead,
      near: distance < NEAR_MARGIN ? Math.min(NEAR_READS_MAX, (READS_MIN * NEAR_MARGIN) / distance) : 0,
    };
  }

  return {
    recordReading(slot, reading, at, roundMs) {
      const cell = slot * USAGES.length;
      readAt = growColumn(readAt, slot, Number.NaN);
      values = growColumn(values, cell + USAGES.length);
      slopes = growColumn(slopes, cell + USAGES.length);
      surprises = growColumn(surprises, cell + USAGES.length);
      const elapsed = at - readAt[slot]!;
      readAt[slot] = at;
      USAGES.forEach((name, usage) => {
        updateSlope(cell + usage, usage, reading[name], elapsed, roundMs);
      });
    },
    forgetNode(slot) {
      if (slot < readAt.length) readAt[slot] = Number.NaN;
    },
    forgetAll: () => void readAt.fill(Number.NaN),
    setThresholds(thresholds) {
      lines = USAGES.map((name) =>
        thresholds
          .filter(({ usage }) => usage === name)
          .map(({ value, side }) => ({ value, sign: side === "above" ? 1 : -1 })),
      );
    },
    outlook(slot, roundMs) {
      if (Number.isNaN(readAt[slot] ?? Number.NaN)) return null;
      let rising = 0;
      let near = 0;
      lines.forEach((ofUsage, usage) => {
        for (const line of ofUsage) {
          const reads = readsFor(slot * USAGES.length + usage, usage, line, roundMs);
          rising = Math.max(rising, reads.rising);
          near = Math.max(near, reads.near);
        }
      });
      const reads = Math.max(rising, near);
      return reads < READS_MIN ? null : { kind: rising >= near ? "rising" : "near", afterMs: roundMs / reads };
    },
  };
}
