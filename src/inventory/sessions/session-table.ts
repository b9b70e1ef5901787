/** What is stored about each session, by row. */
interface SessionColumns {
  /** Bytes as last reported, or NaN if they never were. */
  readonly sent: Float64Array;
  readonly received: Float64Array;
  /** Duration as last reported, or NaN if it never was. Whole seconds are exact up to half a year, fractions to seven digits. */
  readonly durationSeconds: Float32Array;
  /** Number of the last walk that showed the session. */
  readonly walk: Uint32Array;
  /** Complete walks in a row that did not show it. */
  readonly absences: Uint8Array;
  readonly type: Uint8Array;
  /** Number of the first walk that showed that it had ended, or 0 if there is none. */
  readonly endedWalk: Uint32Array;
}

/** The columns, and the hash of each session's id. */
interface HashedColumns extends SessionColumns {
  readonly low: Uint32Array;
  readonly high: Uint32Array;
}

const ROWS_MIN = 1_024;
/** Columns grow by this factor, which wastes less memory than doubling. A large table hardly ever grows. */
const GROWTH = 1.25;
/** Columns shrink if a sweep leaves less than this share of their rows. */
const ROWS_USED_MIN = 0.5;
/** The index doubles above this share of used entries, because linear probing slows down there. */
const LOAD_FACTOR_MAX = 0.7;
/** Rows that a sweep checks in one step, in about a millisecond. */
const ROWS_PER_STEP = 16_384;
/** The index halves if a sweep leaves less than this share. */
const LOAD_FACTOR_MIN = 0.15;

/**
 * Stores a few numbers per session between walks, in columns without gaps and an open-addressing hash index. It takes
 * 44 to 103 bytes per session, much less than a Map of objects. New sessions get the next rows, so a walk in the usual
 * order reads memory in order. Sessions are identified by a 64-bit hash of their id. Among a million sessions, the
 * probability of a collision is 1 in 37 million.
 */
export class SessionTable {
  #columns = allocate(ROWS_MIN);
  /** The row plus 1 for each entry of the hash index, or 0 if it is empty. Its length is a power of 2. */
  #index = new Uint32Array(ROWS_MIN * 2);
  #size = 0;
  #isNew = false;

