/** A source of numbers in [0, 1). Seeded ones repeat; the shell passes `Math.random` where nothing must repeat. */
export type Random = () => number;

/**
 * A seeded generator: mulberry32 (Tommy Ettinger, public domain). 32 bits of state pass gjrand's small tests, which
 * is plenty for a simulated fleet and for jitter; it is no source of secrets.
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
