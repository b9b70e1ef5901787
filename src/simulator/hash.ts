/** A whole number from 0 to 2^32 - 1. */
export type Uint32 = number;

const UINT32_COUNT = 4_294_967_296;

/**
 * Mixes a word so that every bit of it counts for every bit of the result, one to one. The constants are those of
 * "lowbias32", found by Chris Wellons' hash prospector.
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
 * A word that follows from the seed and what it is asked for, such as a node and the count of its draws. Unlike a
 * generator's next number it does not depend on what was asked before, so a request never affects other nodes than its own
 * node's.
 */
export const hash = (seed: Uint32, what: Uint32, which: Uint32 = 0): Uint32 =>
  scramble(scramble(scramble(seed) ^ what) ^ Math.imul(which, 0x9e3779b1));

/** {@link hash} as a number from 0, below 1. */
export const hashUnit = (seed: Uint32, what: Uint32, which: Uint32 = 0): number =>
  hash(seed, what, which) / UINT32_COUNT;

/**
 * A draw of the exponential distribution, from a uniform one: the time to the next of events that come by chance.
 * With a mean of Infinity they never come.
 */
export const exponential = (mean: number, unit: number): number =>
  mean === Number.POSITIVE_INFINITY ? mean : -Math.log(1 - unit) * mean;

/** A choice from a weighted list: gives the index at which a uniform number falls. Throws on an empty list. */
export function weightedChoice(entries: readonly { readonly weight: number }[]): (unit: number) => number {
  if (entries.length === 0) throw new Error("nothing to choose from");
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
