import { type CappedFamily, LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../model/label-values.ts";

/** A value with a count of its own. */
interface LabelCount {
  count: number;
  /** Whether the current read has shown the value. */
  occurs: boolean;
}

/**
 * Creates counts by the value of one label of a family, for at most as many values as the cap of the family, and
 * `other`. `onFolded` is called at the end of each read that counted records under `other`.
 */
export function createLabelCounts(family: CappedFamily, onFolded: OnLabelsFolded) {
  const { values: valuesMax } = LABEL_CAPS[family];
  /** Values keep their count from one read to the next, regardless of the order of the records. */
  const counts = new Map<string, LabelCount>();
  const other: LabelCount = { count: 0, occurs: false };
  let foldedCount = 0;

  /** Returns the count of a value that has none yet. It is that of `other` if the cap is reached. */
  function newCount(value: string): LabelCount {
    if (value === OTHER_LABEL) return other;
    if (counts.size >= valuesMax) {
      foldedCount++;
      return other;
    }
    const added = { count: 0, occurs: false };
    counts.set(value, added);
    return added;
  }

  /** Begins a read: resets every count to 0. */
  function begin(): void {
    if (foldedCount > 0) onFolded(family, foldedCount);
    foldedCount = 0;
    for (const each of [other, ...counts.values()]) {
      each.count = 0;
      each.occurs = false;
    }
  }

  return {
    begin,
    add(value: string, count: number): void {
      const label = counts.get(value) ?? newCount(value);
      label.count += count;
      label.occurs = true;
    },
    /** Ends a read and returns its counts. A value that did not occur loses its place under the cap. */
    finish(): ReadonlyMap<string, number> {
      const settled = new Map<string, number>();
      for (const [value, { count, occurs }] of counts) {
        if (occurs) settled.set(value, count);
        else counts.delete(value);
      }
      if (other.occurs) settled.set(OTHER_LABEL, other.count);
      begin();
      return settled;
    },
  };
}
