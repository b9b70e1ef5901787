import type { SessionStatus, SessionType } from "../../model/session.ts";
import type { EpochMs } from "../../model/time.ts";
import { createGroupedList, type GroupedList } from "./ordered-groups.ts";

/** States of a simulated session; columns and the roster's groups hold indexes into it. */
export const SESSION_STATES = ["connecting", "active", "closed", "error", "timeout"] as const satisfies SessionStatus[];
export type SessionState = (typeof SESSION_STATES)[number];

/** Index of each state in {@link SESSION_STATES}. */
export const STATE_INDEX = { connecting: 0, active: 1, closed: 2, error: 3, timeout: 4 } as const satisfies Record<
  SessionState,
  number
>;

/** Types of sessions; columns hold indexes into it. */
export const SESSION_KINDS = ["socks5", "http", "https", "websocket"] as const satisfies SessionType[];

/** No session: the end of a list of slots. */
export const NO_SESSION = -1;

/**
 * Sessions in columns: index `slot` of each speaks of the session in that slot, of which there may be hundreds of
 * thousands. Times are milliseconds since the start of the simulation, so that products of rates and times stay exact.
 */
export interface SessionColumns {
  readonly slots: number;
  /** How many sessions the slot has held. */
  readonly generation: Uint32Array;
  readonly state: Uint8Array;
  readonly type: Uint8Array;
  /** The state in which it will end, if nobody ends it before. */
  readonly finalState: Uint8Array;
  /** Index of the node that carries it; {@link NO_SESSION} in a free slot. */
  readonly node: Int32Array;
  /** Index of its country, which is its node's. */
  readonly country: Uint8Array;
  readonly customer: Int32Array;
  readonly startedAt: Float64Array;
  /** When it ended; or, while it lives, NaN. */
  readonly endedAt: Float64Array;
  /** When its next transition is due; what the agenda holds for other times is overtaken. */
  readonly nextAt: Float64Array;
  /** Bytes a millisecond while it moves bytes. */
  readonly rate: Float64Array;
  /** Since when it moves bytes at its rate; NaN: it does not. */
  readonly transferringSince: Float64Array;
  /** Bytes moved before {@link movingSince}. */
  readonly transferredBytes: Float64Array;
  /** When it last moved any. */
  readonly idleSince: Float64Array;
  /** Neighbours among the living sessions of its node. */
  readonly next: Int32Array;
  readonly previous: Int32Array;
  /** All that can be read, in the order of their starts. */
  readonly ordered: GroupedList;
  /** Slots that held a session and hold none now: the first `freeCount` of them. */
  readonly freeSlots: Int32Array;
  freeCount: number;
  /** Slots from this one on have never held a session. */
  firstUnusedSlot: number;
}

/** Room for `slots` sessions. Nothing is written yet: memory that no session ever needs is never touched. */
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

/** Bytes that a session has moved by `at`, both ways together. */
export function bytesMovedBy(sessions: SessionColumns, slot: number, at: EpochMs): number {
  const since = sessions.transferringSince[slot]!;
  return sessions.transferredBytes[slot]! + (Number.isNaN(since) ? 0 : (at - since) * sessions.rate[slot]!);
}

/** Takes a slot for a new session; null when all hold one. */
export function takeSlot(sessions: SessionColumns): number | null {
  if (sessions.freeCount > 0) {
    sessions.freeCount -= 1;
    return sessions.freeSlots[sessions.freeCount]!;
  }
  if (sessions.firstUnusedSlot === sessions.slots) return null;
  sessions.firstUnusedSlot += 1;
  return sessions.firstUnusedSlot - 1;
}

/** Gives back the slot of a session that is forgotten. */
export function freeSlot(sessions: SessionColumns, slot: number): void {
  sessions.node[slot] = NO_SESSION;
  sessions.freeSlots[sessions.freeCount] = slot;
  sessions.freeCount += 1;
}

/** Whether the `generation`th session of a slot can still be read. The first session of a slot is its generation 1. */
export const isReadable = (sessions: SessionColumns, slot: number, generation: number): boolean =>
  generation > 0 && sessions.generation[slot] === generation && sessions.node[slot] !== NO_SESSION;
