/** Returns a number in [0, 1). Tests and the simulator use seeded generators, the daemon `Math.random`. */
export type Random = () => number;

/**
 * Creates a seeded generator: mulberry32 (Tommy Ettinger, public domain). It has 32 bits of state and passes gjrand's
 * small tests, which suffices for a simulated fleet and for jitter. Do not use it for secrets.
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
