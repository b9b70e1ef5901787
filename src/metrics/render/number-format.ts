import { FIXED_MAX, valueText } from "../text-format.ts";

/** Maximum length of the text of a value in bytes. {@link writeValue} may write up to three bytes past the text. */
export const VALUE_BYTES_MAX = 26;
/** Whole numbers below this are written as digits; larger ones may need an exponent. */
const WHOLE_MAX = 1e15;
const POWERS_OF_TEN = [1, 10, 100, 1e3, 1e4];
const GROUP_DIGITS = 4;
const GROUP = 10 ** GROUP_DIGITS;
const TWO_GROUPS = GROUP * GROUP;
/** The texts of 0000 to 9999. */
const GROUP_TEXTS = createGroupTexts();
const POINT = 46;

function createGroupTexts(): Int32Array {
  const texts = Buffer.from(
    Array.from({ length: GROUP }, (_, value) => String(value).padStart(GROUP_DIGITS, "0")).join(""),
  );
  return Int32Array.from({ length: GROUP }, (_, value) => texts.readInt32BE(value * GROUP_DIGITS));
}

/** Writes the {@link valueText} of a value at offset `at`, and returns the offset of its end. */
export function writeValue(target: DataView, at: number, value: number, decimals: number): number {
  if (value >= 0 && value < WHOLE_MAX) {
    const whole = Math.floor(value);
    if (decimals > 0 && value < FIXED_MAX) {
      const scale = POWERS_OF_TEN[decimals]!;
      const scaled = Math.round(value * scale);
      // Division rounds correctly: if the quotient equals the value, the decimal parses to the same number.
      if (scaled / scale === value) {
        const point = writeWhole(target, at, whole);
        target.setUint8(point, POINT);
        target.setInt32(point + 1, GROUP_TEXTS[(scaled - whole * scale) * POWERS_OF_TEN[GROUP_DIGITS - decimals]!]!);
        return point + 1 + decimals;
      }
    }
    if (whole === value) return writeWhole(target, at, value);
  }
  // For a value that is not negative, the fixed number of decimals was already tried above.
  return writeText(target, at, valueText(value, value < 0 ? decimals : 0));
}

/** Writes a whole number below {@link WHOLE_MAX}. */
function writeWhole(target: DataView, at: number, value: number): number {
  if (value < GROUP) return writeGroup(target, at, value | 0);
  if (value < TWO_GROUPS) {
    const high = (value / GROUP) | 0;
    const end = writeGroup(target, at, high);
    target.setInt32(end, GROUP_TEXTS[value - high * GROUP]!);
    return end + GROUP_DIGITS;
  }
  const high = Math.floor(value / TWO_GROUPS);
  const low = (value - high * TWO_GROUPS) | 0;
  const middle = (low / GROUP) | 0;
  const end = writeWhole(target, at, high);
  target.setInt32(end, GROUP_TEXTS[middle]!);
  target.setInt32(end + GROUP_DIGITS, GROUP_TEXTS[low - middle * GROUP]!);
  return end + 2 * GROUP_DIGITS;
}

/** Writes a whole number below {@link GROUP} without leading zeros. */
function writeGroup(target: DataView, at: number, value: number): number {
  const zeros = value < 10 ? 3 : value < 100 ? 2 : value < 1_000 ? 1 : 0;
  target.setInt32(at, GROUP_TEXTS[value]! << (8 * zeros));
  return at + GROUP_DIGITS - zeros;
}

function writeText(target: DataView, at: number, text: string): number {
  for (let index = 0; index < text.length; index++) target.setUint8(at + index, text.charCodeAt(index));
  return at + text.length;
}
