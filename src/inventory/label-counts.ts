import { type CappedFamily, LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../model/label-values.ts";

/** Counts by the value of one label, for at most as many values as the cap of the family, and `other`. */
interface LabelCounts {
  /** Begins a read: resets every count to 0. */
  begin(): void;
  add(value: string, count: number): void;
  /** Ends a read and returns its counts. A value that did not occur loses its place under the cap. */
  finish(): ReadonlyMap<string, number>;
}

/** Creates counts for a family. `onFolded` is called at the end of each read that counted records under `other`. */
export function createLabelCounts(family: CappedFamily, onFolded: OnLabelsFolded): LabelCounts {
  const { values: valuesMax } = LABEL_CAPS[family];
  /**
   * Values with a count of their own. They keep it from one read to the next, regardless of the order of the records.
   */
  let labels = new Set<string>();
  let counts = new Map<string, number>();
  let foldedCount = 0;

  /** Returns the value, or `other` if the cap is reached. */
  function labelOf(value: string): string {
    if (labels.has(value) || value === OTHER_LABEL) return value;
    if (labels.size < valuesMax) {
      labels.add(value);
      return value;
    }
    foldedCount++;
    return OTHER_LABEL;
  }

  function begin(): void {
    if (foldedCount > 0) onFolded(family, foldedCount);
    foldedCount = 0;
    counts = new Map();
  }

  return {
    begin,
    add(value, count) {
      const label = counts.has(value) ? value : labelOf(value);
      counts.set(label, (counts.get(label) ?? 0) + count);
    },
    finish() {
      const settled = counts;
      labels = new Set([...settled.keys()].filter((value) => value !== OTHER_LABEL));
      begin();
      return settled;
    },
  };
}
