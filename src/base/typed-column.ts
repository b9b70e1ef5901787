/** Numbers indexed by slot. */
export type TypedColumn =
  | Float64Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>;

/** Shortest column. */
const LENGTH_MIN = 64;
/** Columns grow by this factor. It wastes less memory than doubling, and a slot still costs amortized constant time. */
const GROWTH = 1.25;

/** Returns the column if it has room for `index`, or a longer copy whose new slots hold `empty`. */
export function growColumn<A extends TypedColumn>(column: A, index: number, empty = 0): A {
  if (index < column.length) return column;
  const make = column.constructor as new (length: number) => A;
  const longer = new make(Math.max(LENGTH_MIN, Math.ceil(GROWTH * column.length), index + 1));
  longer.set(column);
  longer.fill(empty, column.length);
  return longer;
}

/** A set of slots that takes a byte per slot. A Set of a hundred thousand slots takes 2.6 MB. */
export class SlotSet {
  #isIn = new Uint8Array(0);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(slot: number): void {
    if (this.#isIn[slot] === 1) return;
    this.#isIn = growColumn(this.#isIn, slot);
    this.#isIn[slot] = 1;
    this.#size++;
  }

  delete(slot: number): void {
    if (this.#isIn[slot] !== 1) return;
    this.#isIn[slot] = 0;
    this.#size--;
  }
}
