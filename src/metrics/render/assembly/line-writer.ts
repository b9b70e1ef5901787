// AssemblyScript (https://www.assemblyscript.org): TypeScript syntax with the types of WebAssembly. Compiled by
// `npm run wasm` into line-writer-binary.ts.

/** Whole numbers below this are written as digits; larger ones may need an exponent. */
const WHOLE_MAX: f64 = 1e15;
/** Values of at least this magnitude are not written with a fixed number of decimals, as in `valueText`. */
const FIXED_MAX: f64 = 1e11;
const GROUP_DIGITS: i32 = 4;
const GROUP: u32 = 10_000;
const TWO_GROUPS: u64 = 100_000_000;
const LINE_FEED: u8 = 10;
const POINT: u8 = 46;
const ZERO: u8 = 48;

/** First address that the caller may use. It is aligned for 64-bit values. */
export const FREE_MEMORY: usize = (__heap_base + 7) & ~7;

/** Writes the text of any value at `at`, and returns its end. */
declare function writeOther(at: usize, value: f64, decimals: i32): usize;

/** Returns how many of `count` 64-bit floats are not NaN. */
export function countNumbers(values: usize, count: u32): u32 {
  let numbers: u32 = 0;
  for (let index: u32 = 0; index < count; index++) numbers += u32(!F64.isNaN(load<f64>(values + 8 * index)));
  return numbers;
}

/**
 * Writes sample lines at `at`, `perNode` for each node from index `first` up to but not including `end`, and returns
 * their end. NaN leaves a line out.
 *
 * `values` is the address of 64-bit floats, grouped by node. `labels` and `format` are addresses of texts: a table with
 * the offset of each text from the address, and the offset of the end of the last one; then the texts in UTF-8. A line
 * is the first text of `format`, the label text of the node, the text of `format` whose index is the number of the line
 * within the node (from 1), the value with `decimals` as in `valueText`, and a line feed. Up to 15 bytes past the end
 * of each text are read, and up to 15 bytes past the end of the lines are written.
 */
export function writeLines(
  at: usize,
  first: u32,
  end: u32,
  perNode: u32,
  values: usize,
  labels: usize,
  format: usize,
  decimals: i32,
): usize {
  const head = format + load<u32>(format);
  const headLength = load<u32>(format, sizeof<u32>()) - load<u32>(format);
  for (let node = first; node < end; node++) {
    for (let line: u32 = 1; line <= perNode; line++) {
      const value = load<f64>(values);
      values += sizeof<f64>();
      if (F64.isNaN(value)) continue;
      at = copy(head, headLength, at);
      at = copyText(labels, node, at);
      at = copyText(format, line, at);
      at = writeValue(value, decimals, at);
      store<u8>(at++, LINE_FEED);
    }
  }
  return at;
}

/** Copies one of the texts. */
function copyText(texts: usize, index: u32, at: usize): usize {
  const entry = texts + sizeof<u32>() * index;
  const start = load<u32>(entry);
  return copy(texts + start, load<u32>(entry, sizeof<u32>()) - start, at);
}

/** Copies a text in steps of 16 bytes, which is faster than `memory.copy` for a few dozen bytes. */
function copy(from: usize, length: usize, to: usize): usize {
  for (let offset: usize = 0; offset < length; offset += 16) v128.store(to + offset, v128.load(from + offset));
  return to + length;
}

function writeValue(value: f64, decimals: i32, at: usize): usize {
  if (!(value >= 0 && value < WHOLE_MAX)) return writeOther(at, value, decimals);
  const whole = Math.floor(value);
  if (decimals > 0 && value < FIXED_MAX) {
    const scale: f64 = decimals === 1 ? 10 : decimals === 2 ? 100 : decimals === 3 ? 1_000 : 10_000;
    const scaled = nearest(value * scale);
    // Division rounds correctly: if the quotient equals the value, the decimal parses to the same number.
    if (scaled / scale === value) {
      const point = writeWhole(<u64>whole, at);
      store<u8>(point, POINT);
      writeGroup(<u32>((scaled - whole * scale) * (<f64>GROUP / scale)), point + 1);
      return point + 1 + decimals;
    }
  }
  return whole === value ? writeWhole(<u64>value, at) : writeOther(at, value, decimals);
}

/** Writes a whole number below {@link WHOLE_MAX}. */
function writeWhole(value: u64, at: usize): usize {
  // Most values are one digit.
  if (value < 10) {
    store<u8>(at, ZERO + <u8>value);
    return at + 1;
  }
  if (value < GROUP) return writeFirstGroup(<u32>value, at);
  if (value < TWO_GROUPS) {
    const high = <u32>value / GROUP;
    return writeGroup(<u32>value - high * GROUP, writeFirstGroup(high, at));
  }
  const high = value / TWO_GROUPS;
  const low = <u32>(value - high * TWO_GROUPS);
  return writeGroup(low % GROUP, writeGroup(low / GROUP, writeWhole(high, at)));
}

/** Writes a number below {@link GROUP} without leading zeros. */
function writeFirstGroup(value: u32, at: usize): usize {
  const zeros = value < 10 ? 3 : value < 100 ? 2 : value < 1_000 ? 1 : 0;
  store<u32>(at, digitsOf(value) >> (8 * zeros));
  return at + GROUP_DIGITS - zeros;
}

/** Writes a number below {@link GROUP} as four digits. */
function writeGroup(value: u32, at: usize): usize {
  store<u32>(at, digitsOf(value));
  return at + GROUP_DIGITS;
}

/** Returns the four ASCII digits of a number below {@link GROUP}, the first one in the lowest byte. */
function digitsOf(value: u32): u32 {
  const digits = (value / 1_000) | (((value / 100) % 10) << 8) | (((value / 10) % 10) << 16) | ((value % 10) << 24);
  return digits + 0x30_30_30_30;
}
