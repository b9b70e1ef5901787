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
 * The sessions that are there, and every count of them, in step: each function of this file moves one session on and
 * books it everywhere. Times are milliseconds since the start of the simulation.
 */
export interface Population {
  readonly sessions: SessionColumns;
  /** The first living session of each node, by its index. */
  readonly firstSessions: number[];
  /** An account of each node, by its index, and one of all. */
  readonly nodes: ByteCounter[];
  readonly all: ByteCounter;
  /** Active sessions by index of country, and of type. */
  readonly byCountry: Int32Array;
  readonly byType: Int32Array;
  /** Sum of the starts of the active sessions. */
  startSum: number;
  /** Sessions that ever entered. */
  enteredCount: number;
  /** Most active sessions at once since the owner last set it. */
  peakActive: number;
}

/** Room for `slots` sessions on `nodes` nodes, and none there. */
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

/** Makes room for another node, with the next index. */
export function addNode({ firstSessions: heads, nodes }: Population): void {
  heads.push(NO_SESSION);
  nodes.push(createByteCounter());
}

/** A session begins to connect to a node. Returns its slot; null when there is no room for another. */
export function addSession(
  population: Population,
  node: SimulatedNode,
  sessionPlan: SessionPlan,
  customer: number,
  at: number,
): number | null {
  const { sessions } = population;
  const slot = takeSlot(sessions);
  if (slot === null) return null;
  sessions.generation[slot]! += 1;
  sessions.state[slot] = STATE_INDEX.connecting;
  sessions.type[slot] = sessionPlan.type;
  sessions.finalState[slot] = sessionPlan.finalState;
  sessions.node[slot] = node.index;
  sessions.country[slot] = node.countryIndex;
  sessions.customer[slot] = customer;
  sessions.startedAt[slot] = at;
  sessions.endedAt[slot] = Number.NaN;
  sessions.nextAt[slot] = Number.NaN;
  sessions.rate[slot] = sessionPlan.rate;
  sessions.transferringSince[slot] = Number.NaN;
  sessions.transferredBytes[slot] = 0;
  sessions.idleSince[slot] = at;
  linkToNode(population, slot, node.index);
  sessions.ordered.join(slot, STATE_INDEX.connecting);
  population.enteredCount += 1;
  return slot;
}

/** A connecting session is established, and moves bytes from now on. */
export function activateSession(population: Population, slot: number, at: number): void {
  const { sessions, all } = population;
  moveToState(sessions, slot, STATE_INDEX.active);
  const rate = sessions.rate[slot]!;
  sessions.transferringSince[slot] = at;
  for (const byteCounter of [all, population.nodes[sessions.node[slot]!]!]) {
    byteCounter.active += 1;
    startTransfer(byteCounter, rate, at);
  }
  population.byCountry[sessions.country[slot]!]! += 1;
  population.byType[sessions.type[slot]!]! += 1;
  population.startSum += sessions.startedAt[slot]!;
  population.peakActive = Math.max(population.peakActive, all.active);
}

/** An active session ceases to move bytes, and stays. */
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

/** A living session ends, in that state; it can still be read until it is forgotten. */
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
  sessions.nextAt[slot] = Number.NaN;
}

/** A session that ended is read no more; its slot is free for another. */
export function removeSession(population: Population, slot: number): void {
  const { sessions } = population;
  sessions.ordered.leave(slot, sessions.state[slot]!);
  freeSlot(sessions, slot);
}

function moveToState(sessions: SessionColumns, slot: number, state: number): void {
  sessions.ordered.regroup(slot, sessions.state[slot]!, state);
  sessions.state[slot] = state;
}

function linkToNode(population: Population, slot: number, node: number): void {
  const { sessions, firstSessions: heads } = population;
  const head = heads[node]!;
  sessions.next[slot] = head;
  sessions.previous[slot] = NO_SESSION;
  if (head !== NO_SESSION) sessions.previous[head] = slot;
  heads[node] = slot;
}

function unlinkFromNode(population: Population, slot: number): void {
  const { sessions, firstSessions: heads } = population;
  const next = sessions.next[slot]!;
  const previous = sessions.previous[slot]!;
  if (next !== NO_SESSION) sessions.previous[next] = previous;
  if (previous === NO_SESSION) heads[sessions.node[slot]!] = next;
  else sessions.next[previous] = next;
}
