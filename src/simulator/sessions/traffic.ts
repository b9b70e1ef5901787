import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { type Random, seededRandom } from "../../base/random.ts";
import type { Scenario } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { createEventQueue, type EventQueue } from "../event-queue.ts";
import type { Fleet, SessionEnding } from "../fleet/fleet.ts";
import { isFailing, type SimulatedNode } from "../fleet/node.ts";
import { exponential, scramble } from "../hash.ts";
import {
  customerCount,
  demandAt,
  drawNewSession,
  drawOngoingSession,
  nextCustomer,
  SESSION_MS_MEAN,
} from "./demand.ts";
import { createFifoQueue, type FifoQueue } from "./fifo-queue.ts";
import {
  activateSession,
  addSession,
  closeSession,
  createPopulation,
  makeIdle,
  type Population,
  removeSession,
} from "./population.ts";
import { NO_SESSION, STATE_INDEX } from "./sessions.ts";

/** How long a session takes to be established. */
const CONNECTING_MS: DurationMs = 1_500;
/** How long a quiet session stays before the inactivity time-out ends it. */
const INACTIVITY_MS: DurationMs = 5 * MINUTE_MS;
/** How long a session that ended can still be read. Longer than connecting: a slot in that queue stays its session's. */
const ENDED_KEPT_MS: DurationMs = 5 * MINUTE_MS;
/** How long clients that lost their session take to come back, on average. */
const RECONNECT_MS_MEAN: DurationMs = 10 * SECOND_MS;
/** Of sessions that are lost with their node. */
const LOST_AS_TIMEOUT_SHARE = 0.3;
/** Room for the living, for as many that an outage ended at once, and for those that ended of themselves. */
const SLOTS_PER_SESSION = 3;
const SLOTS_MIN = 64;

/** How sessions come and go. Times are milliseconds since the start of the simulation. */
export interface Traffic {
  readonly startMs: EpochMs;
  readonly fleet: Fleet;
  readonly random: Random;
  readonly population: Population;
  /** Sessions of the average node at demand's mean over the day, by the size of the fleet at the start. */
  readonly perNode: number;
  /** Sessions at demand's mean over the day. */
  readonly target: number;
  readonly customers: number;
  /** Slots by their next transition; an entry that is not its slot's `nextAt` is overtaken. */
  readonly eventQueue: EventQueue;
  readonly connecting: FifoQueue;
  readonly ended: FifoQueue;
  /** Sessions that were cut and whose clients have not come back yet. */
  pendingReconnects: number;
  /** When the next session starts; not rounded, as rounding would thin out dense arrivals. */
  arrivalAt: number;
}

/** As many sessions as the scenario says, in mid-life, spread over the nodes that serve. */
export function createTraffic(scenario: Scenario, startMs: EpochMs, fleet: Fleet): Traffic {
  const slots = Math.max(SLOTS_MIN, scenario.sessions * SLOTS_PER_SESSION);
  const traffic: Traffic = {
    startMs,
    fleet,
    random: seededRandom(scramble(scenario.seed)),
    population: createPopulation(slots, scenario.nodes),
    perNode: scenario.sessions / Math.max(1, scenario.nodes),
    target: scenario.sessions,
    customers: customerCount(scenario.sessions),
    eventQueue: createEventQueue(),
    connecting: createFifoQueue(slots),
    ended: createFifoQueue(slots),
    pendingReconnects: 0,
    arrivalAt: 0,
  };
  populate(traffic);
  scheduleArrival(traffic, 0);
  return traffic;
}

/** When the next event is due. */
export const nextTrafficEvent = (traffic: Traffic): number =>
  Math.min(traffic.eventQueue.nextAt(), nextConnectedAt(traffic), nextRemovedAt(traffic), Math.ceil(traffic.arrivalAt));

/** Lets the next event happen, at its own time. */
export function runTrafficEvent(traffic: Traffic): void {
  const at = nextTrafficEvent(traffic);
  if (traffic.eventQueue.nextAt() === at) advanceSession(traffic, at);
  else if (nextConnectedAt(traffic) === at) establishNext(traffic, at);
  else if (nextRemovedAt(traffic) === at) {
    removeSession(traffic.population, traffic.ended.first()!);
    traffic.ended.shift();
  } else startArrival(traffic, at);
}

