import { type CappedFamily, LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../model/label-values.ts";

/** Counts by the value of one label, with at most as many values as its family's cap, and `other` beside them. */
export interface LabelCounts {
  /** Begins a reading: every count is 0. */
  begin(): void;
  add(value: string, count: number): void;
  /** Ends a reading and returns its counts. A value that it did not meet gives up its place. */
  finish(): ReadonlyMap<string, number>;
}

/** Counts of nothing yet. `onFolded` is called at the end of each reading that counted records under `other`. */
export function createLabelCounts(family: CappedFamily, onFolded: OnLabelsFolded): LabelCounts {
  const { values: valuesMax } = LABEL_CAPS[family];
  /** The values that have a place: they keep it from reading to reading, in whatever order they come. */
  let labels = new Set<string>();
  let counts = new Map<string, number>();
  let foldedCount = 0;

  /** The value, or `other` where it has no place. */
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