  /** The current columns. They are replaced when the table grows or shrinks. */
  get columns(): SessionColumns {
    return this.#columns;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether the last call of {@link row} added the session. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** Returns the row of the session, and adds one if there is none. */
  row(id: string): number {
    const [low, high] = hash(id);
    const known = this.#index[this.#find(low, high)]!;
    this.#isNew = known === 0;
    return known === 0 ? this.#add(low, high) : known - 1;
  }

  /**
   * Removes every row for which `isOver` returns true. `isOver` may read the columns. Yields after every few thousand
   * rows. No row may be added before it is done.
   */
  *sweep(isOver: (row: number) => boolean): Generator<void, void> {
    // From the end, because a removal moves the last row, which has been checked by then.
    for (let row = this.#size - 1; row >= 0; row--) {
      if (isOver(row)) this.#remove(row);
      if (row % ROWS_PER_STEP === 0) yield;
    }
    if (this.#columns.low.length > ROWS_MIN && this.#size < this.#columns.low.length * ROWS_USED_MIN) {
      this.#resizeColumns(Math.max(ROWS_MIN, Math.ceil(this.#size * GROWTH)));
    }
    let entries = this.#index.length;
    while (entries > ROWS_MIN * 2 && this.#size < entries * LOAD_FACTOR_MIN) entries /= 2;
    if (entries < this.#index.length) this.#rebuildIndex(entries);
  }

  #add(low: number, high: number): number {
    const row = this.#size++;
    if (row >= this.#columns.low.length) this.#resizeColumns(Math.ceil(this.#columns.low.length * GROWTH));
    if (this.#size > this.#index.length * LOAD_FACTOR_MAX) this.#rebuildIndex(this.#index.length * 2);
    const columns = this.#columns;
    this.#index[this.#find(low, high)] = row + 1;
    columns.low[row] = low;
    columns.high[row] = high;
    columns.sent[row] = Number.NaN;
    columns.received[row] = Number.NaN;
    columns.durationSeconds[row] = Number.NaN;
    columns.walk[row] = 0;
    columns.absences[row] = 0;
    columns.type[row] = 0;
    columns.endedWalk[row] = 0;
    return row;
  }

  /** Returns the entry of the row with this hash, or the empty entry where it belongs. */
  #find(low: number, high: number): number {
    const index = this.#index;
    const columns = this.#columns;
    const mask = index.length - 1;
    let entry = low & mask;
    for (let row = index[entry]! - 1; row >= 0; row = index[entry]! - 1) {
      if (columns.low[row] === low && columns.high[row] === high) break;
      entry = (entry + 1) & mask;
    }
    return entry;
  }

  #resizeColumns(rows: number): void {
    const old = this.#columns;
    this.#columns = allocate(rows);
    for (const name of columnNames) this.#columns[name].set(old[name].subarray(0, Math.min(rows, this.#size)));
  }

  #rebuildIndex(entries: number): void {
    const { low } = this.#columns;
    const index = new Uint32Array(entries);
    // The last row may be new, and is entered by the caller.
    for (const each of this.#index) {
      if (each === 0) continue;
      let entry = low[each - 1]! & (entries - 1);
      while (index[entry] !== 0) entry = (entry + 1) & (entries - 1);
      index[entry] = each;
    }
    this.#index = index;
  }

  /** Removes a row, and moves the last one into its place. */
  #remove(row: number): void {
    const columns = this.#columns;
    this.#removeEntry(this.#find(columns.low[row]!, columns.high[row]!));
    const last = --this.#size;
    if (row === last) return;
    this.#index[this.#find(columns.low[last]!, columns.high[last]!)] = row + 1;
    columns.low[row] = columns.low[last]!;
    columns.high[row] = columns.high[last]!;
    columns.sent[row] = columns.sent[last]!;
    columns.received[row] = columns.received[last]!;
    columns.durationSeconds[row] = columns.durationSeconds[last]!;
    columns.walk[row] = columns.walk[last]!;
    columns.absences[row] = columns.absences[last]!;
    columns.type[row] = columns.type[last]!;
    columns.endedWalk[row] = columns.endedWalk[last]!;
  }

  /** Empties an entry, and moves displaced entries after it so that probing does not stop at the gap. */
  #removeEntry(entry: number): void {
    const index = this.#index;
    const { low } = this.#columns;
    const mask = index.length - 1;
    let gap = entry;
    for (let next = (gap + 1) & mask; index[next] !== 0; next = (next + 1) & mask) {
      const home = low[index[next]! - 1]! & mask;
      if (((next - home) & mask) < ((next - gap) & mask)) continue;
      index[gap] = index[next]!;
      gap = next;
    }
    index[gap] = 0;
  }
}

const allocate = (rows: number): HashedColumns => ({
  low: new Uint32Array(rows),
  high: new Uint32Array(rows),
  sent: new Float64Array(rows),
  received: new Float64Array(rows),
  durationSeconds: new Float32Array(rows),
  walk: new Uint32Array(rows),
  absences: new Uint8Array(rows),
  type: new Uint8Array(rows),
  endedWalk: new Uint32Array(rows),
});

const columnNames = Object.keys(allocate(0)) as readonly (keyof HashedColumns)[];

/** Two FNV-1a hashes with different offsets, each mixed by murmur3's finalizer. */
function hash(id: string): readonly [number, number] {
  let low = 0x811c9dc5;
  let high = 0x9e3779b9;
  for (let index = 0; index < id.length; index++) {
    const code = id.charCodeAt(index);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code, 0x85ebca6b);
  }
  return [mixBits(low), mixBits(high)];
}

function mixBits(value: number): number {
  value ^= value >>> 16;
  value = Math.imul(value, 0x85ebca6b);
  value ^= value >>> 13;
  value = Math.imul(value, 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
