import { DAY_MS, type DurationMs } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { Fleet, WalkResult } from "../model/snapshot.ts";
import type { MonotonicMs } from "../model/time.ts";
import type { WalkEvidence } from "./absence.ts";
import { BASELINE_DAYS } from "./trust.ts";

/** What a walk of a list counted. */
export interface WalkCounts {
  /** Number of records according to the list. */
  readonly total: number;
  /** Number of distinct records that the walk has shown, including unreadable ones. */
  readonly seen: number;
}

/**
 * Returns how many records a walk missed, less the `explained` ones. It is negative if the walk showed more than the
 * total.
 */
export const missingRecords = ({ total, seen }: WalkCounts, explained = 0): number => total - seen - explained;

/**
 * Returns how many records a complete walk may miss: `share` of the larger count, and at least one if the share is
 * above 0.
 */
export const allowedMissing = ({ total, seen }: WalkCounts, share: Share): number =>
  share === 0 ? 0 : Math.max(1, Math.floor(Math.max(total, seen) * share));

/** Returns the share of the records that a walk showed, 0 to 1, or 1 for an empty list. */
export function shownShare({ total, seen }: WalkCounts, missing: number): Share {
  const all = Math.max(total, seen + missing);
  return all === 0 ? 1 : Math.max(0, Math.min(1, 1 - missing / all));
}

/** How a walk of the nodes ended. */
export interface WalkSummary extends WalkCounts {
  /**
   * `exact`: every record is accounted for. `inexact`: the list was read to its end, but not every record is accounted
   * for. `page_failed`: the list was read to its end, except for a page. `cut`: the walk stopped before the end.
   */
  readonly end: "exact" | "inexact" | "page_failed" | "cut";
  /** Records without a readable id. Each may be one of the nodes that the walk did not show. */
  readonly rejected: number;
  /** Share of the total that a complete walk may miss. */
  readonly maxMissing: Share;
  /** When its first page was observed. Ignored if it was cut. */
  readonly observedFrom: MonotonicMs;
}

/** Nodes of the inventory at the end of a walk. */
interface NodeCounts {
  readonly known: number;
  /** Nodes that the walk showed. */
  readonly shown: number;
  /** Nodes that it did not show and that a lookup found. */
  readonly hidden: number;
}

/** After this many walks in a row that miss few records, an accepted number of missing ones no longer applies. */
export const WALKS_TO_RECOVER = 10;

/**
 * A list that has shown too few nodes for this long is trusted. By then `safety.trust.min_inventory` no longer expects
 * the other nodes either.
 */
const SHRUNK_MS_MAX: DurationMs = BASELINE_DAYS * DAY_MS;

/** Decides which walks of the nodes are complete. */
export class WalkHistory {
  #acceptedMissing = 0;
  /** The largest number of nodes that two walks in a row showed, but at most the number of known nodes. */
  #expectedNodes = 0;
  /** Nodes that the last walk to the end of the list showed, or null before the first one, which is trusted. */
  #lastShown: number | null = null;
  /** Since when the list has shown too few nodes, or null if the last walk showed enough. */
  #shrunkSince: MonotonicMs | null = null;
  #keepsAll = false;
  #isWhole = true;
  #recoveredWalks = 0;
  #settledAt: MonotonicMs | null = null;
  #settledFrom: MonotonicMs | null = null;
  #walkedAt: MonotonicMs | null = null;
  #lastWalk: WalkResult | null = null;

  /** Returns whether walks may miss nodes because an operator accepted it. */
  acceptsMissing(): boolean {
    return this.#acceptedMissing > 0;
  }

  /** Restores the number of missing nodes that an operator accepted earlier. */
  restoreAccepted(nodes: number): void {
    this.#acceptedMissing = nodes;
    this.#recoveredWalks = 0;
  }

  /**
   * Accepts, on an operator's command, that walks miss this many nodes. From then on, only as many nodes are expected
   * as the last walk showed.
   */
  acceptMissing(nodes: number): void {
    this.restoreAccepted(nodes);
    this.#expectedNodes = Math.min(this.#expectedNodes, this.#lastShown ?? 0);
  }

