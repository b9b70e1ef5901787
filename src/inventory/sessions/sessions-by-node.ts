import { growColumn, type TypedColumn } from "../../base/typed-column.ts";
import { LABEL_CAPS, type OnLabelsFolded, OTHER_LABEL } from "../../model/label-values.ts";
import { SESSION_STATUSES } from "../../model/session.ts";
import type { SessionNodes } from "../../model/snapshot.ts";

/**
 * Sessions and bytes by node. Nodes here are those that sessions name: all that the fleet has, and of the others as many
 * as the cap of the label allows; sessions of further ones are counted under the node `other`.
 */
export interface SessionNodeTable {
  beginWalk(): void;
  /** `isRecent`: it lives, or ended a short while ago. */
  count(nodeId: string, status: number, isRecent: boolean): void;
  /** A session of it fails now. */
  failing(nodeId: string): void;
  addBytes(nodeId: string, sent: number, received: number): void;
  /** Takes the counts of the walk that ended, and forgets as {@link forgetIdle} does. Only a complete walk shows that no session fails. */
  finishWalk(complete: boolean): void;
  /** Forgets the nodes that no count speaks of and that are not known otherwise. */
  forgetIdle(): void;
  /** An immutable copy: the counts last settled, the bytes as they are. */
  view(): SessionNodes;
}

/** Counted no further. */
const QUIET_WALKS_MAX = 255;

const { values: UNKNOWN_NODES_MAX } = LABEL_CAPS.proxynet_node_sessions;

/** No node yet. `isKnownNode`: whether the fleet has the node. */
export function createSessionNodeTable(
  isKnownNode: (nodeId: string) => boolean,
  onFolded: OnLabelsFolded,
): SessionNodeTable {
  const slots = new Map<string, number>();
  const free: number[] = [];
  const ids: string[] = [];
  let sent = new Float64Array(0);
  let received = new Float64Array(0);
  let quietWalks = new Uint8Array(0);
  let counting = createCounts(0);
  let settled = counting;
  /** Nodes here that the fleet did not have when it was last asked. */
  let unknownNodes = 0;
  let foldedCount = 0;

  /** The slot of the node, or that of `other`; null where the fleet has a node of that very name. */
  function slotOf(nodeId: string): number | null {
    const own = slots.get(nodeId);
    if (own !== undefined) return own;
    if (isKnownNode(nodeId)) return newSlot(nodeId);
    if (nodeId !== OTHER_LABEL && unknownNodes < UNKNOWN_NODES_MAX) {
      unknownNodes++;
      return newSlot(nodeId);
    }
    return isKnownNode(OTHER_LABEL) ? null : (slots.get(OTHER_LABEL) ?? newSlot(OTHER_LABEL));
  }

  function newSlot(nodeId: string): number {
    const slot = free.pop() ?? ids.length;
    if (slot >= sent.length) {
      sent = growColumn(sent, slot);
      received = growColumn(received, slot);
      quietWalks = growColumn(quietWalks, slot);
      counting = {
        counts: counting.counts.map((column) => growColumn(column, slot)),
        recent: counting.recent.map((column) => growColumn(column, slot)),
        failing: growColumn(counting.failing, slot),
      };
    }
    slots.set(nodeId, slot);
    ids[slot] = nodeId;
    quietWalks[slot] = 0;
    sent[slot] = 0;
    received[slot] = 0;
    return slot;
  }

  function forgetIdle(): void {
    const isCounted = (column: Float64Array, slot: number) => (column[slot] ?? 0) > 0;
    unknownNodes = 0;
    for (const [nodeId, slot] of slots) {
      if (isKnownNode(nodeId)) continue;
      if ([...settled.counts, ...counting.counts].some((column) => isCounted(column, slot))) {
        if (nodeId !== OTHER_LABEL) unknownNodes++;
        continue;
      }
      slots.delete(nodeId);
      ids[slot] = "";
      free.push(slot);
    }
  }

  return {
    beginWalk() {
      if (foldedCount > 0) onFolded("proxynet_node_sessions", foldedCount);
      foldedCount = 0;
      counting = createCounts(sent.length);
    },
    count(nodeId, status, isRecent) {
      const slot = slotOf(nodeId);
      if (slot === null || ids[slot] !== nodeId) foldedCount++;
      if (slot === null) return;
      counting.counts[status]![slot]!++;
      if (isRecent) counting.recent[status]![slot]!++;
    },
    failing(nodeId) {
      const slot = slotOf(nodeId);
      if (slot !== null) counting.failing[slot] = 1;
    },
    addBytes(nodeId, moreSent, moreReceived) {
      const slot = slotOf(nodeId);
      if (slot === null) return;
      sent[slot]! += moreSent;
      received[slot]! += moreReceived;
    },
    finishWalk(complete) {
      settled = counting;
      for (let slot = 0; slot < ids.length; slot++) {
        if (counting.failing[slot] === 1) quietWalks[slot] = 0;
        else if (complete) quietWalks[slot] = Math.min(QUIET_WALKS_MAX, quietWalks[slot]! + 1);
      }
      forgetIdle();
    },
    forgetIdle,
    view: () => ({
      slots: ids.length,
      ids: ids.slice(),
      // A node first seen after the counts were settled has none: its column is widened with zeros.
      counts: settled.counts.map((column) => resized(column, ids.length)),
      recent: settled.recent.map((column) => resized(column, ids.length)),
      quietWalks: quietWalks.slice(0, ids.length),
      sentBytes: sent.slice(0, ids.length),
      receivedBytes: received.slice(0, ids.length),
    }),
  };
}

const createCounts = (length: number) => ({
  counts: SESSION_STATUSES.map(() => new Float64Array(length)),
  recent: SESSION_STATUSES.map(() => new Float64Array(length)),
  failing: new Uint8Array(length),
});

/** Copies the first `length` slots, with zeros where the column is shorter. */
function resized<A extends TypedColumn>(column: A, length: number): A {
  const copy = new (column.constructor as new (length: number) => A)(length);
  copy.set(column.subarray(0, length));
  return copy;
}
