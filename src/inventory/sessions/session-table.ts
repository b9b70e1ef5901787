/**
 * What is remembered of each session between two walks, in columns under an open-addressing hash table: 55 to 110
 * bytes a session, where a Map of objects takes three times that. Sessions are known by 64 bits of hash, not by their
 * id: among a million of them the chance that any two share one is 1 in 37 million.
 */
export interface SessionTable {
  /** The row of the session, made if there was none (then {@link isNew} is true until the next call). */
  row(id: string): number;
  isNew(): boolean;
  /** Where the rows are now: a new row may move all of them to wider columns. */
  readonly columns: SessionColumns;
  readonly size: number;
  /** Drops every row for which `leaves` says so. It may read the columns, and must not call anything else here. */
  sweep(leaves: (row: number) => boolean): void;
}

/** What is remembered, by row. */
export interface SessionColumns {
  /** Bytes as last seen; NaN: never. */
  readonly sent: Float64Array;
  readonly received: Float64Array;
  /** As last stated; NaN: never. */
  readonly durationSeconds: Float64Array;
  /** Number of the walk that met the session last. */
  readonly walk: Uint32Array;
  /** Complete walks in a row that did not meet it. */
  readonly absences: Uint8Array;
  readonly type: Uint8Array;
  /** Number of the walk that first saw it ended; 0: none has. */
  readonly endedWalk: Uint32Array;
}

/** The columns with the hashes that the rows are found by; both 0: an empty row. */
interface Columns extends SessionColumns {
  readonly capacity: number;
  readonly low: Uint32Array;
  readonly high: Uint32Array;
}

const CAPACITY_MIN = 1_024;
/** Above this share of rows in use the table doubles: linear probing slows down from here. */
const LOAD_FACTOR_MAX = 0.7;
/** Below this share it halves after a sweep. */
const LOAD_FACTOR_MIN = 0.15;

/** An empty table. */
export function createSessionTable(): SessionTable {
  let columns = allocate(CAPACITY_MIN);
  let size = 0;
  let isNew = false;

  /** The row that holds the hash, or the empty one where it belongs. */
  function find(low: number, high: number): number {
    const mask = columns.capacity - 1;
    let row = low & mask;
    while ((columns.low[row] !== low || columns.high[row] !== high) && !isEmpty(columns, row)) row = (row + 1) & mask;
    return row;
  }

  function resize(capacity: number): void {
    const old = columns;
    columns = allocate(capacity);
    for (let row = 0; row < old.capacity; row++) {
      if (!isEmpty(old, row)) copyRow(old, row, columns, find(old.low[row]!, old.high[row]!));
    }
  }

  /** Empties a row and moves up those behind it that stand away from home, so that no gap cuts a probe short. */
  function remove(row: number): void {
    const mask = columns.capacity - 1;
    let gap = row;
    for (let next = (gap + 1) & mask; !isEmpty(columns, next); next = (next + 1) & mask) {
      const home = columns.low[next]! & mask;
      if (((next - home) & mask) < ((next - gap) & mask)) continue;
      copyRow(columns, next, columns, gap);
      gap = next;
    }
    columns.low[gap] = 0;
    columns.high[gap] = 0;
    size--;
  }

  return {
    row(id) {
      const [low, high] = hash(id);
      let row = find(low, high);
      isNew = isEmpty(columns, row);
      if (!isNew) return row;
      if (size + 1 > columns.capacity * LOAD_FACTOR_MAX) {
        resize(columns.capacity * 2);
        row = find(low, high);
      }
      size++;
      columns.low[row] = low;
      columns.high[row] = high;
      for (const name of factNames) columns[name][row] = 0;
      columns.sent[row] = Number.NaN;
      columns.received[row] = Number.NaN;
      columns.durationSeconds[row] = Number.NaN;
      return row;
    },
    isNew: () => isNew,
    get columns() {
      return columns;
    },
    get size() {
      return size;
    },
    sweep(leaves) {
      for (let row = 0; row < columns.capacity; row++) {
        // A removal may move another session into this very row: look again.
        while (!isEmpty(columns, row) && leaves(row)) remove(row);
      }
      while (columns.capacity > CAPACITY_MIN && size < columns.capacity * LOAD_FACTOR_MIN) resize(columns.capacity / 2);
    },
  };
}

const factNames = ["sent", "received", "durationSeconds", "walk", "absences", "type", "endedWalk"] as const;

const isEmpty = (columns: Columns, row: number): boolean => columns.low[row] === 0 && columns.high[row] === 0;

function copyRow(from: Columns, source: number, to: Columns, target: number): void {
  to.low[target] = from.low[source]!;
  to.high[target] = from.high[source]!;
  for (const name of factNames) to[name][target] = from[name][source]!;
}

const allocate = (capacity: number): Columns => ({
  capacity,
  low: new Uint32Array(capacity),
  high: new Uint32Array(capacity),
  sent: new Float64Array(capacity),
  received: new Float64Array(capacity),
  durationSeconds: new Float64Array(capacity),
  walk: new Uint32Array(capacity),
  absences: new Uint8Array(capacity),
  type: new Uint8Array(capacity),
  endedWalk: new Uint32Array(capacity),
});

/** Two runs of FNV-1a from different offsets, each mixed at the end (murmur3's finalizer); never both 0. */
function hash(id: string): readonly [number, number] {
  let low = 0x811c9dc5;
  let high = 0x9e3779b9;
  for (let index = 0; index < id.length; index++) {
    const code = id.charCodeAt(index);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code, 0x85ebca6b);
  }
  const mixed = mixBits(low);
  return [mixed, mixBits(high) || (mixed === 0 ? 1 : 0)];
}

function mixBits(value: number): number {
  value ^= value >>> 16;
  value = Math.imul(value, 0x85ebca6b);
  value ^= value >>> 13;
  value = Math.imul(value, 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
