import { withRoom } from "../base/typed-column.ts";

/** What a lookup of a node by id came to. `gone`: there is no such node (404). `unknown`: it could not be read. */
export type Lookup = "alive" | "gone" | "unknown";

/** What a walk says about the nodes that it did not show. `blind`: nothing. */
export type WalkProof = "exact" | "inexact" | "blind";

/** Which nodes, by slot, the walks of the list show, and how long the others have been absent. */
export interface Listing {
  /** Begins anew for a node that takes the slot. */
  join(slot: number): void;
  /** The walk under way shows the node. True if it had not before. */
  show(slot: number): boolean;
  isShown(slot: number): boolean;
  /** Whether the last lookup found the node although the list does not show it. */
  isHidden(slot: number): boolean;
  /** Those of `slots` that the walk under way has not shown and that are due to be looked up, longest absent first. */
  due(slots: Iterable<number>): number[];
  /** Takes in what a lookup of a node that is not shown came to. */
  lookedUp(slot: number, found: Lookup): void;
  /** Ends the walk: returns those of `slots` that are gone. */
  end(slots: readonly number[], proof: WalkProof): number[];
}

/**
 * A node is gone after a lookup that finds no such node. Without one it is gone when two exact walks in a row did not show
 * it, or ten inexact ones, which can't say who is missing: so a list that is never exact keeps no vanished node for ever.
 * Absence counts only for a node whose own lookup failed, or where every lookup of the walk shows that what is not listed
 * is gone: a list that loses nodes which the service still has says nothing about them.
 */
const ABSENCE_MAX = 10;
const ABSENCE_OF_WALK = { exact: 5, inexact: 1, blind: 0 } as const;
/** A node that the list hides is looked up again after so many walks, doubled each time, up to two to the power of this. */
const LOOKUP_DOUBLINGS_MAX = 5;

/** Creates the listing of a fleet without nodes. */
export function createListing(): Listing {
  let walk = 1;
  /** Number of the walk that showed the node last. */
  let shownIn = new Float64Array(0);
  let absences = new Uint8Array(0);
  /** Lookups since the node was last shown, and the number of the walk in which the next one is due. */
  let lookups = new Uint8Array(0);
  let nextLookup = new Float64Array(0);
  /** 1 where the last lookup found the node although the list hides it. */
  let hidden = new Uint8Array(0);
  /** Lookups of the walk under way. */
  let found: Record<Lookup, number> = { alive: 0, gone: 0, unknown: 0 };

  function reset(slot: number): void {
    absences[slot] = 0;
    lookups[slot] = 0;
    nextLookup[slot] = 0;
    hidden[slot] = 0;
  }

  const isShown = (slot: number): boolean => shownIn[slot] === walk;
  const isHidden = (slot: number): boolean => hidden[slot] === 1;

  return {
    isShown,
    isHidden,
    join(slot) {
      shownIn = withRoom(shownIn, slot);
      absences = withRoom(absences, slot);
      lookups = withRoom(lookups, slot);
      nextLookup = withRoom(nextLookup, slot);
      hidden = withRoom(hidden, slot);
      shownIn[slot] = 0;
      reset(slot);
    },
    show(slot) {
      const isNew = !isShown(slot);
      shownIn[slot] = walk;
      reset(slot);
      return isNew;
    },
    due: (slots) =>
      [...slots]
        .filter((slot) => !isShown(slot) && nextLookup[slot]! <= walk)
        .sort((a, b) => absences[b]! - absences[a]!),
    lookedUp(slot, outcome) {
      found[outcome]++;
      if (outcome === "gone") return;
      hidden[slot] = outcome === "alive" ? 1 : 0;
      nextLookup[slot] = walk + 2 ** lookups[slot]!;
      lookups[slot] = Math.min(LOOKUP_DOUBLINGS_MAX, lookups[slot]! + 1);
    },
    end(slots, proof) {
      const absent = slots.filter((slot) => !isShown(slot));
      const areAllGone = proof === "exact" && found.gone > 0 && found.alive === 0 && !absent.some(isHidden);
      const gone = absent.filter((slot) => {
        if (isHidden(slot) || (lookups[slot] === 0 && !areAllGone)) return false;
        absences[slot]! += ABSENCE_OF_WALK[proof];
        return absences[slot]! >= ABSENCE_MAX;
      });
      walk++;
      found = { alive: 0, gone: 0, unknown: 0 };
      return gone;
    },
  };
}
