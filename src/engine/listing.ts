import { withRoom } from "../base/column.ts";

/** What a lookup of a node by id came to. `gone`: there is no such node (404). */
export type Lookup = "alive" | "gone" | "unknown";

/** Which nodes, by slot, the walks of the list show, and how long the others have been absent. */
export interface Listing {
  /** Begins anew for a node that takes the slot. */
  join(slot: number): void;
  /** The walk under way shows the node. True if it had not before. */
  show(slot: number): boolean;
  isShown(slot: number): boolean;
  /** Those of `slots` that the walk under way has not shown and that are due to be looked up, longest absent first. */
  due(slots: Iterable<number>): number[];
  /** Takes in what a lookup of a node that is not shown came to. */
  lookedUp(slot: number, found: Exclude<Lookup, "gone">): void;
  /**
   * Ends the walk: returns those of `slots` that are gone. `exact`: every record of the list is accounted for;
   * `inexact`: nearly all are; `blind`: the walk says nothing about the nodes that it did not show.
   */
  end(slots: readonly number[], walk: "exact" | "inexact" | "blind"): number[];
}

/**
 * A node is gone when two exact walks in a row did not show it: one alone may have drifted past it. An inexact walk can't
 * say who is missing and counts for a fifth of one, so that a list that is never exact does not keep the vanished for ever.
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

  function reset(slot: number): void {
    absences[slot] = 0;
    lookups[slot] = 0;
    nextLookup[slot] = 0;
    hidden[slot] = 0;
  }

  const isShown = (slot: number): boolean => shownIn[slot] === walk;

  return {
    isShown,
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
    lookedUp(slot, found) {
      hidden[slot] = found === "alive" ? 1 : 0;
      nextLookup[slot] = walk + 2 ** lookups[slot]!;
      lookups[slot] = Math.min(LOOKUP_DOUBLINGS_MAX, lookups[slot]! + 1);
    },
    end(slots, kind) {
      const absent = slots.filter((slot) => !isShown(slot));
      // A list that hides a node that is there does not say who is missing, however exact it is.
      const isHiding = absent.some((slot) => hidden[slot] === 1);
      const absence = ABSENCE_OF_WALK[kind === "exact" && isHiding ? "inexact" : kind];
      const gone = absent.filter((slot) => {
        // One that a lookup has found is gone only once a lookup no longer finds it.
        if (hidden[slot] === 1) return false;
        absences[slot]! += absence;
        return absences[slot]! >= ABSENCE_MAX;
      });
      walk++;
      return gone;
    },
  };
}
