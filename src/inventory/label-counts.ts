import { type CappedFamily, LABEL_CAPS, type OnFolded, OTHER } from "../model/label-caps.ts";

/** Counts by the value of one label, with at most as many values as its family's cap, and `other` beside them. */
export interface LabelCounts {
  /** Begins a reading: every count is 0. */
  begin(): void;
  add(value: string, count: number): void;
  /** Ends a reading and returns its counts. A value that it did not meet gives up its place. */
  settle(): ReadonlyMap<string, number>;
}

/** Counts of nothing yet. `onFolded` is called at the end of each reading that counted records under `other`. */
export function createLabelCounts(family: CappedFamily, onFolded: OnFolded): LabelCounts {
  const { values: valuesMax } = LABEL_CAPS[family];
  /** The values that have a place: they keep it from reading to reading, in whatever order they come. */
  let placed = new Set<string>();
  let counts = new Map<string, number>();
  let folded = 0;

  /** The value, or `other` where it has no place. */
  function labelOf(value: string): string {
    if (placed.has(value) || value === OTHER) return value;
    if (placed.size < valuesMax) {
      placed.add(value);
      return value;
    }
    folded++;
    return OTHER;
  }

  function begin(): void {
    if (folded > 0) onFolded(family, folded);
    folded = 0;
    counts = new Map();
  }

  return {
    begin,
    add(value, count) {
      const label = counts.has(value) ? value : labelOf(value);
      counts.set(label, (counts.get(label) ?? 0) + count);
    },
    settle() {
      const settled = counts;
      placed = new Set([...settled.keys()].filter((value) => value !== OTHER));
      begin();
      return settled;
    },
  };
}
