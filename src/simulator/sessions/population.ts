import { COUNTRIES } from "../fleet/locations.ts";
import type { SimulatedNode } from "../fleet/node.ts";
import { type ByteCounter, createByteCounter, startTransfer, stopTransfer } from "./byte-counter.ts";
import type { SessionPlan } from "./demand.ts";
import {
  createSessions,
  freeSlot,
  NO_SESSION,
  SESSION_KINDS,
  type SessionColumns,
  STATE_INDEX,
  takeSlot,
} from "./sessions.ts";

/**
 * The sessions and their statistics. Each function of this file changes one session and updates all counts. Times are
 * in milliseconds since the start of the simulation.
 */
export interface Population {
  readonly sessions: SessionColumns;
  /** The first open session of each node, by node index. */
  readonly firstSessions: number[];
  /** Counters of each node, by node index. */
  readonly nodes: ByteCounter[];
  readonly all: ByteCounter;
  /** Active sessions by country index. */
  readonly byCountry: Int32Array;
  /** Active sessions by type index. */
  readonly byType: Int32Array;
  /** Sum of the start times of the active sessions. */
  startSum: number;
  /** Number of sessions added since the start of the simulation. */
  enteredCount: number;
  /** Largest number of concurrently active sessions since the caller last set it. */
  peakActive: number;
}

/** Creates an empty population for `slots` sessions on `nodes` nodes. */
export function createPopulation(slots: number, nodes: number): Population {
  return {
    sessions: createSessions(slots),
    firstSessions: Array.from({ length: nodes }, () => NO_SESSION),
    nodes: Array.from({ length: nodes }, createByteCounter),
    all: createByteCounter(),
    byCountry: new Int32Array(COUNTRIES.length),
    byType: new Int32Array(SESSION_KINDS.length),
    startSum: 0,
    enteredCount: 0,
    peakActive: 0,
  };
}

/** Adds a node with the next index. */
export function addNode({ firstSessions, nodes }: Population): void {
  firstSessions.push(NO_SESSION);
  nodes.push(createByteCounter());
}

/** Adds a connecting session. Returns its slot, or null if all slots are in use. */
export function addSession(
  population: Population,
  node: SimulatedNode,
  plan: SessionPlan,
  customer: number,
  at: number,
): number | null {
  const { sessions } = population;
  const slot = takeSlot(sessions);
  if (slot === null) return null;
  sessions.generation[slot]! += 1;
  sessions.state[slot] = STATE_INDEX.connecting;
  sessions.type[slot] = plan.type;
  sessions.finalState[slot] = plan.finalState;
  sessions.node[slot] = node.index;
  sessions.country[slot] = node.countryIndex;
  sessions.customer[slot] = customer;
  sessions.startedAt[slot] = at;
  sessions.endedAt[slot] = Number.NaN;
  sessions.activeMs[slot] = plan.activeMs;
  sessions.nextAt[slot] = Number.NaN;
  sessions.rate[slot] = plan.rate;
  sessions.transferringSince[slot] = Number.NaN;
  sessions.transferredBytes[slot] = 0;
  sessions.idleSince[slot] = at;
  linkToNode(population, slot, node.index);
  sessions.ordered.join(slot, STATE_INDEX.connecting);
  population.enteredCount += 1;
  return slot;
}

/** Establishes a connecting session and starts its transfer. */
export function activateSession(population: Population, slot: number, at: number): void {
  const { sessions, all } = population;
  moveToState(sessions, slot, STATE_INDEX.active);
  const rate = sessions.rate[slot]!;
  sessions.transferringSince[slot] = at;
  for (const counter of [all, population.nodes[sessions.node[slot]!]!]) {
    counter.active += 1;
    startTransfer(counter, rate, at);
  }
  population.byCountry[sessions.country[slot]!]! += 1;
  population.byType[sessions.type[slot]!]! += 1;
  population.startSum += sessions.startedAt[slot]!;
  population.peakActive = Math.max(population.peakActive, all.active);
}

/** Ends the transfer of an active session, which stays open. */
export function makeIdle(population: Population, slot: number, at: number): void {
  const { sessions } = population;
  const since = sessions.transferringSince[slot]!;
  if (Number.isNaN(since)) return;
  const rate = sessions.rate[slot]!;
  sessions.transferredBytes[slot]! += rate * (at - since);
  sessions.transferringSince[slot] = Number.NaN;
  sessions.idleSince[slot] = at;
  stopTransfer(population.all, rate, since, at);
  stopTransfer(population.nodes[sessions.node[slot]!]!, rate, since, at);
}

/** Ends an open session. It stays readable until {@link removeSession}. */
export function closeSession(population: Population, slot: number, at: number, state: number): void {
  const { sessions } = population;
  if (sessions.state[slot] === STATE_INDEX.active) {
    makeIdle(population, slot, at);
    population.all.active -= 1;
    population.nodes[sessions.node[slot]!]!.active -= 1;
    population.byCountry[sessions.country[slot]!]! -= 1;
    population.byType[sessions.type[slot]!]! -= 1;
    population.startSum -= sessions.startedAt[slot]!;
  }
  unlinkFromNode(population, slot);
  moveToState(sessions, slot, state);
  sessions.endedAt[slot] = at;
}

/** Removes an ended session and frees its slot. */
export function removeSession(population: Population, slot: number): void {
  const { sessions } = population;
  sessions.nextAt[slot] = Number.NaN;
  sessions.ordered.leave(slot, sessions.state[slot]!);
  freeSlot(sessions, slot);
}

function moveToState(sessions: SessionColumns, slot: number, state: number): void {
  sessions.ordered.regroup(slot, sessions.state[slot]!, state);
  sessions.state[slot] = state;
}

function linkToNode(population: Population, slot: number, node: number): void {
  const { sessions, firstSessions } = population;
  const head = firstSessions[node]!;
  sessions.next[slot] = head;
  sessions.previous[slot] = NO_SESSION;
  if (head !== NO_SESSION) sessions.previous[head] = slot;
  firstSessions[node] = slot;
}

function unlinkFromNode(population: Population, slot: number): void {
  const { sessions, firstSessions } = population;
  const next = sessions.next[slot]!;
  const previous = sessions.previous[slot]!;
  if (next !== NO_SESSION) sessions.previous[next] = previous;
  if (previous === NO_SESSION) firstSessions[sessions.node[slot]!] = next;
  else sessions.next[previous] = next;
}