  /**
   * Ends the reading of the list, which shows `shown` of the `known` nodes, new ones included. If they are fewer than
   * the share `shownMin` of those expected, neither the walk nor a lookup proves that a node is gone, because a service
   * that has lost its data answers 404 too. After {@link SHRUNK_MS_MAX} the walk is trusted. `isWhole` tells whether every page
   * was read.
   */
  endList({ known, shown }: Omit<NodeCounts, "hidden">, shownMin: Share, at: MonotonicMs, isWhole: boolean): void {
    this.#isWhole = isWhole;
    this.#expectedNodes = Math.min(known, this.#expectedWith(shown));
    const isShrunk = shown < shownMin * this.#expectedNodes - 1e-9;
    this.#shrunkSince = isShrunk ? (this.#shrunkSince ?? at) : null;
    this.#keepsAll = this.#shrunkSince !== null && at - this.#shrunkSince < SHRUNK_MS_MAX;
  }

  /** Returns how many nodes to expect if a walk shows `shown`. A single walk may show nodes that do not exist. */
  #expectedWith(shown: number): number {
    return Math.max(this.#expectedNodes, Math.min(shown, this.#lastShown ?? shown));
  }

  /** Returns whether the list would show the nodes that the current walk has not shown, unless it hides them. */
  isWhole(): boolean {
    return this.#isWhole;
  }

  /**
   * Returns whether nodes on a page that can't be read are looked up: the last walk could not read one either, and was
   * complete, because `safety.trust.max_missing` allows for it.
   */
  looksUpFailedPages(): boolean {
    return this.#lastWalk?.complete === true && this.#lastWalk.isAborted;
  }

  /** Returns whether no node may be removed during the current walk. */
  keepsAll(): boolean {
    return this.#keepsAll;
  }

  /** Records a walk. Returns its result and what it proves about nodes that it did not show. */
  endWalk(
    { end, total, seen, rejected, maxMissing, observedFrom }: WalkSummary,
    { known, shown, hidden }: NodeCounts,
    at: MonotonicMs,
  ): { readonly result: WalkResult; readonly evidence: WalkEvidence } {
    this.#expectedNodes = this.#expectedWith(shown);
    if (end !== "cut") this.#lastShown = shown;
    const counts = { total, seen };
    const unlisted = known - shown - hidden - rejected;
    const missing = Math.max(missingRecords(counts, hidden), -missingRecords(counts), unlisted, 0);
    const allowedByShare = allowedMissing(counts, maxMissing);
    const allowed = Math.max(this.#acceptedMissing, allowedByShare);
    const complete = end !== "cut" && missing <= allowed;
    if (complete) [this.#settledAt, this.#settledFrom] = [at, observedFrom];
    if (end !== "cut" || seen > 0) this.#walkedAt = at;
    this.#recoveredWalks = complete && missing <= allowedByShare ? this.#recoveredWalks + 1 : 0;
    if (this.#recoveredWalks >= WALKS_TO_RECOVER) this.#acceptedMissing = 0;
    const isAborted = end === "cut" || end === "page_failed";
    const result: WalkResult = {
      complete,
      completeWalks: (this.#lastWalk?.completeWalks ?? 0) + (complete ? 1 : 0),
      fullWalks: (this.#lastWalk?.fullWalks ?? 0) + (complete && !isAborted ? 1 : 0),
      seenNodes: shown,
      missing,
      total,
      isAborted,
      rejected,
      at,
    };
    this.#lastWalk = result;
    // A node may be on the page that failed, for whatever reason its own lookup fails.
    const isBlind = this.#keepsAll || end === "page_failed";
    this.#keepsAll = false;
    const isExact = end === "exact" && rejected === 0 && Math.abs(missingRecords(counts)) <= allowed;
    return { result, evidence: isBlind ? "blind" : isExact ? "exact" : complete ? "inexact" : "blind" };
  }

  /** Returns when the last walks ended, and the result of the last one. */
  latest(): Pick<Fleet, "settledAt" | "settledFrom" | "walkedAt" | "lastWalk"> {
    const [settledAt, settledFrom] = [this.#settledAt, this.#settledFrom];
    return { settledAt, settledFrom, walkedAt: this.#walkedAt, lastWalk: this.#lastWalk };
  }
}
