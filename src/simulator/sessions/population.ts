import type { Prospect } from "./demand.ts";
import type { SimulatedNode } from "../fleet/node.ts";
import { COUNTRIES } from "../fleet/locations.ts";
import { createSessions, freeSlot, NONE, type Sessions, STATE, TYPES, takeSlot } from "./sessions.ts";
import { beginMoving, createTally, endMoving, type Tally } from "./byte-counter.ts";

/**
 * The sessions that are there, and every count of them, in step: each function of this file moves one session on and
 * books it everywhere. Times are milliseconds since the start of the simulation.
 */
export interface Population {
  readonly sessions: Sessions;
  /** The first living session of each node, by its index. */
  readonly heads: number[];
  /** An account of each node, by its index, and one of all. */
  readonly nodes: Tally[];
  readonly all: Tally;
  /** Active sessions by index of country, and of type. */
  readonly byCountry: Int32Array;
  readonly byType: Int32Array;
  /** Sum of the starts of the active sessions. */
  startSum: number;
  /** Sessions that ever entered. */
  entered: number;
  /** Most active sessions at once since the owner last set it. */
  peak: number;
}

/** Room for `slots` sessions on `nodes` nodes, and none there. */
export function createPopulation(slots: number, nodes: number): Population {
  return {
    sessions: createSessions(slots),
    heads: Array.from({ length: nodes }, () => NONE),
    nodes: Array.from({ length: nodes }, createTally),
    all: createTally(),
    byCountry: new Int32Array(COUNTRIES.length),
    byType: new Int32Array(TYPES.length),
    startSum: 0,
    entered: 0,
    peak: 0,
  };
}

/** Makes room for another node, with the next index. */
export function addNode({ heads, nodes }: Population): void {
  heads.push(NONE);
  nodes.push(createTally());
}

/** A session begins to connect to a node. Returns its slot; null when there is no room for another. */
export function enter(
  population: Population,
  node: SimulatedNode,
  prospect: Prospect,
  customer: number,
  at: number,
): number | null {
  const { sessions } = population;
  const slot = takeSlot(sessions);
  if (slot === null) return null;
  sessions.generation[slot]! += 1;
  sessions.state[slot] = STATE.connecting;
  sessions.type[slot] = prospect.type;
  sessions.destiny[slot] = prospect.destiny;
  sessions.node[slot] = node.index;
  sessions.country[slot] = node.countryIndex;
  sessions.customer[slot] = customer;
  sessions.startedAt[slot] = at;
  sessions.endedAt[slot] = Number.NaN;
  sessions.nextAt[slot] = Number.NaN;
  sessions.rate[slot] = prospect.rate;
  sessions.movingSince[slot] = Number.NaN;
  sessions.moved[slot] = 0;
  sessions.quietSince[slot] = at;
  link(population, slot, node.index);
  sessions.roster.join(slot, STATE.connecting);
  population.entered += 1;
  return slot;
}

/** A connecting session is established, and moves bytes from now on. */
export function activate(population: Population, slot: number, at: number): void {
  const { sessions, all } = population;
  regroup(sessions, slot, STATE.active);
  const rate = sessions.rate[slot]!;
  sessions.movingSince[slot] = at;
  for (const tally of [all, population.nodes[sessions.node[slot]!]!]) {
    tally.active += 1;
    beginMoving(tally, rate, at);
  }
  population.byCountry[sessions.country[slot]!]! += 1;
  population.byType[sessions.type[slot]!]! += 1;
  population.startSum += sessions.startedAt[slot]!;
  population.peak = Math.max(population.peak, all.active);
}

/** An active session ceases to move bytes, and stays. */
export function fallQuiet(population: Population, slot: number, at: number): void {
  const { sessions } = population;
  const since = sessions.movingSince[slot]!;
  if (Number.isNaN(since)) return;
  const rate = sessions.rate[slot]!;
  sessions.moved[slot]! += rate * (at - since);
  sessions.movingSince[slot] = Number.NaN;
  sessions.quietSince[slot] = at;
  endMoving(population.all, rate, since, at);
  endMoving(population.nodes[sessions.node[slot]!]!, rate, since, at);
}

/** A living session ends, in that state; it can still be read until it is forgotten. */
export function end(population: Population, slot: number, at: number, state: number): void {
  const { sessions } = population;
  if (sessions.state[slot] === STATE.active) {
    fallQuiet(population, slot, at);
    population.all.active -= 1;
    population.nodes[sessions.node[slot]!]!.active -= 1;
    population.byCountry[sessions.country[slot]!]! -= 1;
    population.byType[sessions.type[slot]!]! -= 1;
    population.startSum -= sessions.startedAt[slot]!;
  }
  unlink(population, slot);
  regroup(sessions, slot, state);
  sessions.endedAt[slot] = at;
  sessions.nextAt[slot] = Number.NaN;
}

/** A session that ended is read no more; its slot is free for another. */
export function forget(population: Population, slot: number): void {
  const { sessions } = population;
  sessions.roster.leave(slot, sessions.state[slot]!);
  freeSlot(sessions, slot);
}

function regroup(sessions: Sessions, slot: number, state: number): void {
  sessions.roster.regroup(slot, sessions.state[slot]!, state);
  sessions.state[slot] = state;
}

function link(population: Population, slot: number, node: number): void {
  const { sessions, heads } = population;
  const head = heads[node]!;
  sessions.next[slot] = head;
  sessions.previous[slot] = NONE;
  if (head !== NONE) sessions.previous[head] = slot;
  heads[node] = slot;
}

function unlink(population: Population, slot: number): void {
  const { sessions, heads } = population;
  const next = sessions.next[slot]!;
  const previous = sessions.previous[slot]!;
  if (next !== NONE) sessions.previous[next] = previous;
  if (previous === NONE) heads[sessions.node[slot]!] = next;
  else sessions.next[previous] = next;
}
