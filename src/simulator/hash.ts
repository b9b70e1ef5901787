/** An integer from 0 to 2^32 - 1. */
export type Uint32 = number;

const UINT32_COUNT = 4_294_967_296;

/**
 * A bijective hash in which every bit of the input affects every bit of the result. The constants are those of
 * "lowbias32" from Chris Wellons' hash prospector.
 */
export function scramble(word: Uint32): Uint32 {
  word = Math.imul(word ^ (word >>> 16), 0x7feb352d);
  word = Math.imul(word ^ (word >>> 15), 0x846ca68b);
  return (word ^ (word >>> 16)) >>> 0;
}

/** The inverse of {@link scramble}. */
export function unscramble(word: Uint32): Uint32 {
  word = Math.imul(word ^ (word >>> 16), 0x43021123);
  word = Math.imul(word ^ (word >>> 15) ^ (word >>> 30), 0x1d69e2a5);
  return (word ^ (word >>> 16)) >>> 0;
}

/**
 * Hashes a seed with up to two numbers, such as a node and its number of draws. Unlike the next number of a generator,
 * the result does not depend on earlier draws, so that a request to one node never affects the others.
 */
export const hash = (seed: Uint32, first: Uint32, second: Uint32 = 0): Uint32 =>
  scramble(scramble(scramble(seed) ^ first) ^ Math.imul(second, 0x9e3779b1));

/** Returns {@link hash} as a number from 0 (included) to 1 (excluded). */
export const hashUnit = (seed: Uint32, first: Uint32, second: Uint32 = 0): number =>
  hash(seed, first, second) / UINT32_COUNT;

/**
 * Converts a uniform draw to an exponential one, which is the time to the next random event. With a mean of Infinity it
 * is Infinity.
 */
export const exponential = (mean: number, unit: number): number =>
  mean === Number.POSITIVE_INFINITY ? mean : -Math.log(1 - unit) * mean;

/** Returns a function that maps a uniform draw to an index of a weighted list. Throws if the list is empty. */
export function weightedChoice(entries: readonly { readonly weight: number }[]): (unit: number) => number {
  if (entries.length === 0) throw new Error("cannot choose from an empty list");
  const total = entries.reduce((sum, { weight }) => sum + weight, 0);
  let upTo = 0;
  const ends = entries.map(({ weight }) => {
    upTo += weight;
    return upTo / total;
  });
  return (unit) => {
    let index = 0;
    while (index < ends.length - 1 && unit >= ends[index]!) index += 1;
    return index;
  };
}
