import { eachInSteps, type Steps } from "../base/steps.ts";
import { growColumn } from "../base/typed-column.ts";
import { type CappedFamily, LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../model/label-values.ts";
import { IdIndex } from "./id-index.ts";

/**
 * Counts by the value of one label of a family, for at most as many values as the cap of the family, and `other`. Values
 * keep their row from one read to the next, regardless of the order of the records.
 */
export class LabelCounts {
  readonly #family: CappedFamily;
  readonly #onFolded: OnLabelsFolded;
  readonly #rows = new IdIndex();
  /** The value in each row, or null if the row is free, its count, and 1 if the current read has shown it. */
  readonly #values: (string | null)[] = [];
  readonly #freeRows: number[] = [];
  #counts = new Float64Array(0);
  #occurs = new Uint8Array(0);
  readonly #other = { count: 0, occurs: false };
  #foldedCount = 0;

  /** `onFolded` is called at the end of each read that counted records under `other`. */
  constructor(family: CappedFamily, onFolded: OnLabelsFolded) {
    this.#family = family;
    this.#onFolded = onFolded;
  }

  /** Begins a read: resets every count to 0. */
  begin(): void {
    if (this.#foldedCount > 0) this.#onFolded(this.#family, this.#foldedCount);
    this.#foldedCount = 0;
    this.#counts.fill(0);
    this.#occurs.fill(0);
    this.#other.count = 0;
    this.#other.occurs = false;
  }

  add(value: string, count: number): void {
    const known = this.#rows.find(value);
    const row = known >= 0 ? known : this.#addRow(value);
    if (row >= 0) {
      this.#counts[row]! += count;
      this.#occurs[row] = 1;
    } else {
      this.#other.count += count;
      this.#other.occurs = true;
    }
  }

  /**
   * Ends a read and returns its counts. A value that did not occur loses its place under the cap. Nothing may be added
   * until the last step has run.
   */
  *finish(): Steps<ReadonlyMap<string, number>> {
    const settled = new Map<string, number>();
    yield* eachInSteps(this.#values.entries(), ([row, value]) => {
      if (value === null) return;
      if (this.#occurs[row] === 1) settled.set(value, this.#counts[row]!);
      else {
        this.#rows.remove(row);
        this.#values[row] = null;
        this.#freeRows.push(row);
      }
    });
    if (this.#other.occurs) settled.set(OTHER_LABEL, this.#other.count);
    this.begin();
    return settled;
  }

  /**
   * Returns the row of a value that has none yet, or -1 if it is counted under `other`: the cap is reached, or it is
   * `other`.
   */
  #addRow(value: string): number {
    if (value === OTHER_LABEL) return -1;
    if (this.#rows.size >= LABEL_CAPS[this.#family].values) {
      this.#foldedCount++;
      return -1;
    }
    const row = this.#rows.findOrAdd(value, this.#freeRows.pop() ?? this.#values.length);
    this.#values[row] = value;
    this.#counts = growColumn(this.#counts, row);
    this.#occurs = growColumn(this.#occurs, row);
    return row;
  }
}
