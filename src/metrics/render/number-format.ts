import { valueText } from "../text-format.ts";

/**
 * Writes sample values into a buffer in two steps: `measure` returns the length of the text, and `write` writes it once
 * its position is known. The text is that of {@link valueText}.
 */
export interface NumberWriter {
  /** Stores `value` under `index`, which is below the capacity. Returns the length of its text in bytes. */
  measure(index: number, value: number): number;
  /** Writes the text of the value stored under `index` so that it ends before offset `end`. */
  write(index: number, target: Uint8Array, end: number): void;
}

/** A decimal of 15 digits converts to a double and back unchanged, so it is also the shortest text of that double. */
const DECIMAL_MAX = 1e15;
/** Smaller numbers are written with an exponent. */
const DECIMAL_MIN = 1e-6;
/** Marks a value that is stored as text because it is negative, not finite, or has too many digits. */
const KEPT_AS_TEXT = 255;
const LOW_DIGITS = 8;
const LOW_FACTOR = 10 ** LOW_DIGITS;

/** Creates a writer for `capacity` values at a time. */
export function createNumberWriter(capacity: number): NumberWriter {
  const whole = new Float64Array(capacity);
  const fraction = new Int32Array(capacity);
  const decimals = new Uint8Array(capacity);
  const texts = new Array<string>(capacity).fill("");

  /**
   * Stores `value` if it has at most `places` decimals, and returns whether it has. `scale` is ten to the power of
   * `places`.
   */
  function measureDecimal(index: number, value: number, places: number, scale: number): boolean {
    const scaled = Math.round(value * scale);
    // Division rounds correctly: if the quotient equals the value, the decimal parses to the same number.
    if (scaled >= DECIMAL_MAX || scaled / scale !== value) return false;
    const integer = Math.floor(value);
    let rest = (scaled - integer * scale) | 0;
    while (rest % 10 === 0) {
      rest = (rest / 10) | 0;
      places--;
    }
    whole[index] = integer;
    fraction[index] = rest;
    decimals[index] = places;
    return true;
  }

  return {
    measure(index, value) {
      if (value >= 0 && value < DECIMAL_MAX) {
        const integer = Math.floor(value);
        if (integer === value) {
          whole[index] = integer;
          decimals[index] = 0;
          return countDigits(integer);
        }
        const decimalLength =
          value >= DECIMAL_MIN &&
          (value < 1e9
            ? measureDecimal(index, value, 6, 1e6) || measureDecimal(index, value, 9, 1e9)
            : measureDecimal(index, value, 3, 1e3));
        if (decimalLength) return countDigits(integer) + 1 + decimals[index]!;
      }
      const text = valueText(value);
      texts[index] = text;
      decimals[index] = KEPT_AS_TEXT;
      return text.length;
    },
    write(index, target, end) {
      const places = decimals[index]!;
      if (places === KEPT_AS_TEXT) return writeAscii(texts[index]!, target, end);
      if (places > 0) {
        writeDigits(fraction[index]!, places, target, end);
        end -= places + 1;
        target[end] = POINT;
      }
      let rest = whole[index]!;
      if (rest >= LOW_FACTOR) {
        const upper = Math.floor(rest / LOW_FACTOR);
        writeDigits(rest - upper * LOW_FACTOR, LOW_DIGITS, target, end);
        end -= LOW_DIGITS;
        rest = upper;
      }
      writeDigits(rest, countDigits(rest), target, end);
    },
  };
}

const ZERO = 48;
const POINT = 46;

/** Writes `count` digits of `value`, which is below 2^31, ending before offset `end`. */
function writeDigits(value: number, count: number, target: Uint8Array, end: number): void {
  let rest = value | 0;
  for (let at = end - 1; at >= end - count; at--) {
    const tenth = (rest / 10) | 0;
    target[at] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
}

function writeAscii(text: string, target: Uint8Array, end: number): void {
  const start = end - text.length;
  for (let index = 0; index < text.length; index++) target[start + index] = text.charCodeAt(index);
}

/** Returns the number of digits of a whole number below {@link DECIMAL_MAX}. */
function countDigits(value: number): number {
  if (value < 10) return 1;
  if (value < 100) return 2;
  if (value < 1_000) return 3;
  if (value < 10_000) return 4;
  let count = 5;
  for (let bound = 100_000; value >= bound; bound *= 10) count++;
  return count;
}
