import type { Steps } from "../../base/steps.ts";
import type { RenderInput, Visibility } from "../families/family.ts";
import { LINES_MAX, type LineWriter } from "./line-writer.ts";

/** Maximum number of lines per chunk. */
export const CHUNK_LINES_MAX = LINES_MAX;

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
   * shows. The bytes may be in the writer's memory, and are then valid until its next use.
   */
  render(source: RenderSource, writer: LineWriter): Uint8Array;
}

/** Keeps the chunks of one family up to date with successive snapshots. */
export interface FamilyRenderer {
  /**
   * Replaces the chunks whose lines differ from those of the previous refresh. `previous` is the source of that
   * refresh, or null if this is the first. Runs in steps of at most one chunk.
   */
  refresh(source: RenderSource, previous: RenderSource | null): Steps<void>;
  chunks(): readonly Chunk[];
  /** Returns the number of samples in the chunks. */
  sampleCount(): number;
}

/** Creates a chunk whose bytes are stored. */
export const storedChunk = (bytes: Uint8Array): Chunk => ({ render: () => bytes });
