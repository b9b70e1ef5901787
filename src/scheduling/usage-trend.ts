import type { DurationMs } from "../base/duration.ts";
import { growColumn } from "../base/typed-column.ts";
import { type Threshold, USAGES, type Usage } from "../model/policy/policy.ts";
import type { MonotonicMs } from "../model/time.ts";

/** Usages of a node in one detail, 0 to 1, or NaN if missing. */
export type UsageReading = Readonly<Record<Usage, number>>;

/**
 * Whether a usage is predicted to cross a threshold (`rising`) or is close to one (`near`), and when to read the node
 * again.
 */
export interface UsageOutlook {
  readonly kind: "rising" | "near";
  /** Time from the last read of the node to the next one. */
  readonly afterMs: DurationMs;
}

/** A usage is near a threshold if it is closer than this. */
const NEAR_MARGIN = 0.05;
/** Maximum reads per round of a node near a threshold; the minimum is {@link READS_MIN}. */
const NEAR_READS_MAX = 4;
/** Minimum reads per round of an outlook. With fewer, the regular turn comes soon enough. */
const READS_MIN = 2;
/**
 * The next read of a rising usage comes after this share of the time to the threshold, and the one after it after the
 * same share of the rest. This corrects errors of the prediction at the cost of a few reads per crossing.
 */
const LEAD_SHARE = 1 / 3;
/** Maximum reads per round of a rising usage. */
const RISING_READS_MAX = 64;
/**
 * Reads per round after an unexpected rise, which may have just begun and be steeper than the slope over a round. A
 * second read shows whether it is.
 */
const SURPRISE_READS = 16;
/** Over less than this share of a round, a small change is mostly noise and has less weight in the slope. */
const SLOPE_SHARE = 0.5;
/** A change by more than this many usual changes per round is not noise. */
const UNUSUAL_DEVIATIONS = 3;
/**
 * A change by this many usual changes is worth extra reads. If a round takes days, disks that fill and are cleaned
 * weekly rise like failing ones. Changes that all nodes share must not use up the reads for failing nodes.
 */
const ALARMING_DEVIATIONS = 8;
/** Minimum of the usual change per round. */
const USUAL_CHANGE_MIN = 0.01;
/** Number of reads, over all nodes, in the usual change. If all usages rise, as in the morning, none is unusual. */
const USUAL_READS = 2_048;
/** Number of reads that the minimum initially counts for, so that one fault among the first reads changes little. */
const USUAL_READS_MIN = 32;

/** A threshold of a usage. `sign` is 1 if a policy matches above it, -1 if below. */
interface ThresholdLine {
  readonly value: number;
  readonly sign: 1 | -1;
}

/** Trends of the usages of all nodes, to find those near a threshold or about to cross one. */
export class UsageTrends {
  #readAt = new Float64Array(0);
  // One cell per slot and usage. Slopes are per millisecond; a surprise is the sign of an unexpected change, or 0.
  #values = new Float32Array(0);
  #slopes = new Float32Array(0);
  #surprises = new Int8Array(0);
  readonly #usualChanges = USAGES.map(() => ({ change: USUAL_CHANGE_MIN, reads: USUAL_READS_MIN }));
  #lines: readonly (readonly ThresholdLine[])[] = USAGES.map(() => []);

  /** Records a detail. Changes are compared with the usual ones of a round. */
  recordReading(slot: number, reading: UsageReading, at: MonotonicMs, roundMs: DurationMs): void {
    const cell = slot * USAGES.length;
    this.#readAt = growColumn(this.#readAt, slot, Number.NaN);
    this.#values = growColumn(this.#values, cell + USAGES.length);
    this.#slopes = growColumn(this.#slopes, cell + USAGES.length);
    this.#surprises = growColumn(this.#surprises, cell + USAGES.length);
    const elapsed = at - this.#readAt[slot]!;
    this.#readAt[slot] = at;
    for (const [usage, name] of USAGES.entries()) {
      this.#updateSlope(cell + usage, usage, reading[name], elapsed, roundMs);
    }
  }