/** Ends every living session of a node; their clients come back, elsewhere if need be. Returns how many there were. */
export function cutSessions(traffic: Traffic, node: SimulatedNode, at: number, ending: SessionEnding): number {
  const { firstSessions: heads } = traffic.population;
  let count = 0;
  for (let slot = heads[node.index]!; slot !== NO_SESSION; slot = heads[node.index]!) {
    const lostAs = traffic.random() < LOST_AS_TIMEOUT_SHARE ? STATE_INDEX.timeout : STATE_INDEX.error;
    endSession(traffic, slot, at, ending === "closed" ? STATE_INDEX.closed : lostAs);
    count += 1;
  }
  traffic.pendingReconnects += count;
  if (count > 0) scheduleArrival(traffic, at);
  return count;
}

function populate(traffic: Traffic): void {
  const { fleet, random, population } = traffic;
  const standing = Array.from({ length: traffic.target }, () => {
    const node = fleet.servingNodes.choose(random);
    return node === null ? null : { node, prospect: drawOngoingSession(random, isFailing(node)) };
  }).filter((one) => one !== null);
  // The roster goes by the order of starts.
  standing.sort((one, other) => other.prospect.ageMs - one.prospect.ageMs);
  for (const { node, prospect: sessionPlan } of standing) {
    const slot = addSession(
      population,
      node,
      sessionPlan,
      nextCustomer(random, traffic.customers),
      -sessionPlan.ageMs,
    )!;
    activateSession(population, slot, -sessionPlan.ageMs);
    schedule(traffic, slot, sessionPlan.activeMs);
  }
  population.enteredCount = 0;
}

/** The next arrival after `at`. Arrivals are a Poisson process, so drawing it anew when their rate changes is sound. */
function scheduleArrival(traffic: Traffic, at: number): void {
  const [fresh, returning] = arrivalRates(traffic, at);
  traffic.arrivalAt = at + exponential(1 / (fresh + returning), traffic.random());
}

/** Sessions a millisecond: those that demand brings, and those of clients that come back. */
function arrivalRates(traffic: Traffic, at: number): [fresh: number, returning: number] {
  const demand = traffic.target * demandAt(traffic.startMs + at);
  return [demand / (SESSION_MS_MEAN + CONNECTING_MS), traffic.pendingReconnects / RECONNECT_MS_MEAN];
}

function startArrival(traffic: Traffic, at: number): void {
  const { random, population } = traffic;
  const [fresh, returning] = arrivalRates(traffic, at);
  const node = traffic.fleet.servingNodes.choose(random);
  if (node !== null) {
    if (random() * (fresh + returning) < returning) traffic.pendingReconnects -= 1;
    const sessionPlan = drawNewSession(random, isFailing(node));
    const slot = addSession(population, node, sessionPlan, nextCustomer(random, traffic.customers), at);
    if (slot !== null) {
      traffic.connecting.push(slot);
      schedule(traffic, slot, at + CONNECTING_MS + sessionPlan.activeMs);
    }
  }
  scheduleArrival(traffic, traffic.arrivalAt);
}

function establishNext(traffic: Traffic, at: number): void {
  const slot = traffic.connecting.first()!;
  traffic.connecting.shift();
  if (traffic.population.sessions.state[slot] === STATE_INDEX.connecting) activateSession(traffic.population, slot, at);
}

/** A session's time has come: it ends, or falls quiet first if it will be ended by the inactivity time-out. */
function advanceSession(traffic: Traffic, at: number): void {
  const { sessions } = traffic.population;
  const slot = traffic.eventQueue.take();
  if (sessions.nextAt[slot] !== at) return;
  const finalState = sessions.finalState[slot]!;
  if (finalState === STATE_INDEX.timeout && !Number.isNaN(sessions.transferringSince[slot]!)) {
    makeIdle(traffic.population, slot, at);
    schedule(traffic, slot, at + INACTIVITY_MS);
  } else endSession(traffic, slot, at, finalState);
}

function endSession(traffic: Traffic, slot: number, at: number, state: number): void {
  closeSession(traffic.population, slot, at, state);
  traffic.ended.push(slot);
}

function schedule(traffic: Traffic, slot: number, at: number): void {
  traffic.population.sessions.nextAt[slot] = at;
  traffic.eventQueue.add(at, slot);
}

function nextConnectedAt(traffic: Traffic): number {
  const slot = traffic.connecting.first();
  return slot === undefined ? Number.POSITIVE_INFINITY : traffic.population.sessions.startedAt[slot]! + CONNECTING_MS;
}

function nextRemovedAt(traffic: Traffic): number {
  const slot = traffic.ended.first();
  return slot === undefined ? Number.POSITIVE_INFINITY : traffic.population.sessions.endedAt[slot]! + ENDED_KEPT_MS;
}
