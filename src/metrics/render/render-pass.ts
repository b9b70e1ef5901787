import type { Fleet } from "../../model/snapshot.ts";
import type { Presence, RenderInput, Roster } from "../families/family.ts";
import type { Piece } from "./chunk.ts";

/** What one rendering knows of its snapshot, and of the one before. */
export interface Frame {
  readonly input: RenderInput;
  readonly presence: Presence;
  /** Slots that speak of another node than before are marked with 1; null: none. */
  readonly relabelled: Readonly<Record<Roster, Uint8Array | null>>;
  /** The fleet of the rendering before. */
  readonly fleetBefore: Fleet | null;
}

/** The lines of one family, from one rendering to the next. */
export interface Run {
  /** Brings the lines to the frame; yields after every piece. */
  refresh(frame: Frame): Generator<void, void>;
  pieces(): readonly Piece[];
  /** Samples in the pieces. */
  series(): number;
  /** Lets go of all pieces; the run is not used any more. */
  drop(): void;
}
