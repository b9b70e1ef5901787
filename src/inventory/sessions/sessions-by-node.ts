import type { Share } from "../../base/percent.ts";
import type { Steps } from "../../base/steps.ts";
import { growColumn } from "../../base/typed-column.ts";
import { LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../../model/label-values.ts";
import { SESSION_STATUSES } from "../../model/session.ts";
import type { SessionNodes } from "../../model/snapshot.ts";
import { IdIndex } from "../id-index.ts";

/** Quiet walks are counted up to this number. */
const QUIET_WALKS_MAX = 255;

/** Nodes that are checked in one step, in about a millisecond. */
const NODES_PER_STEP = 8_192;

const { values: UNKNOWN_NODES_MAX } = LABEL_CAPS.proxynet_node_sessions;
/**
 * The cap until a walk of the nodes has been complete. The first walk of the sessions runs at the same time, so any
 * node may belong to the fleet. With this many nodes, the table takes about 50 MB.
 */
const UNKNOWN_NODES_MAX_AT_START = 200_000;

/** Share of the sessions that may name no node of the fleet, such as those of nodes that have just joined or left it. */
const UNASSIGNED_MAX: Share = 0.1;

/** Dependencies of the counts by node. */
export interface SessionNodeTableDeps {
  /** Whether the fleet has the node. */
  readonly isKnownNode: (nodeId: string) => boolean;
  /** Whether a walk of the nodes has been complete. */
  readonly isFleetKnown: () => boolean;
  readonly onFolded: OnLabelsFolded;
}

/**
 * Counts sessions and bytes by node, for all nodes of the fleet and, up to a cap, for other nodes that sessions name.
 * Sessions of further nodes are counted under the node `other`.
 */
export class SessionNodeTable {
  readonly #deps: SessionNodeTableDeps;
  readonly #slots = new IdIndex();
  readonly #freeSlots: number[] = [];
  readonly #ids: string[] = [];
  /** The slot of `other`, or null if it has none. */
  #other: number | null = null;
  /** A copy of the ids, or null if they have changed since. */
  #sharedIds: readonly string[] | null = null;
  #sent = new Float64Array(0);
  #received = new Float64Array(0);
  #quietWalks = new Uint8Array(0);
  /** Counts of the current walk, and of the last accepted one. */
  #current = createCounts(0);
  #accepted = this.#current;
  /** Nodes in the table that are not in the fleet, and their maximum number. */
  #unknownNodes = 0;
  /** Slots of nodes that have left the fleet since the accepted walk. */
  readonly #departed = new Set<number>();
  #unknownNodesMax = UNKNOWN_NODES_MAX_AT_START;

  constructor(deps: SessionNodeTableDeps) {
    this.#deps = deps;
  }

  beginWalk(): void {
    if (this.#current.folded > 0) this.#deps.onFolded("proxynet_node_sessions", this.#current.folded);
    this.#current = { ...createCounts(this.#sent.length), wasFleetKnown: this.#deps.isFleetKnown() };
  }

  /**
   * Counts a session of the node under its slot. `status` is an index into SESSION_STATUSES; `isRecent` is true if it
   * is open or ended recently.
   */
  count(nodeId: string, slot: number | null, status: number, isRecent: boolean): void {
    this.#current.sessions++;
    if (slot === null || (slot === this.#other && nodeId !== OTHER_LABEL)) this.#current.folded++;
    if (slot === null) {
      this.#current.unlisted++;
      return;
    }
    this.#current.counts[status]![slot]!++;
    if (isRecent) this.#current.recent[status]![slot]!++;
  }

  /** Counts a session that may belong to any node of the fleet. */
  countUnassigned(): void {
    this.#current.sessions++;
    this.#current.unassigned++;
  }

  /** Records that a session of the node has just failed. */
  markFailing(slot: number | null): void {
    if (slot !== null) this.#current.failing[slot] = 1;
  }

  addBytes(slot: number | null, sent: number, received: number): void {
    if (slot === null) return;
    this.#sent[slot]! += sent;
    this.#received[slot]! += received;
  }

  /**
   * Accepts the counts of the walk, and calls {@link forgetIdle}. Only a complete walk proves that no session of a node
   * fails.
   */
  *acceptWalk(complete: boolean): Steps<void> {
    if (this.#unknownNodesMax > UNKNOWN_NODES_MAX && this.#deps.isFleetKnown()) yield* this.#foldSurplus();
    this.#accepted = this.#current;
    if (this.#departed.size > 0) this.#sharedIds = null;
    this.#departed.clear();
    for (let slot = 0; slot < this.#ids.length; slot++) {
      if (this.#current.failing[slot] === 1) this.#quietWalks[slot] = 0;
      else if (complete) this.#quietWalks[slot] = Math.min(QUIET_WALKS_MAX, this.#quietWalks[slot]! + 1);
    }
    this.#accepted.unlisted += yield* this.forgetIdle();
  }

  /**
   * Removes the nodes that have no sessions and are not in the fleet. Yields after every few thousand nodes. Returns the
   * number of accepted sessions of nodes that are not in the fleet.
   */
  *forgetIdle(): Steps<number> {
    const [accepted, current] = [this.#accepted.counts, this.#current.counts];
    const sessionsIn = (columns: typeof current, slot: number) =>
      columns.reduce((sum, column) => sum + (column[slot] ?? 0), 0);
    let unlisted = 0;
    this.#unknownNodes = 0;
    for (const [slot, nodeId] of this.#ids.entries()) {
      if (slot % NODES_PER_STEP === 0) yield;
      if (nodeId === "" || this.#deps.isKnownNode(nodeId)) continue;
      const sessions = sessionsIn(accepted, slot);
      unlisted += sessions;
      if (sessions + sessionsIn(current, slot) === 0) this.#removeSlot(slot);
      else if (nodeId !== OTHER_LABEL) this.#unknownNodes++;
    }
    return unlisted;
  }

  /**
   * Leaves a node that has left the fleet out of views until the next accepted walk, which may still show sessions of it.
   * Returns its slot, or null if it has none.
   */
  hide(nodeId: string): number | null {
    const slot = this.#slots.find(nodeId);
    if (slot < 0) return null;
    this.#departed.add(slot);
    this.#sharedIds = null;
    return slot;
  }

  /** Applies the cap for a known fleet: sessions of unknown nodes beyond it are counted under `other`. */
  *#foldSurplus(): Steps<void> {
    this.#unknownNodesMax = UNKNOWN_NODES_MAX;
    this.#unknownNodes = 0;
    for (const [slot, nodeId] of this.#ids.entries()) {
      if (slot % NODES_PER_STEP === 0) yield;
      if (nodeId === "" || nodeId === OTHER_LABEL || this.#deps.isKnownNode(nodeId)) continue;
      if (this.#unknownNodes < UNKNOWN_NODES_MAX) {
        this.#unknownNodes++;
        continue;
      }
      const other = this.#otherSlot();
      this.#removeSlot(slot);
      const { counts, recent } = this.#current;
      for (const column of counts) this.#current.folded += column[slot]!;
      for (const column of [...counts, ...recent]) {
        if (other !== null) column[other]! += column[slot]!;
        column[slot] = 0;
      }
    }
  }

  /** Returns an immutable copy of the accepted counts and of the bytes so far. */
  view(): SessionNodes {
    const { length } = this.#ids;
    this.#sharedIds ??= withoutIds(this.#ids, this.#departed);
    return {
      slots: length,
      ids: this.#sharedIds,
      // Slots added since the counts were accepted are filled with zeros.
      counts: this.#accepted.counts.map((column) => firstSlots(column, length)),
      recent: this.#accepted.recent.map((column) => firstSlots(column, length)),
      quietWalks: this.#quietWalks.slice(0, length),
      sentBytes: this.#sent.slice(0, length),
      receivedBytes: this.#received.slice(0, length),
      isFolded: this.#accepted.folded > 0 && !this.#accepted.wasFleetKnown,
      isUnassigned: isUnassigned(this.#accepted),
    };
  }

  /**
   * Returns the slot of the node, or of `other`, and adds it if there is none. Returns null if the cap is reached and a
   * node of the fleet has the id `other`.
   */
  slotOf(nodeId: string): number | null {
    const slot = this.#slots.find(nodeId);
    if (slot >= 0) return slot;
    if (this.#deps.isKnownNode(nodeId)) return this.#addSlot(nodeId);
    if (nodeId !== OTHER_LABEL && this.#unknownNodes < this.#unknownNodesMax) {
      this.#unknownNodes++;
      return this.#addSlot(nodeId);
    }
    return this.#otherSlot();
  }

  /** Returns the slot of `other`, and adds it if there is none, or null if a node of the fleet has that id. */
  #otherSlot(): number | null {
    if (this.#deps.isKnownNode(OTHER_LABEL)) return null;
    return this.#other ?? this.#addSlot(OTHER_LABEL);
  }

  #addSlot(nodeId: string): number {
    const slot = this.#freeSlots.pop() ?? this.#ids.length;
    if (slot >= this.#sent.length) this.#grow(slot);
    this.#slots.findOrAdd(nodeId, slot);
    this.#ids[slot] = nodeId;
    if (nodeId === OTHER_LABEL) this.#other = slot;
    this.#sharedIds = null;
    this.#quietWalks[slot] = 0;
    this.#sent[slot] = 0;
    this.#received[slot] = 0;
    return slot;
  }

  #removeSlot(slot: number): void {
    this.#slots.remove(slot);
    if (slot === this.#other) this.#other = null;
    this.#departed.delete(slot);
    this.#ids[slot] = "";
    this.#sharedIds = null;
    this.#freeSlots.push(slot);
  }

  #grow(slot: number): void {
    this.#sent = growColumn(this.#sent, slot);
    this.#received = growColumn(this.#received, slot);
    this.#quietWalks = growColumn(this.#quietWalks, slot);
    this.#current = {
      ...this.#current,
      counts: this.#current.counts.map((column) => growColumn(column, slot)),
      recent: this.#current.recent.map((column) => growColumn(column, slot)),
      failing: growColumn(this.#current.failing, slot),
    };
  }
}

const createCounts = (length: number) => ({
  counts: SESSION_STATUSES.map(() => new Uint32Array(length)),
  recent: SESSION_STATUSES.map(() => new Uint32Array(length)),
  failing: new Uint8Array(length),
  /** Sessions counted under `other`. */
  folded: 0,
  /**
   * All sessions, those that may belong to any node, and, at the end of the walk, those of nodes that are not in the
   * fleet.
   */
  sessions: 0,
  unassigned: 0,
  unlisted: 0,
  /** Whether the fleet was known when the walk began. Then no session of a node of the fleet is counted under `other`. */
  wasFleetKnown: false,
});

/** Returns whether too many sessions name no node or, if the fleet is known, none of its nodes. One is always allowed. */
function isUnassigned({ sessions, unassigned, unlisted, wasFleetKnown }: ReturnType<typeof createCounts>): boolean {
  return unassigned + (wasFleetKnown ? unlisted : 0) > Math.max(1, sessions * UNASSIGNED_MAX);
}

/** Returns a copy of the ids by slot, without those of some slots. */
export function withoutIds(ids: readonly string[], slots: Iterable<number>): string[] {
  const copy = ids.slice();
  for (const slot of slots) copy[slot] = "";
  return copy;
}

/** Returns the first `length` slots of counts that no longer change, with zeros after them if there are fewer. */
function firstSlots(column: Uint32Array, length: number): Uint32Array {
  if (column.length >= length) return column.subarray(0, length);
  const longer = new Uint32Array(length);
  longer.set(column);
  return longer;
}
