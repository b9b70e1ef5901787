import type { Steps } from "../../base/steps.ts";
import { IdIndex } from "../id-index.ts";

const ROWS_MIN = 1_024;
/** Columns grow by this factor, which wastes less memory than doubling. A large table hardly ever grows. */
const GROWTH = 1.25;
/** Columns shrink if less than this share of their rows is in use after a sweep. */
const ROWS_USED_MIN = 0.5;
/** Rows that a sweep checks in one step, in about a millisecond. */
const ROWS_PER_STEP = 16_384;

/**
 * Stores a few numbers per session between walks, in columns without gaps. With the index it takes 44 to 103 bytes per
 * session, much less than a Map of objects. New sessions get the next rows, so a walk in the usual order reads memory in
 * order.
 */
export class SessionTable {
  #columns = allocate(ROWS_MIN);
  readonly #index = new IdIndex();
  #isNew = false;

  /** The current columns. They are replaced when the table grows or shrinks. */
  get columns(): SessionColumns {
    return this.#columns;
  }

  get size(): number {
    return this.#index.size;
  }

  /** Whether the last call of {@link row} added the session. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** Returns the row of the session, and adds one if there is none. */
  row(id: string): number {
    const { size } = this;
    const row = this.#index.findOrAdd(id, size);
    this.#isNew = row === size;
    if (this.#isNew) this.#clear(row);
    return row;
  }

  /**
   * Removes every row for which `isOver` returns true. `isOver` may read the columns. Yields after every few thousand
   * rows. No row may be added until the last step has run.
   */
  *sweep(isOver: (row: number) => boolean): Steps<void> {
    // From the end, because a removal moves the last row, which has been checked by then.
    for (let row = this.size - 1; row >= 0; row--) {
      if (isOver(row)) this.#remove(row);
      if (row % ROWS_PER_STEP === 0) yield;
    }
    const { length } = this.#columns.walk;
    if (length > ROWS_MIN && this.size < length * ROWS_USED_MIN) {
      this.#resizeColumns(Math.max(ROWS_MIN, Math.ceil(this.size * GROWTH)));
      this.#index.shrink(this.#columns.walk.length);
    }
  }

  /** Sets the numbers of a new row to those of an unknown session, after growing the columns if they have no room. */
  #clear(row: number): void {
    const { length } = this.#columns.walk;
    if (row >= length) this.#resizeColumns(Math.ceil(length * GROWTH));
    const columns = this.#columns;
    columns.sent[row] = Number.NaN;
    columns.received[row] = Number.NaN;
    columns.durationSeconds[row] = Number.NaN;
    columns.walk[row] = 0;
    columns.absences[row] = 0;
    columns.type[row] = 0;
    columns.endedWalk[row] = 0;
  }

  #resizeColumns(rows: number): void {
    const old = this.#columns;
    this.#columns = allocate(rows);
    for (const name of columnNames) this.#columns[name].set(old[name].subarray(0, rows));
  }

  /** Removes a row, and moves the last one into its place. */
  #remove(row: number): void {
    this.#index.remove(row);
    const last = this.size;
    if (row === last) return;
    this.#index.move(last, row);
    const columns = this.#columns;
    columns.sent[row] = columns.sent[last]!;
    columns.received[row] = columns.received[last]!;
    columns.durationSeconds[row] = columns.durationSeconds[last]!;
    columns.walk[row] = columns.walk[last]!;
    columns.absences[row] = columns.absences[last]!;
    columns.type[row] = columns.type[last]!;
    columns.endedWalk[row] = columns.endedWalk[last]!;
  }
}

/** Creates the columns with what is stored about each session, by row. */
const allocate = (rows: number) => ({
  /** Bytes as last reported, or NaN if they never were. */
  sent: new Float64Array(rows),
  received: new Float64Array(rows),
  /** Duration as last reported, or NaN if it never was. Whole seconds are exact up to half a year, fractions to seven digits. */
  durationSeconds: new Float32Array(rows),
  /** Number of the last walk that showed the session. */
  walk: new Uint32Array(rows),
  /** Complete walks in a row that did not show it. */
  absences: new Uint8Array(rows),
  type: new Uint8Array(rows),
  /** Number of the first walk that showed that it had ended, or 0 if there is none. */
  endedWalk: new Uint32Array(rows),
});

type SessionColumns = Readonly<ReturnType<typeof allocate>>;

const columnNames = Object.keys(allocate(0)) as readonly (keyof SessionColumns)[];
