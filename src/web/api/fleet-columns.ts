import type { NumberColumn } from "../../base/number-column.ts";
import { runAtOnce, type Steps } from "../../base/steps.ts";
import type { Location } from "../../model/snapshot.ts";
import { selectInSteps } from "../../policy/cel/fleet-aggregates.ts";

/** `GET /api/v1/fleet`: columns by slot. A slot whose id is "" is empty. */
export interface FleetDocument {
  readonly revision: number;
  readonly statuses: readonly string[];
  readonly marks: readonly string[];
  readonly locations: readonly Location[];
  readonly ids: readonly string[];
  readonly names: readonly string[];
  readonly location: readonly number[];
  /** One base-36 digit per slot, an index into `statuses`. */
  readonly status: string;
  /** One base-36 digit per slot, an index into `marks`. */
  readonly mark: string;
}

/** A node's slot, its status and its mark, the last two as indexes of NODE_STATUSES and NODE_MARKS. */
export type CellChange = readonly [slot: number, status: number, mark: number];

/** The changes between two revisions of the grid. */
export interface FleetGridChange {
  readonly from: number;
  readonly revision: number;
  /** Null if nodes were added, removed, renamed or moved, or too many changed. Then read the whole document again. */
  readonly cells: readonly CellChange[] | null;
}

/**
 * Returns a function whose steps are those of `derive`, and which caches the result by column. Deriving takes too long
 * for one slice, and successive snapshots share the columns that did not change.
 */
export function cacheStepsByColumn<Column extends object, T>(
  derive: (column: Column) => Steps<T>,
): (column: Column) => Steps<T> {
  const cache = new WeakMap<Column, { readonly value: T }>();
  return function* steps(column) {
    const cached = cache.get(column) ?? { value: yield* derive(column) };
    cache.set(column, cached);
    return cached.value;
  };
}

/** The known times of a column. */
interface TimeSummary {
  readonly count: number;
  /** The earliest, or NaN if none is known. */
  readonly earliest: number;
  /** The middle one, or the later of the two in the middle; NaN if none is known. */
  readonly median: number;
}

/** The steps that count the known times of a column, and find the earliest and the median. */
export const summarizeInSteps = cacheStepsByColumn(function* (column: NumberColumn): Steps<TimeSummary> {
  const times = column.toArray();
  yield;
  let count = 0;
  let earliest = Number.NaN;
  for (let index = 0; index < times.length; index++) {
    if (index % TIMES_PER_STEP === 0) yield;
    const at = times[index]!;
    if (Number.isNaN(at)) continue;
    times[count++] = at;
    if (!(earliest <= at)) earliest = at;
  }
  const median = count === 0 ? Number.NaN : yield* selectInSteps(times.subarray(0, count), count >> 1);
  return { count, earliest, median };
});

/** Times that are compared in one step, which takes a fraction of a millisecond. */
const TIMES_PER_STEP = 65_536;

/** Returns the number of known times in a column, the earliest and the median. They are computed once for each column. */
export const summarizeTimes = (column: NumberColumn): TimeSummary => runAtOnce(summarizeInSteps(column));

/** Slots that are sorted or merged in one step, which takes a fraction of a millisecond. */
const SLOTS_PER_STEP = 512;

/** The steps that sort the slots of nodes by their ids. */
export const slotsInOrder = cacheStepsByColumn(function* sortSlots(ids: readonly string[]): Steps<Uint32Array> {
  let slots = new Uint32Array(ids.length);
  let count = 0;
  for (const [slot, id] of ids.entries()) {
    if (id !== "") slots[count++] = slot;
    if (slot % SLOTS_PER_STEP === 0) yield;
  }
  slots = slots.subarray(0, count);
  for (let begin = 0; begin < slots.length; begin += SLOTS_PER_STEP) {
    slots.subarray(begin, begin + SLOTS_PER_STEP).sort((a, b) => (ids[a]! < ids[b]! ? -1 : 1));
    yield;
  }
  for (let length = SLOTS_PER_STEP; length < slots.length; length *= 2) slots = yield* mergeRuns(ids, slots, length);
  return slots;
});

/** Merges each pair of adjacent sorted runs of `length` slots. */
function* mergeRuns(ids: readonly string[], slots: Uint32Array, length: number): Steps<Uint32Array<ArrayBuffer>> {
  const merged = new Uint32Array(slots.length);
  for (let begin = 0; begin < slots.length; begin += 2 * length) {
    const middle = Math.min(begin + length, slots.length);
    const end = Math.min(middle + length, slots.length);
    let [left, right] = [begin, middle];
    for (let index = begin; index < end; index++) {
      const isLeft = right === end || (left < middle && ids[slots[left]!]! < ids[slots[right]!]!);
      merged[index] = slots[isLeft ? left++ : right++]!;
      if (index % SLOTS_PER_STEP === 0) yield;
    }
  }
  return merged;
}
