import { eachInSteps, type Steps } from "../base/steps.ts";
import { growColumn } from "../base/typed-column.ts";
import { type CappedFamily, LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../model/label-values.ts";
import { IdIndex } from "./id-index.ts";

/**
 * Creates counts by the value of one label of a family, for at most as many values as the cap of the family, and
 * `other`. `onFolded` is called at the end of each read that counted records under `other`.
 */
export function createLabelCounts(family: CappedFamily, onFolded: OnLabelsFolded) {
  const { values: valuesMax } = LABEL_CAPS[family];
  /** Values keep their row from one read to the next, regardless of the order of the records. */
  const rows = new IdIndex();
  /** The value in each row, or null if the row is free, its count, and 1 if the current read has shown it. */
  const values: (string | null)[] = [];
  const freeRows: number[] = [];
  let counts = new Float64Array(0);
  let occurs = new Uint8Array(0);
  const other = { count: 0, occurs: false };
  let foldedCount = 0;

  /**
   * Returns the row of a value that has none yet, or -1 if it is counted under `other`: the cap is reached, or it is
   * `other`.
   */
  function addRow(value: string): number {
    if (value === OTHER_LABEL) return -1;
    if (rows.size >= valuesMax) {
      foldedCount++;
      return -1;
    }
    const row = rows.findOrAdd(value, freeRows.pop() ?? values.length);
    values[row] = value;
    counts = growColumn(counts, row);
    occurs = growColumn(occurs, row);
    return row;
  }

  /** Begins a read: resets every count to 0. */
  function begin(): void {
    if (foldedCount > 0) onFolded(family, foldedCount);
    foldedCount = 0;
    counts.fill(0);
    occurs.fill(0);
    other.count = 0;
    other.occurs = false;
  }

  return {
    begin,
    add(value: string, count: number): void {
      const known = rows.find(value);
      const row = known >= 0 ? known : addRow(value);
      if (row >= 0) {
        counts[row]! += count;
        occurs[row] = 1;
      } else {
        other.count += count;
        other.occurs = true;
      }
    },
    /**
     * Ends a read and returns its counts. A value that did not occur loses its place under the cap. Nothing may be added
     * until the last step has run.
     */
    *finish(): Steps<ReadonlyMap<string, number>> {
      const settled = new Map<string, number>();
      yield* eachInSteps(values.entries(), ([row, value]) => {
        if (value === null) return;
        if (occurs[row] === 1) settled.set(value, counts[row]!);
        else {
          rows.remove(row);
          values[row] = null;
          freeRows.push(row);
        }
      });
      if (other.occurs) settled.set(OTHER_LABEL, other.count);
      begin();
      return settled;
    },
  };
}
