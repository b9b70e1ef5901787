import { FIXED_MAX, valueText } from "../text-format.ts";

/**
 * Writes sample values into a buffer in two steps: `measure` returns the length of the text, and `write` writes it once
 * its position is known. The text is that of {@link valueText}.
 */
export interface NumberWriter {
  /** Keeps `value` for {@link write}, and returns the length of its text in bytes. */
  measure(value: number, decimals: number): number;
  /** Writes the text of the value measured last so that it ends before offset `end`. */
  write(target: Uint8Array, end: number): void;
}

/** A decimal of 15 digits converts to a double and back unchanged, so it is also the shortest text of that double. */
const DECIMAL_MAX = 1e15;
/** Smaller numbers are written with an exponent. */
const DECIMAL_MIN = 1e-6;
/** Marks a value that is stored as text because it is negative, not finite, needs an exponent, or has too many digits. */
const KEPT_AS_TEXT = 255;
const POWERS_OF_TEN = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const LOW_DIGITS = 8;
const LOW_FACTOR = 10 ** LOW_DIGITS;

/** Creates a writer. */
export function createNumberWriter(): NumberWriter {
  // A double in a closure's variable would be allocated anew for each value.
  const whole = new Float64Array(1);
  let fraction = 0;
  let places = 0;
  let text = "";

  /**
   * Keeps `value` if it has at most `placesMax` decimals, and returns whether it does. Zeros at the end that exceed
   * `placesMin` decimals are left out.
   */
  function measureDecimal(value: number, placesMax: number, placesMin: number): boolean {
    const scale = POWERS_OF_TEN[placesMax]!;
    const scaled = Math.round(value * scale);
    // Division rounds correctly: if the quotient equals the value, the decimal parses to the same number.
    if (scaled >= DECIMAL_MAX || scaled / scale !== value) return false;
    const integer = Math.floor(value);
    let rest = (scaled - integer * scale) | 0;
    places = placesMax;
    while (places > placesMin && rest % 10 === 0) {
      rest = (rest / 10) | 0;
      places--;
    }
    whole[0] = integer;
    fraction = rest;
    return true;
  }

  return {
    measure(value, decimals) {
      if (value >= 0 && value < DECIMAL_MAX) {
        const integer = Math.floor(value);
        if (decimals > 0 && value < FIXED_MAX && measureDecimal(value, decimals, decimals))
          return countDigits(integer) + 1 + decimals;
        if (integer === value) {
          whole[0] = integer;
          places = 0;
          return countDigits(integer);
        }
        const isDecimal =
          value >= DECIMAL_MIN &&
          (value < 1e9 ? measureDecimal(value, 6, 0) || measureDecimal(value, 9, 0) : measureDecimal(value, 3, 0));
        if (isDecimal) return countDigits(integer) + 1 + places;
      }
      // For a value that is not negative, the fixed number of decimals was already tried above.
      text = valueText(value, value < 0 ? decimals : 0);
      places = KEPT_AS_TEXT;
      return text.length;
    },
    write(target, end) {
      if (places === KEPT_AS_TEXT) return writeAscii(text, target, end);
      if (places > 0) {
        writeDigits(fraction, places, target, end);
        end -= places + 1;
        target[end] = POINT;
      }
      let rest = whole[0]!;
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
