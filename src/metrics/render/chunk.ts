import type { Fleet } from "../../model/snapshot.ts";
import type { NodeSource, RenderInput, Visibility } from "../families/family.ts";

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

/** What one rendering knows of its snapshot, and of the one before. */
export interface RenderFrame {
  readonly input: RenderInput;
  readonly presence: Visibility;
  /** Slots that speak of another node than before are marked with 1; null: none. */
  readonly relabelled: Readonly<Record<NodeSource, Uint8Array | null>>;
  /** The fleet of the rendering before. */
  readonly previousFleet: Fleet | null;
}

/** The lines of one family, from one rendering to the next. */
export interface FamilyRenderer {
  /** Brings the lines to the frame; yields after every piece. */
  refresh(frame: RenderFrame): Generator<void, void>;
  chunks(): readonly Chunk[];
  /** Samples in the pieces. */
  sampleCount(): number;
  /** Lets go of all pieces; the run is not used any more. */
  release(): void;
}
