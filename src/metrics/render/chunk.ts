/**
 * Finished bytes of the page. Whoever reads them later than at once holds them; bytes that are held are never written
 * to, those that nobody holds any more go back to where they came from.
 */
export interface Chunk {
  readonly bytes: Uint8Array;
  references: number;
  /** Takes the memory back for a later rendering; null if there is nothing to save. */
  readonly recycle: (() => void) | null;
}

/** A piece with one holder. */
export const createChunk = (bytes: Uint8Array, recycle: Chunk["recycle"] = null): Chunk => ({
  bytes,
  references: 1,
  recycle,
});

/** Adds a reference. Throws if there is none left: the bytes may already be overwritten. */
export function retain(chunk: Chunk): void {
  if (chunk.references <= 0) throw new Error("a piece that nobody holds can't be held again");
  chunk.references++;
}

/** Takes one holder away. */
export function release(chunk: Chunk): void {
  chunk.references--;
  if (chunk.references < 0) throw new Error("a piece was released more often than it was held");
  if (chunk.references === 0) chunk.recycle?.();
}
