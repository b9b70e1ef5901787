import { SESSION_STATUSES } from "../model/session.ts";
import type { SessionNodes } from "../model/snapshot.ts";

/** Sessions and bytes by node. Nodes here are those that sessions name, whether or not the fleet has them. */
export interface SessionNodeColumns {
  beginWalk(): void;
  /** `isRecent`: it lives, or ended a short while ago. */
  count(nodeId: string, status: number, isRecent: boolean): void;
  /** A session of it fails now. */
  failing(nodeId: string): void;
  gain(nodeId: string, sent: number, received: number): void;
  /** Takes the counts of the walk that ended, and forgets as {@link forgetIdle} does. Only a complete walk shows that no session fails. */
  settle(isKnown: (nodeId: string) => boolean, complete: boolean): void;
  /** Forgets the nodes that no count speaks of and that are not known otherwise. */
  forgetIdle(isKnown: (nodeId: string) => boolean): void;
  /** An immutable copy: the counts last settled, the bytes as they are. */
  view(): SessionNodes;
}

const SLOTS_MIN = 64;
/** Counted no further. */
const QUIET_WALKS_MAX = 255;

/** No node yet. */
export function createSessionNodes(): SessionNodeColumns {
  const slots = new Map<string, number>();
  const free: number[] = [];
  const ids: string[] = [];
  let sent = new Float64Array(0);
  let received = new Float64Array(0);
  let quietWalks = new Uint8Array(0);
  let counting = createTally(0);
  let settled = counting;

  function slotOf(nodeId: string): number {
    const known = slots.get(nodeId);
    if (known !== undefined) return known;
    const slot = free.pop() ?? ids.length;
    if (slot >= sent.length) {
      const length = Math.max(SLOTS_MIN, 2 * sent.length);
      sent = widened(sent, length);
      received = widened(received, length);
      quietWalks = widenedBytes(quietWalks, length);
      counting = {
        counts: counting.counts.map((column) => widened(column, length)),
        recent: counting.recent.map((column) => widened(column, length)),
        failing: widenedBytes(counting.failing, length),
      };
    }
    slots.set(nodeId, slot);
    ids[slot] = nodeId;
    quietWalks[slot] = 0;
    sent[slot] = 0;
    received[slot] = 0;
    return slot;
  }

  function forgetIdle(isKnown: (nodeId: string) => boolean): void {
    const isCounted = (column: Float64Array, slot: number) => (column[slot] ?? 0) > 0;
    for (const [nodeId, slot] of slots) {
      if ([...settled.counts, ...counting.counts].some((column) => isCounted(column, slot))) continue;
      if (isKnown(nodeId)) continue;
      slots.delete(nodeId);
      ids[slot] = "";
      free.push(slot);
    }
  }

  return {
    beginWalk() {
      counting = createTally(sent.length);
    },
    count(nodeId, status, isRecent) {
      const slot = slotOf(nodeId);
      counting.counts[status]![slot]!++;
      if (isRecent) counting.recent[status]![slot]!++;
    },
    failing(nodeId) {
      const slot = slotOf(nodeId);
      counting.failing[slot] = 1;
    },
    gain(nodeId, moreSent, moreReceived) {
      const slot = slotOf(nodeId);
      sent[slot]! += moreSent;
      received[slot]! += moreReceived;
    },
    settle(isKnown, complete) {
      settled = counting;
      for (let slot = 0; slot < ids.length; slot++) {
        if (counting.failing[slot] === 1) quietWalks[slot] = 0;
        else if (complete) quietWalks[slot] = Math.min(QUIET_WALKS_MAX, quietWalks[slot]! + 1);
      }
      forgetIdle(isKnown);
    },
    forgetIdle,
    view: () => ({
      slots: ids.length,
      ids: ids.slice(),
      // A node first seen after the counts were settled has none: its column is widened with zeros.
      counts: settled.counts.map((column) => widened(column, ids.length)),
      recent: settled.recent.map((column) => widened(column, ids.length)),
      quietWalks: quietWalks.slice(0, ids.length),
      sentBytes: sent.slice(0, ids.length),
      receivedBytes: received.slice(0, ids.length),
    }),
  };
}

const createTally = (length: number) => ({
  counts: SESSION_STATUSES.map(() => new Float64Array(length)),
  recent: SESSION_STATUSES.map(() => new Float64Array(length)),
  failing: new Uint8Array(length),
});

function widenedBytes(column: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const wider = new Uint8Array(length);
  wider.set(column.subarray(0, length));
  return wider;
}

function widened(column: Float64Array, length: number): Float64Array<ArrayBuffer> {
  const wider = new Float64Array(length);
  wider.set(column.subarray(0, length));
  return wider;
}
