/** A pool of buffers that are no longer read, for reuse by the next segments. */
export interface BufferPool {
  /** At least `size` bytes. What is in them means nothing. */
  claim(size: number): Uint8Array;
  /** Returns a buffer to the pool. It must no longer be read. */
  giveBack(memory: Uint8Array): void;
}

/**
 * While a fleet is rendered, each segment takes the memory that the one before left: a few spares do. More of them come
 * back at once from a slow reader, and are left to the garbage collector.
 */
const SPARE_BUFFERS_MAX = 8;
/** Values get longer: room for that, so that memory fits again. Pages that are never touched take none. */
const SLACK_SHARE = 1 / 16;
/** Sizes are multiples of this, so that segments of one family can take each other's. */
const SIZE_STEP_BYTES = 16_384;

/** An empty pool. */
export function createBufferPool(): BufferPool {
  const spares: Uint8Array[] = [];
  return {
    claim(size) {
      const smallestFitting = spares.findIndex(({ length }) => length >= size && length <= 2 * size + SIZE_STEP_BYTES);
      const spare = smallestFitting < 0 ? undefined : spares.splice(smallestFitting, 1)[0];
      const roomy = Math.ceil((size * (1 + SLACK_SHARE)) / SIZE_STEP_BYTES) * SIZE_STEP_BYTES;
      return spare ?? Buffer.allocUnsafeSlow(roomy);
    },
    giveBack(memory) {
      // The oldest buffer has been unused the longest.
      if (spares.push(memory) > SPARE_BUFFERS_MAX) spares.shift();
    },
  };
}
