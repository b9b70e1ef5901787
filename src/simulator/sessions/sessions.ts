import type { SessionStatus, SessionType } from "../../model/session.ts";
import { createGroupedList, type GroupedList } from "./ordered-groups.ts";

/** States of a simulated session. Columns and groups hold indexes into this list. */
export const SESSION_STATES = ["connecting", "active", "closed", "error", "timeout"] as const satisfies SessionStatus[];
type SessionState = (typeof SESSION_STATES)[number];

/** Index of each state in {@link SESSION_STATES}. */
export const STATE_INDEX = { connecting: 0, active: 1, closed: 2, error: 3, timeout: 4 } as const satisfies Record<
  SessionState,
  number
>;

/** Types of sessions. Columns hold indexes into this list. */
export const SESSION_KINDS = ["socks5", "http", "https", "websocket"] as const satisfies SessionType[];

/** Marks a free slot and the end of a list of slots. */
export const NO_SESSION = -1;

/**
 * Hundreds of thousands of sessions in columns, indexed by slot. Times are in milliseconds since the start of the
 * simulation, so that products of rates and times stay exact.
 */
export interface SessionColumns {
  readonly slots: number;
  /** Number of sessions that the slot has held. */
  readonly generation: Uint32Array;
  readonly state: Uint8Array;
  readonly type: Uint8Array;
  /** State in which the session will end, unless its node or an operator ends it earlier. */
  readonly finalState: Uint8Array;
  /** Index of the node; {@link NO_SESSION} in a free slot. */
  readonly node: Int32Array;
  /** Index of the node's country. */
  readonly country: Uint8Array;
  readonly customer: Int32Array;
  readonly startedAt: Float64Array;
  /** NaN if the session is open. */
  readonly endedAt: Float64Array;
  /** Planned duration of the transfer. */
  readonly activeMs: Float64Array;
  /** Time of the next transition. Events in the queue with another time are outdated. */
  readonly nextAt: Float64Array;
  /** Transfer rate in bytes per millisecond. */
  readonly rate: Float64Array;
  /** Start of the current transfer, or NaN if there is none. */
  readonly transferringSince: Float64Array;
  /** Bytes transferred before {@link transferringSince}. */
  readonly transferredBytes: Float64Array;
  /** End of the last transfer. */
  readonly idleSince: Float64Array;
  /** Next and previous open session of the same node. */
  readonly next: Int32Array;
  readonly previous: Int32Array;
  /** All readable sessions, in the order of their starts. */
  readonly ordered: GroupedList;
  /** A stack of released slots with `freeCount` entries. */
  readonly freeSlots: Int32Array;
  freeCount: number;
  /** The first slot that has never been used. */
  firstUnusedSlot: number;
}

/** Allocates columns for `slots` sessions without initializing them, so that unused memory is never touched. */
export function createSessions(slots: number): SessionColumns {
  return {
    slots,
    generation: new Uint32Array(slots),
    state: new Uint8Array(slots),
    type: new Uint8Array(slots),
    finalState: new Uint8Array(slots),
    node: new Int32Array(slots),
    country: new Uint8Array(slots),
    customer: new Int32Array(slots),
    startedAt: new Float64Array(slots),
    endedAt: new Float64Array(slots),
    activeMs: new Float64Array(slots),
    nextAt: new Float64Array(slots),
    rate: new Float64Array(slots),
    transferringSince: new Float64Array(slots),
    transferredBytes: new Float64Array(slots),
    idleSince: new Float64Array(slots),
    next: new Int32Array(slots),
    previous: new Int32Array(slots),
    ordered: createGroupedList(slots, SESSION_STATES.length),
    freeSlots: new Int32Array(slots),
    freeCount: 0,
    firstUnusedSlot: 0,
  };
}

/** Returns the bytes that a session has transferred by `at`, in both directions. */
export function bytesMovedBy(sessions: SessionColumns, slot: number, at: number): number {
  const since = sessions.transferringSince[slot]!;
  return sessions.transferredBytes[slot]! + (Number.isNaN(since) ? 0 : (at - since) * sessions.rate[slot]!);
}

/** Allocates a slot for a new session. Returns null if all slots are in use. */
export function takeSlot(sessions: SessionColumns): number | null {
  if (sessions.freeCount > 0) {
    sessions.freeCount -= 1;
    return sessions.freeSlots[sessions.freeCount]!;
  }
  if (sessions.firstUnusedSlot === sessions.slots) return null;
  sessions.firstUnusedSlot += 1;
  return sessions.firstUnusedSlot - 1;
}

/** Releases a slot. */
export function freeSlot(sessions: SessionColumns, slot: number): void {
  sessions.node[slot] = NO_SESSION;
  sessions.freeSlots[sessions.freeCount] = slot;
  sessions.freeCount += 1;
}

/** Returns whether session number `generation` of a slot, counted from 1, is readable. */
export const isReadable = (sessions: SessionColumns, slot: number, generation: number): boolean =>
  generation > 0 && sessions.generation[slot] === generation && sessions.node[slot] !== NO_SESSION;
