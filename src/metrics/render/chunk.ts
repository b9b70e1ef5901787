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

/** Working memory to render one chunk at a time. */
export class RenderBuffer {
  /** Values of the lines of a chunk. */
  readonly values = new Float64Array(CHUNK_LINES_MAX);
  #bytes = Buffer.alloc(0);
  #view = new DataView(this.#bytes.buffer, 0, 0);

  /** Returns a buffer of at least `size` bytes, as an array and as a view. Its previous content is lost. */
  reserve(size: number): { readonly bytes: Uint8Array; readonly view: DataView } {
    if (this.#bytes.length < size) {
      this.#bytes = Buffer.allocUnsafeSlow(size);
      this.#view = new DataView(this.#bytes.buffer);
    }
    return { bytes: this.#bytes, view: this.#view };
  }
}
