import { growColumn } from "../base/typed-column.ts";

/** What a lookup of a node by id came to. `gone`: there is no such node (404). `unknown`: it could not be read. */
export type LookupResult = "alive" | "gone" | "unknown";

/** What a walk says about the nodes that it did not show. `blind`: nothing. */
export type WalkEvidence = "exact" | "inexact" | "blind";

/** Which nodes, by slot, the walks of the list show, and how long the others have been absent. */
export interface AbsenceTracker {
  /** Begins anew for a node that takes the slot. */
  reset(slot: number): void;
  /** The walk under way shows the node. True if it had not before. */
  markShown(slot: number): boolean;
  isShown(slot: number): boolean;
  /** Whether the last lookup found the node although the list does not show it. */
  isHidden(slot: number): boolean;
  /** Those of `slots` that the walk under way has not shown and that are due to be looked up, longest absent first. */
  dueForLookup(slots: Iterable<number>): number[];
  /** Takes in what a lookup of a node that is not shown came to. */
  recordLookup(slot: number, found: LookupResult): void;
  /** Ends the walk: returns those of `slots` that are gone. */
  endWalk(slots: readonly number[], proof: WalkEvidence): number[];
}

/**
 * A node is gone after a lookup that finds no such node. Without one it is gone when two exact walks in a row did not show
 * it, or ten inexact ones, which can't say who is missing: so a list that is never exact keeps no vanished node for ever.
 * Absence counts only for a node whose own lookup failed, or where every lookup of the walk shows that what is not listed
 * is gone: a list that loses nodes which the service still has says nothing about them.
 */
const ABSENCE_POINTS_MAX = 10;
const ABSENCE_POINTS = { exact: 5, inexact: 1, blind: 0 } as const;
/** A node that the list hides is looked up again after so many walks, doubled each time, up to two to the power of this. */
const LOOKUP_DOUBLINGS_MAX = 5;

/** Creates the listing of a fleet without nodes. */
export function createAbsenceTracker(): AbsenceTracker {
  let walk = 1;
  /** Number of the walk that showed the node last. */
  let lastShownWalk = new Float64Array(0);
  let absencePoints = new Uint8Array(0);
  /** Lookups since the node was last shown, and the number of the walk in which the next one is due. */
  let lookups = new Uint8Array(0);
  let nextLookup = new Float64Array(0);
  /** 1 where the last lookup found the node although the list hides it. */
  let hidden = new Uint8Array(0);
  /** Lookups of the walk under way. */
  let found: Record<LookupResult, number> = { alive: 0, gone: 0, unknown: 0 };

  function reset(slot: number): void {
    absencePoints[slot] = 0;
    lookups[slot] = 0;
    nextLookup[slot] = 0;
    hidden[slot] = 0;
  }

  const isShown = (slot: number): boolean => lastShownWalk[slot] === walk;
  const isHidden = (slot: number): boolean => hidden[slot] === 1;

  return {
    isShown,
    isHidden,
    reset(slot) {
      lastShownWalk = growColumn(lastShownWalk, slot);
      absencePoints = growColumn(absencePoints, slot);
      lookups = growColumn(lookups, slot);
      nextLookup = growColumn(nextLookup, slot);
      hidden = growColumn(hidden, slot);
      lastShownWalk[slot] = 0;
      reset(slot);
    },
    markShown(slot) {
      const isNew = !isShown(slot);
      lastShownWalk[slot] = walk;
      reset(slot);
      return isNew;
    },
    dueForLookup: (slots) =>
      [...slots]
        .filter((slot) => !isShown(slot) && nextLookup[slot]! <= walk)
        .sort((a, b) => absencePoints[b]! - absencePoints[a]!),
    recordLookup(slot, outcome) {
      found[outcome]++;
      if (outcome === "gone") return;
      hidden[slot] = outcome === "alive" ? 1 : 0;
      nextLookup[slot] = walk + 2 ** lookups[slot]!;
      lookups[slot] = Math.min(LOOKUP_DOUBLINGS_MAX, lookups[slot]! + 1);
    },
    endWalk(slots, proof) {
      const absent = slots.filter((slot) => !isShown(slot));
      const areAllGone = proof === "exact" && found.gone > 0 && found.alive === 0 && !absent.some(isHidden);
      const gone = absent.filter((slot) => {
        if (isHidden(slot) || (lookups[slot] === 0 && !areAllGone)) return false;
        absencePoints[slot]! += ABSENCE_POINTS[proof];
        return absencePoints[slot]! >= ABSENCE_POINTS_MAX;
      });
      walk++;
      found = { alive: 0, gone: 0, unknown: 0 };
      return gone;
    },
  };
}
