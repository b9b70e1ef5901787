/** CRC-32's polynomial as gzip has it: bits reflected, the highest power left out (RFC 1952, section 8). */
const POLYNOMIAL = 0xed_b8_83_20;
/** The polynomial 1, reflected. */
const POLYNOMIAL_ONE = 0x80_00_00_00;
const LENGTH_BITS_MAX = 32;

/** Product of two polynomials modulo CRC-32's. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 31; bit >= 0; bit--) {
    if ((a >>> bit) & 1) product ^= b;
    b = b & 1 ? (b >>> 1) ^ POLYNOMIAL : b >>> 1;
  }
  return product >>> 0;
}

/** x to the powers 8 times 1, 2, 4, 8 …: the effect of that many zero bytes on a checksum. */
const BYTE_SHIFTS = powersOfByte();

function powersOfByte(): readonly number[] {
  // Reflected: x to the power of n is n bits right of 1.
  const powers = [POLYNOMIAL_ONE >>> 8];
  while (powers.length < LENGTH_BITS_MAX) powers.push(multiply(powers.at(-1)!, powers.at(-1)!));
  return powers;
}

/** Returns the effect of `length` further bytes, under 2^32, on a checksum: the operator of {@link combineChecksums}. */
export function checksumShift(length: number): number {
  let shift = POLYNOMIAL_ONE;
  for (let bit = 0; bit < LENGTH_BITS_MAX; bit++) {
    if ((length >>> bit) & 1) shift = multiply(shift, BYTE_SHIFTS[bit]!);
  }
  return shift;
}

/**
 * Returns the CRC-32 of two byte runs one after the other, from the checksum of each and the shift of the second one's
 * length. The method is that of zlib's crc32_combine_op (Mark Adler).
 */
export const combineChecksums = (first: number, second: number, secondShift: number): number =>
  (multiply(secondShift, first) ^ second) >>> 0;
