/**
 * Rendered bytes of the page. A reader that uses them later retains them. Retained bytes are not overwritten. After the
 * last release their memory is reused.
 */
export interface Chunk {
  readonly bytes: Uint8Array;
  references: number;
  /** Returns the memory to its pool. Null if it has none. */
  readonly recycle: (() => void) | null;
}

/** Creates a chunk with one reference. */
export const createChunk = (bytes: Uint8Array, recycle: Chunk["recycle"] = null): Chunk => ({
  bytes,
  references: 1,
  recycle,
});

/** Adds a reference. Throws if there is none left, because the bytes may already be overwritten. */
export function retain(chunk: Chunk): void {
  if (chunk.references <= 0) throw new Error("a released chunk can't be retained");
  chunk.references++;
}

/** Removes a reference. Throws if there is none left. */
export function release(chunk: Chunk): void {
  chunk.references--;
  if (chunk.references < 0) throw new Error("a chunk was released more often than retained");
  if (chunk.references === 0) chunk.recycle?.();
}

/** Prevents the bytes from being overwritten. */
export function retainAll(chunks: readonly Chunk[]): void {
  for (const chunk of chunks) retain(chunk);
}

/** Releases the bytes. Call it once for every {@link retainAll}. */
export function releaseAll(chunks: readonly Chunk[]): void {
  for (const chunk of chunks) release(chunk);
}

/** Buffers that are no longer read, for reuse by the next segments. */
export interface BufferPool {
  /** Returns a buffer of at least `size` bytes with undefined content. */
  claim(size: number): Uint8Array;
  /** Returns a buffer to the pool. It must no longer be read. */
  giveBack(memory: Uint8Array): void;
}

/**
 * While a fleet is rendered, each segment reuses the memory of the previous one, so a few spare buffers suffice. A slow
 * reader may return many at once; the rest is left to the garbage collector.
 */
const SPARE_BUFFERS_MAX = 8;
/** Extra room, so that a buffer still fits when values get longer. */
const SLACK_SHARE = 1 / 64;
/** Sizes are multiples of this, so that the segments of a family can reuse each other's buffers. */
const SIZE_STEP_BYTES = 16_384;

/** Creates an empty pool. */
export function createBufferPool(): BufferPool {
  const spares: Uint8Array[] = [];
  return {
    claim(size) {
      const fitting = spares.findIndex(({ length }) => length >= size && length <= 2 * size + SIZE_STEP_BYTES);
      const spare = fitting < 0 ? undefined : spares.splice(fitting, 1)[0];
      const roomy = Math.ceil((size * (1 + SLACK_SHARE)) / SIZE_STEP_BYTES) * SIZE_STEP_BYTES;
      return spare ?? Buffer.allocUnsafeSlow(roomy);
    },
    giveBack(memory) {
      // The oldest buffer has been unused the longest.
      if (spares.push(memory) > SPARE_BUFFERS_MAX) spares.shift();
    },
  };
}
