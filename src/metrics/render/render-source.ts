import type { NumberColumn } from "../../base/number-column.ts";
import type { NodeId } from "../../model/node.ts";
import type { Collector, Fleet } from "../../model/snapshot.ts";
import { isFresh, type RenderInput, type Visibility } from "../families/family.ts";
import type { Chunk } from "./chunk.ts";

/** What an exposition shows. */
export interface RenderSource {
  readonly input: RenderInput;
  readonly visibility: Visibility;
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

/** Returns the ids, by slot, of the nodes of families with this source; none if there is nothing to show. */
export const idsOf = (source: Collector, { snapshot }: RenderInput): readonly NodeId[] =>
  source === "sessions" ? (snapshot.sessions?.nodes.ids ?? []) : snapshot.fleet.ids;

/** Returns which slots are shown. */
export function computeVisibility(input: RenderInput): Visibility {
  const { fleet, sessions } = input.snapshot;
  const sessionCounters = new Uint8Array(sessions?.nodes.slots ?? 0);
  for (let slot = 0; slot < sessionCounters.length; slot++) {
    if (sessions!.nodes.ids[slot] !== "") sessionCounters[slot] = 1;
  }
  const areFresh = sessions !== null && isFresh(input, "sessions", sessions.settledAt);
  return {
    listed: freshSlots(fleet, fleet.listedAt, input.now - input.staleAfterMs.nodes),
    detailed: freshSlots(fleet, fleet.detailedAt, input.now - input.staleAfterMs.details),
    sessions: areFresh ? sessionCounters : new Uint8Array(sessionCounters.length),
    sessionCounters,
  };
}

function freshSlots({ slots, ids }: Fleet, observedAt: NumberColumn, since: number): Uint8Array {
  const fresh = new Uint8Array(slots);
  for (let slot = 0; slot < slots; slot++) {
    if (observedAt.at(slot) >= since && ids[slot] !== "") fresh[slot] = 1;
  }
  return fresh;
}
