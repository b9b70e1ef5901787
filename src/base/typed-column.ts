/** Numbers by slot. */
export type TypedColumn =
  | Float64Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint8Array<ArrayBuffer>;

/** Shortest column that is made; they double from there, so that growing costs a constant a slot. */
const LENGTH_MIN = 64;

/** The column with room for an index: itself, or a longer one that goes on with `empty`. */
export function growColumn<A extends TypedColumn>(column: A, index: number, empty = 0): A {
  if (index < column.length) return column;
  const make = column.constructor as new (length: number) => A;
  const longer = new make(Math.max(LENGTH_MIN, 2 * column.length, index + 1));
  longer.set(column);
  longer.fill(empty, column.length);
  return longer;
}
