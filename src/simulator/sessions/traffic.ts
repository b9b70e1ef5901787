import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { createEventQueue, type EventQueue } from "../../base/event-queue.ts";
import { type Random, seededRandom } from "../../base/random.ts";
import type { Scenario } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { chooseServingNode, type Fleet, type SessionEnding } from "../fleet/fleet.ts";
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

/** Time to establish a session. */
const CONNECTING_MS: DurationMs = 1_500;
/** Time until the inactivity timeout ends an idle session. */
const INACTIVITY_MS: DurationMs = 5 * MINUTE_MS;
/** Time for which an ended session is readable. */
const ENDED_KEPT_MS: DurationMs = 5 * MINUTE_MS;
/** Mean time until a client reconnects after it lost its session. */
const RECONNECT_MS_MEAN: DurationMs = 10 * SECOND_MS;
/** Share of the sessions lost with their node that end with a timeout. */
const LOST_AS_TIMEOUT_SHARE = 0.3;
/**
 * Slots per session of the scenario, enough for the open ones, as many ended by an outage, and those that ended
 * normally.
 */
const SLOTS_PER_SESSION = 3;
const SLOTS_MIN = 64;

/** The arrivals and ends of sessions. Times are in milliseconds since the start of the simulation. */
export interface Traffic {
  readonly startMs: EpochMs;
  readonly fleet: Fleet;
  readonly random: Random;
  readonly population: Population;
  /** Mean sessions per node at mean demand, for the fleet at the start. */
  readonly perNode: number;
  /** Sessions at mean demand. */
  readonly target: number;
  readonly customers: number;
  /** Slots by the time of their next transition. An entry whose time is not the slot's `nextAt` is outdated. */
  readonly eventQueue: EventQueue;
  /** Number of clients that lost their session and have not reconnected yet. */
  pendingReconnects: number;
  /** Start of the next session. It is not rounded, because rounding would reduce a high rate of arrivals. */
  arrivalAt: number;
}

/** Creates the traffic with the scenario's number of ongoing sessions on the serving nodes. */
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
    pendingReconnects: 0,
    arrivalAt: 0,
  };
  populate(traffic);
  scheduleArrival(traffic, 0);
  return traffic;
}

/** Returns the time of the next event. */
export const nextTrafficEvent = (traffic: Traffic): number =>
  Math.min(traffic.eventQueue.nextAt(), Math.ceil(traffic.arrivalAt));

/** Executes the next event at its time. */
export function runTrafficEvent(traffic: Traffic): void {
  const at = nextTrafficEvent(traffic);
  if (traffic.eventQueue.nextAt() === at) advanceSession(traffic, at);
  else startArrival(traffic, at);
}

/** Ends every open session of a node and returns their number. The clients reconnect, possibly to other nodes. */
export function cutSessions(traffic: Traffic, node: SimulatedNode, at: number, ending: SessionEnding): number {
  const { firstSessions } = traffic.population;
  let count = 0;
  for (let slot = firstSessions[node.index]!; slot !== NO_SESSION; slot = firstSessions[node.index]!) {
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
  const ongoing = Array.from({ length: traffic.target }, () => {
    const node = chooseServingNode(fleet, random);
    return node === null ? null : { node, plan: drawOngoingSession(random, isFailing(node)) };
  }).filter((session) => session !== null);
  // The list is in the order of starts.
  ongoing.sort((one, other) => other.plan.ageMs - one.plan.ageMs);
  for (const { node, plan } of ongoing) {
    const slot = addSession(population, node, plan, nextCustomer(random, traffic.customers), -plan.ageMs)!;
    activateSession(population, slot, -plan.ageMs);
    schedule(traffic, slot, plan.activeMs);
  }
  population.enteredCount = 0;
}

/**
 * Draws the next arrival after `at`. Arrivals are a Poisson process, so it can be drawn again whenever the rate
 * changes.
 */
function scheduleArrival(traffic: Traffic, at: number): void {
  const [fresh, returning] = arrivalRates(traffic, at);
  traffic.arrivalAt = at + exponential(1 / (fresh + returning), traffic.random());
}

/** Returns the arrivals of new sessions and of reconnecting clients, per millisecond. */
function arrivalRates(traffic: Traffic, at: number): [fresh: number, returning: number] {
  const demand = traffic.target * demandAt(traffic.startMs + at);
  return [demand / (SESSION_MS_MEAN + CONNECTING_MS), traffic.pendingReconnects / RECONNECT_MS_MEAN];
}

function startArrival(traffic: Traffic, at: number): void {
  const { random, population } = traffic;
  const [fresh, returning] = arrivalRates(traffic, at);
  const node = chooseServingNode(traffic.fleet, random);
  if (node !== null) {
    if (random() * (fresh + returning) < returning) traffic.pendingReconnects -= 1;
    const plan = drawNewSession(random, isFailing(node));
    const slot = addSession(population, node, plan, nextCustomer(random, traffic.customers), at);
    if (slot !== null) schedule(traffic, slot, at + CONNECTING_MS);
  }
  scheduleArrival(traffic, traffic.arrivalAt);
}

/**
 * Executes a session's next transition. It is established, becomes idle before the inactivity timeout, ends, or is no
 * longer readable.
 */
function advanceSession(traffic: Traffic, at: number): void {
  const { population } = traffic;
  const { sessions } = population;
  const slot = traffic.eventQueue.take();
  if (sessions.nextAt[slot] !== at) return;
  const finalState = sessions.finalState[slot]!;
  if (sessions.state[slot] === STATE_INDEX.connecting) {
    activateSession(population, slot, at);
    schedule(traffic, slot, at + sessions.activeMs[slot]!);
  } else if (sessions.state[slot] !== STATE_INDEX.active) removeSession(population, slot);
  else if (finalState === STATE_INDEX.timeout && !Number.isNaN(sessions.transferringSince[slot]!)) {
    makeIdle(population, slot, at);
    schedule(traffic, slot, at + INACTIVITY_MS);
  } else endSession(traffic, slot, at, finalState);
}

function endSession(traffic: Traffic, slot: number, at: number, state: number): void {
  closeSession(traffic.population, slot, at, state);
  schedule(traffic, slot, at + ENDED_KEPT_MS);
}

function schedule(traffic: Traffic, slot: number, at: number): void {
  traffic.population.sessions.nextAt[slot] = at;
  traffic.eventQueue.add(at, slot);
}
