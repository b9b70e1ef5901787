import type { RenderInput, Visibility } from "../families/family.ts";

/** Maximum number of lines per chunk: a few hundred kilobytes, which are rendered in well under a millisecond. */
export const CHUNK_LINES_MAX = 4_096;

/** What an exposition shows. */
export interface RenderSource {
  readonly input: RenderInput;
  readonly visibility: Visibility;
}

/**
 * Consecutive lines of an exposition. Per-node lines are rendered each time they are needed, because storing them would
 * take about a third of the daemon's memory; other lines are stored.
 */
export interface Chunk {
  /**
   * Returns the bytes, which are the same for every exposition that has the chunk. `source` is what the exposition
   * shows. The bytes may be in the buffer, and are then valid until its next use.
   */
  render(source: RenderSource, buffer: RenderBuffer): Uint8Array;
}

/** Keeps the chunks of one family up to date with successive snapshots. */
export interface FamilyRenderer {
  /**
   * Replaces the chunks whose lines differ from those of the previous refresh. `previous` is what that one was for, or
   * null if this is the first. Yields after every chunk.
   */
  refresh(source: RenderSource, previous: RenderSource | null): Generator<void, void>;
  chunks(): readonly Chunk[];
  /** Returns the number of samples in the chunks. */
  sampleCount(): number;
}

/** Creates a chunk whose bytes are stored. */
export const storedChunk = (bytes: Uint8Array): Chunk => ({ render: () => bytes });

/** Memory for the bytes of one chunk at a time. */
export class RenderBuffer {
  #bytes = Buffer.alloc(0);

  /** Returns a copy of the bytes, which is valid until the next call. */
  copy(bytes: Uint8Array): Uint8Array {
    if (this.#bytes.length < bytes.length) this.#bytes = Buffer.allocUnsafeSlow(bytes.length);
    this.#bytes.set(bytes);
    return this.#bytes.subarray(0, bytes.length);
  }
}
