import type { Fleet } from "../../model/snapshot.ts";
import type { NodeSource, RenderInput, Visibility } from "../families/family.ts";
import type { Chunk } from "./chunk.ts";

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
