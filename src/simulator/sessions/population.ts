import type { SessionStatus, SessionType } from "../../model/session.ts";
import type { SimulatedNode } from "../fleet/node.ts";
import type { SessionPlan } from "./demand.ts";

/** States of a simulated session. */
export const SESSION_STATES = ["connecting", "active", "closed", "error", "timeout"] as const satisfies SessionStatus[];
export type SessionState = (typeof SESSION_STATES)[number];
export const OPEN_STATES: readonly SessionState[] = ["connecting", "active"];

/** A simulated session. Times are in milliseconds since the start of the simulation. */
export interface Session {
  /** The sessions are numbered in the order of their starts. */
  readonly number: number;
  state: SessionState;
  readonly type: Exclude<SessionType, "unknown">;
  /** State in which the session will end, unless its node or an operator ends it earlier. */
  readonly finalState: SessionState;
  readonly node: SimulatedNode;
  readonly customer: number;
  readonly startedAt: number;
  /** NaN if the session is open. */
  endedAt: number;
  /** Planned duration of the transfer. */
  readonly activeMs: number;
  /** Time of the next transition. Events in the queue with another time are outdated. */
  nextAt: number;
  /** Transfer rate in bytes per millisecond. */
  readonly rate: number;
  /** Start of the current transfer, or NaN if there is none. */
  transferringSince: number;
  /** Bytes transferred before {@link transferringSince}. */
  transferredBytes: number;
  /** End of the last transfer. */
  idleSince: number;
}

/** The sessions and their counts. Each function of this file that changes a session updates all counts. */
export interface Population {
  /** All readable sessions by number. */
  readonly sessions: Map<number, Session>;
  /** Readable sessions by state. */
  readonly counts: Record<SessionState, number>;
  /** Bytes of the sessions that have ended. */
  endedBytes: number;
  /** Number of all sessions ever added. */
  addedCount: number;
  /** The same without those that were ongoing at the start of the simulation. */
  enteredCount: number;
  /** Largest number of concurrently active sessions since the caller last set it. */
  peakActive: number;
}

/** Creates an empty population. */
export const createPopulation = (): Population => ({
  sessions: new Map(),
  counts: { connecting: 0, active: 0, closed: 0, error: 0, timeout: 0 },
  endedBytes: 0,
  addedCount: 0,
  enteredCount: 0,
  peakActive: 0,
});

/** Adds a connecting session. */
export function addSession(
  population: Population,
  node: SimulatedNode,
  { type, finalState, activeMs, rate }: SessionPlan,
  customer: number,
  at: number,
): Session {
  const session: Session = {
    number: population.addedCount++,
    state: "connecting",
    ...{ type, finalState, activeMs, rate, node, customer },
    startedAt: at,
    endedAt: Number.NaN,
    nextAt: Number.NaN,
    transferringSince: Number.NaN,
    transferredBytes: 0,
    idleSince: at,
  };
  population.sessions.set(session.number, session);
  population.counts.connecting++;
  population.enteredCount++;
  node.openSessions.add(session);
  return session;
}

/** Starts the transfer of a connecting session. */
export function activateSession(population: Population, session: Session, at: number): void {
  moveToState(population, session, "active");
  session.transferringSince = at;
  population.peakActive = Math.max(population.peakActive, population.counts.active);
}

/** Ends the transfer of an active session, which stays open. */
export function makeIdle(session: Session, at: number): void {
  if (Number.isNaN(session.transferringSince)) return;
  session.transferredBytes = bytesMovedBy(session, at);
  session.transferringSince = Number.NaN;
  session.idleSince = at;
}

/** Ends an open session. It stays readable until {@link removeSession}. */
export function closeSession(population: Population, session: Session, at: number, state: SessionState): void {
  makeIdle(session, at);
  moveToState(population, session, state);
  session.endedAt = at;
  session.node.openSessions.delete(session);
  session.node.endedBytes += session.transferredBytes;
  population.endedBytes += session.transferredBytes;
}

/** Removes an ended session. */
export function removeSession(population: Population, session: Session): void {
  population.counts[session.state]--;
  population.sessions.delete(session.number);
}

function moveToState({ counts }: Population, session: Session, state: SessionState): void {
  counts[session.state]--;
  counts[state]++;
  session.state = state;
}

/** Returns the bytes that a session has transferred by `at`, in both directions. */
export const bytesMovedBy = ({ transferredBytes, transferringSince, rate }: Session, at: number): number =>
  transferredBytes + (Number.isNaN(transferringSince) ? 0 : (at - transferringSince) * rate);

/** Returns the bytes that all sessions of a node have transferred by `at`. */
export function bytesOfNode({ endedBytes, openSessions }: SimulatedNode, at: number): number {
  let bytes = endedBytes;
  for (const session of openSessions) bytes += bytesMovedBy(session, at);
  return bytes;
}

/** Returns the bytes that all sessions have transferred by `at`. */
export function bytesOfAll({ endedBytes, sessions }: Population, at: number): number {
  let bytes = endedBytes;
  for (const session of sessions.values()) if (Number.isNaN(session.endedAt)) bytes += bytesMovedBy(session, at);
  return bytes;
}

/** Converts bytes to GB (1e9 bytes), rounded to three decimals. */
export const gigabytes = (bytes: number): number => Number((bytes / 1e9).toFixed(3));

/** Returns the number of readable sessions in some states. */
export const countSessions = (counts: Population["counts"], states: readonly SessionState[]): number =>
  states.reduce((sum, state) => sum + counts[state], 0);

/** Returns the readable sessions in some states from position `from` to `to` (excluded), in the order of their starts. */
export function sessionsIn(
  { sessions }: Population,
  states: readonly SessionState[],
  from = 0,
  to = Number.POSITIVE_INFINITY,
): Session[] {
  const found: Session[] = [];
  let position = 0;
  for (const session of sessions.values()) {
    if (position >= to) break;
    if (states.includes(session.state) && position++ >= from) found.push(session);
  }
  return found;
}
