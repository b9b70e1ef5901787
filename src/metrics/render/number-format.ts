import { valueText } from "../text-format.ts";

/**
 * Sample values on their way into a buffer: taken first, which tells how long their text is, written later, when it is
 * known where. The text is that of {@link valueText}.
 */
export interface NumberWriter {
  /** Takes `value` as number `index`, which is under the capacity, and gives the length of its text in bytes. */
  measure(index: number, value: number): number;
  /** Writes the text of number `index` so that it ends just before `end`. */
  write(index: number, target: Uint8Array, end: number): void;
}

/** Any decimal of 15 digits survives the way through a double, so it is also the shortest text of that double. */
const DECIMAL_MAX = 1e15;
/** Below it, numbers are written with an exponent. */
const DECIMAL_MIN = 1e-6;
/** Marks a number kept as text: negative, not finite, or of more digits than a decimal here has. */
const KEPT_AS_TEXT = 255;
const LOW_DIGITS = 8;
const LOW_FACTOR = 10 ** LOW_DIGITS;

/** Room for `capacity` values at a time. */
export function createNumberWriter(capacity: number): NumberWriter {
  const whole = new Float64Array(capacity);
  const fraction = new Int32Array(capacity);
  const decimals = new Uint8Array(capacity);
  const texts = new Array<string>(capacity).fill("");

  /** True if `value` has at most `places` decimals; then it is taken. `scale` is ten to the power of `places`. */
  function measureDecimal(index: number, value: number, places: number, scale: number): boolean {
    const scaled = Math.round(value * scale);
    // A quotient of two exact numbers is correctly rounded: equal means that the decimal reads back as the same number.
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
          (measureDecimal(index, value, 3, 1e3) ||
            measureDecimal(index, value, 6, 1e6) ||
            measureDecimal(index, value, 9, 1e9));
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

/** Writes `count` digits of `value`, which is under 2^31, ending before `end`. */
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

/** Digits of a whole number under {@link DECIMAL_MAX}. */
function countDigits(value: number): number {
  if (value < 10) return 1;
  if (value < 100) return 2;
  if (value < 1_000) return 3;
  if (value < 10_000) return 4;
  let count = 5;
  for (let bound = 100_000; value >= bound; bound *= 10) count++;
  return count;
}
