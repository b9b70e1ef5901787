/** A pool of buffers that are no longer read, for reuse by the next segments. */
export interface Pool {
  /** At least `size` bytes. What is in them means nothing. */
  claim(size: number): Uint8Array;
  /** Returns a buffer to the pool. It must no longer be read. */
  giveBack(memory: Uint8Array): void;
}

/**
 * While a fleet is rendered, each segment takes the memory that the one before left: a few spares do. More of them come
 * back at once from a slow reader, and are left to the garbage collector.
 */
const SPARES_MAX = 8;
/** Values get longer: room for that, so that memory fits again. Pages that are never touched take none. */
const SLACK_SHARE = 1 / 16;
/** Sizes are multiples of this, so that segments of one family can take each other's. */
const GRAIN_BYTES = 16_384;

/** An empty pool. */
export function createPool(): Pool {
  const spares: Uint8Array[] = [];
  return {
    claim(size) {
      const fitting = spares.findIndex(({ length }) => length >= size && length <= 2 * size + GRAIN_BYTES);
      const spare = fitting < 0 ? undefined : spares.splice(fitting, 1)[0];
      const roomy = Math.ceil((size * (1 + SLACK_SHARE)) / GRAIN_BYTES) * GRAIN_BYTES;
      return spare ?? Buffer.allocUnsafeSlow(roomy);
    },
    giveBack(memory) {
      // The oldest buffer has been unused the longest.
      if (spares.push(memory) > SPARES_MAX) spares.shift();
    },
  };
}
