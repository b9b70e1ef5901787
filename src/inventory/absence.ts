import { growColumn } from "../base/typed-column.ts";

/** Result of a lookup of a node by id. `gone`: the service answered 404 or 410. `unknown`: it could not be read. */
export type LookupResult = "alive" | "gone" | "unknown";

/** How much a walk proves about the nodes that it did not show. `blind`: nothing. */
export type WalkEvidence = "exact" | "inexact" | "blind";

/**
 * A node is gone when its absence points reach this number: after two exact walks in a row, or after ten inexact ones,
 * each of which may have missed it. Nodes that vanish from a list that is never exact are therefore eventually removed.
 */
const ABSENCE_POINTS_MAX = 10;
const ABSENCE_POINTS = { exact: 5, inexact: 1, blind: 0 } as const;
/** The number of walks between two lookups of a node is doubled at most this many times. */
const LOOKUP_DOUBLINGS_MAX = 5;

/**
 * Tracks, by slot, which nodes the walks of the list do not show, and which of them are gone. A lookup that returns 404
 * proves that a node is gone. Otherwise absences are counted, but only for nodes whose own lookup failed, or for all if
 * the walk was exact, a lookup during it returned 404, and the list hides no node: absence from a list that hides
 * existing nodes proves nothing. If lookups could not be made, an exact walk proves no more than an inexact one.
 */
export class AbsenceTracker {
  #walk = 1;
  /** Nodes that the current walk has shown. */
  #shownNodes = 0;
  /** Number of the last walk that showed each node. */
  #lastShownWalk = new Float64Array(0);
  #absencePoints = new Uint8Array(0);
  /** Lookups since the node was last shown, and the number of the walk in which the next one is due. */
  #lookups = new Uint8Array(0);
  #nextLookup = new Float64Array(0);
  /** 1 if the last lookup found the node although the list hides it. */
  #hidden = new Uint8Array(0);
  /** Results of the lookups during the current walk. */
  #results: Record<LookupResult, number> = { alive: 0, gone: 0, unknown: 0 };
  /** Whether lookups could not be made during the current walk. */
  #areLookupsDelayed = false;

  /** Assigns the slot to a new node. */
  addNode(slot: number): void {
    this.#lastShownWalk = growColumn(this.#lastShownWalk, slot);
    this.#absencePoints = growColumn(this.#absencePoints, slot);
    this.#lookups = growColumn(this.#lookups, slot);
    this.#nextLookup = growColumn(this.#nextLookup, slot);
    this.#hidden = growColumn(this.#hidden, slot);
    this.#lastShownWalk[slot] = 0;
    this.#clearAbsence(slot);
  }

  /** Records that the current walk shows the node. Returns true if it had not shown it before. */
  markShown(slot: number): boolean {
    const isNew = !this.isShown(slot);
    if (isNew) this.#shownNodes++;
    this.#lastShownWalk[slot] = this.#walk;
    this.#clearAbsence(slot);
    return isNew;
  }

  /** Returns how many nodes the current walk has shown. */
  shownNodes(): number {
    return this.#shownNodes;
  }

  /** Whether the current walk has shown the node. */
  isShown(slot: number): boolean {
    return this.#lastShownWalk[slot] === this.#walk;
  }

  /** Whether the current or the last walk has shown the node. */
  isListed(slot: number): boolean {
    return this.#lastShownWalk[slot]! >= this.#walk - 1;
  }

  /** Whether the last lookup found the node although the list does not show it. */
  isHidden(slot: number): boolean {
    return this.#hidden[slot] === 1;
  }

  /**
   * Returns those of `slots` that the current walk has not shown and that are due for a lookup, longest absent first,
   * then longest due.
   */
  dueForLookup(slots: Iterable<number>): number[] {
    return [...slots]
      .filter((slot) => !this.isShown(slot) && this.#nextLookup[slot]! <= this.#walk)
      .sort((a, b) => this.#absencePoints[b]! - this.#absencePoints[a]! || this.#nextLookup[a]! - this.#nextLookup[b]!);
  }

  /** Records the lookup of a node that the current walk has not shown. */
  recordLookup(slot: number, result: LookupResult): void {
    this.#results[result]++;
    if (result === "gone") return;
    if (result === "alive") this.#absencePoints[slot] = 0;
    // A lookup that fails after one that found the node is repeated in the next walk.
    else if (this.isHidden(slot)) this.#lookups[slot] = 0;
    this.#hidden[slot] = result === "alive" ? 1 : 0;
    this.#nextLookup[slot] = this.#walk + 2 ** this.#lookups[slot]!;
    this.#lookups[slot] = Math.min(LOOKUP_DOUBLINGS_MAX, this.#lookups[slot]! + 1);
  }

  /** Records that lookups could not be made during the current walk. */
  recordDelay(): void {
    this.#areLookupsDelayed = true;
  }

  /** Ends the walk. Returns those of `slots` that are gone. */
  endWalk(slots: readonly number[], evidence: WalkEvidence): number[] {
    const absent = slots.filter((slot) => !this.isShown(slot));
    const isAnyHidden = this.#results.alive > 0 || absent.some((slot) => this.isHidden(slot));
    const areAllGone = evidence === "exact" && this.#results.gone > 0 && !isAnyHidden;
    const points = ABSENCE_POINTS[evidence];
    const pointsWithoutLookup = this.#areLookupsDelayed ? Math.min(points, ABSENCE_POINTS.inexact) : 0;
    const gone = absent.filter((slot) => {
      if (this.isHidden(slot)) return false;
      this.#absencePoints[slot]! += this.#lookups[slot]! > 0 || areAllGone ? points : pointsWithoutLookup;
      return this.#absencePoints[slot]! >= ABSENCE_POINTS_MAX;
    });
    this.#areLookupsDelayed = false;
    this.#walk++;
    this.#shownNodes = 0;
    this.#results = { alive: 0, gone: 0, unknown: 0 };
    return gone;
  }

  #clearAbsence(slot: number): void {
    this.#absencePoints[slot] = 0;
    this.#lookups[slot] = 0;
    this.#nextLookup[slot] = 0;
    this.#hidden[slot] = 0;
  }
}