  /** Forgets a slot, which may be used for another node. */
  forgetNode(slot: number): void {
    if (slot < this.#readAt.length) this.#readAt[slot] = Number.NaN;
  }

  /** Forgets the usages of all nodes. */
  forgetAll(): void {
    this.#readAt.fill(Number.NaN);
  }

  setThresholds(thresholds: readonly Threshold[]): void {
    this.#lines = USAGES.map((name) =>
      thresholds
        .filter(({ usage }) => usage === name)
        .map(({ value, side }) => ({ value, sign: side === "above" ? 1 : -1 })),
    );
  }

  /** Returns when to read a slot before its turn, and why, or null if it is not read before its turn. */
  outlook(slot: number, roundMs: DurationMs): UsageOutlook | null {
    if (Number.isNaN(this.#readAt[slot] ?? Number.NaN)) return null;
    let rising = 0;
    let near = 0;
    for (const [usage, lines] of this.#lines.entries()) {
      for (const line of lines) {
        const reads = this.#readsFor(slot * USAGES.length + usage, usage, line, roundMs);
        rising = Math.max(rising, reads.rising);
        near = Math.max(near, reads.near);
      }
    }
    const reads = Math.max(rising, near);
    return reads < READS_MIN ? null : { kind: rising >= near ? "rising" : "near", afterMs: roundMs / reads };
  }

  #unusualChange(usage: number): number {
    return UNUSUAL_DEVIATIONS * Math.max(USUAL_CHANGE_MIN, this.#usualChanges[usage]!.change);
  }

  #alarmingChange(usage: number): number {
    return (ALARMING_DEVIATIONS / UNUSUAL_DEVIATIONS) * this.#unusualChange(usage);
  }

  /** Updates a cell with a value that was read `elapsed` after the last one, which is NaN if there was none. */
  #updateSlope(cell: number, usage: number, value: number, elapsed: DurationMs, roundMs: DurationMs): void {
    const change = value - this.#values[cell]!;
    this.#values[cell] = value;
    if (!Number.isFinite(elapsed) || !Number.isFinite(change)) {
      this.#slopes[cell] = 0;
      this.#surprises[cell] = 0;
      return;
    }
    // A second read at the same time says nothing about the slope.
    if (elapsed <= 0) return;
    const slope = this.#slopes[cell]!;
    const unexpectedChange = Math.abs(change - slope * elapsed);
    const unusualChange = this.#unusualChange(usage);
    const isUnusual = Math.abs(change) > unusualChange || unexpectedChange > unusualChange;
    const weight = isUnusual ? 1 : Math.min(1, elapsed / (SLOPE_SHARE * roundMs));
    this.#slopes[cell] = slope + weight * (change / elapsed - slope);
    const isSurprise =
      Math.abs(change) > this.#alarmingChange(usage) &&
      unexpectedChange > unusualChange / 2 &&
      elapsed > (1.5 * roundMs) / SURPRISE_READS;
    this.#surprises[cell] = isSurprise ? Math.sign(change - slope * elapsed) : 0;
    if (elapsed < SLOPE_SHARE * roundMs) return;
    const usual = this.#usualChanges[usage]!;
    usual.reads = Math.min(USUAL_READS, usual.reads + 1);
    usual.change += (Math.abs(change) - usual.change) / usual.reads;
  }

  /** Returns how many reads per round a cell is worth because of a threshold. */
  #readsFor(cell: number, usage: number, line: ThresholdLine, roundMs: DurationMs): { rising: number; near: number } {
    const distance = line.sign * (line.value - this.#values[cell]!);
    // Beyond the threshold the policy's timer requests reads. The distance is NaN if the value is missing.
    if (!(distance >= 0)) return { rising: 0, near: 0 };
    const movement = line.sign * this.#slopes[cell]! * roundMs;
    const isRising = movement > this.#alarmingChange(usage);
    const lead = isRising ? Math.min(RISING_READS_MAX, movement / (LEAD_SHARE * distance)) : 0;
    return {
      rising: line.sign === this.#surprises[cell] ? SURPRISE_READS : lead,
      near: distance < NEAR_MARGIN ? Math.min(NEAR_READS_MAX, (READS_MIN * NEAR_MARGIN) / distance) : 0,
    };
  }
}
