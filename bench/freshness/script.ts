import { MINUTE_MS } from "../../src/base/duration.ts";
import type { Random } from "../../src/base/random.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { FaultKind, Scenario } from "../../src/model/scenario.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { createNodeOrder } from "../../src/simulator/api/node-order.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { restart } from "../../src/simulator/fleet/fleet.ts";
import { HEARTBEAT_MS, lastHeartbeat, type SimulatedNode } from "../../src/simulator/fleet/node.ts";
import { nodeIndex } from "../../src/simulator/fleet/node-identity.ts";
import type { Resource, ResourceLoad } from "../../src/simulator/fleet/resource-load.ts";
import { resourceUsage } from "../../src/simulator/fleet/resource-usage.ts";
import { badDetailFault } from "../../src/simulator/http/faults.ts";
import { advanceWorld, createWorld, type World } from "../../src/simulator/network.ts";
import {
  BAD_DETAILS,
  type Cell,
  CHURN_EVERY_MS,
  CREEP_ROUNDS,
  meansOf,
  TERMS,
  type Timetable,
  timetableOf,
} from "./cell.ts";

/** The first of a month of 30 days. */
export const START_MS: EpochMs = Date.UTC(2026, 3, 1);
/** What the policies of the bench read: a usage above this is a fault. */
export const THRESHOLD = 0.9;

/** `offline`: lists show it; `creep` and `signalled`: a usage rises, slowly or in a restart, and details alone show it. */
export interface Fault {
  readonly kind: "offline" | "creep" | "signalled";
  /** Of the node, as the list orders them. */
  readonly index: number;
  readonly id: string;
  /** Null: the node is offline. */
  readonly strain: ResourceLoad | null;
  /** The first moment at which a read would have shown it. */
  readonly visibleAt: EpochMs;
  readonly endsAt: EpochMs;
}

/**
 * An unsignalled jump. None is made to happen, for until its node is read it changes nothing anywhere: when it would
 * have been found is when its node was read next. So there can be many, and chance weighs little.
 */
export interface Jump {
  readonly index: number;
  readonly visibleAt: EpochMs;
}

/** A node joins the fleet or leaves it. */
export interface Move {
  readonly index: number;
  readonly at: EpochMs;
  readonly joins: boolean;
}

/** All that happens to a fleet. */
export interface Script {
  readonly scenario: Scenario;
  readonly timetable: Timetable;
  /** In the order in which they show. */
  readonly faults: readonly Fault[];
  readonly jumps: readonly Jump[];
  /** Nodes that stand near a threshold and never pass it. */
  readonly lingering: readonly { readonly id: string; readonly strain: ResourceLoad }[];
  /** Restarts: those that a signalled jump comes with, and others that mean nothing. In their order. */
  readonly restarts: readonly { readonly id: string; readonly at: EpochMs }[];
  /** The list as it is at the start: indexes of its nodes. */
  readonly listed: readonly number[];
  /** Joins and leaves in their order. */
  readonly moves: readonly Move[];
  /** Nodes that are there all the time and whose details can be read: they have the faults, and theirs are the ages. */
  readonly watched: readonly number[];
  idOf(index: number): string;
  /** Whether a read of the node's detail shows anything. */
  isReadable(index: number): boolean;
  /** Whether a node read at `at` would show the fault. */
  shows(fault: Fault, at: EpochMs): boolean;
}

/** Share of the nodes that linger near a threshold, and how near. */
export const LINGERING = { share: 0.02, min: 0.8, max: 0.88 } as const;
/** Restarts that mean nothing, for each that a jump comes with. */
const IDLE_RESTARTS = 3;
/** Where usages that rise come to rest. */
const LEVEL = { min: 0.93, max: 0.99 } as const;
const JUMPS = 4_000;
/** Offline nodes come back after so many walks of the even poller: by then everybody has seen them. */
const OFFLINE_WALKS = 4;
const OFFLINE_TIMES = 3;
const OFFLINE_SHARE_MAX = 0.3;
const OFFLINE_MS_MIN = 10 * MINUTE_MS;
const RESOURCES = ["cpu", "memory", "disk"] as const;
const NEVER = Number.POSITIVE_INFINITY;

/** Writes the script of a cell: the same for the same cell. */
export function writeScript(cell: Cell): Script {
  const scenario = scenarioOf(cell);
  const timetable = timetableOf(cell);
  const world = createWorld(scenario, START_MS);
  const moves = movesOf(scenario, timetable);
  const gone = new Set(moves.map(({ index }) => index));
  const isReadable = (index: number): boolean => badDetailFault(scenario.faults, cell.seed, index) === null;
  const watched = world.fleet.nodes.filter(({ index }) => !gone.has(index) && isReadable(index));
  const writer = createWriter(cell, timetable, world, watched);
  const counts = Array.from({ length: cell.faults }, (_, count) => count);
  const faults = [
    ...Array.from({ length: offlineCount(cell) }, () => writer.offline()),
    ...counts.map((count) => writer.creep(RESOURCES[count % RESOURCES.length]!)),
    ...counts.map((count) => writer.signalled(RESOURCES[count % RESOURCES.length]!)),
  ].sort((one, other) => one.visibleAt - other.visibleAt);
  const lingering = Array.from({ length: Math.ceil(LINGERING.share * cell.nodes) }, (_, count) =>
    writer.lingering(RESOURCES[count % RESOURCES.length]!),
  );
  const restarts = [
    ...faults.flatMap(({ kind, id, visibleAt }) => (kind === "signalled" ? [{ id, at: visibleAt }] : [])),
    ...Array.from({ length: IDLE_RESTARTS * cell.faults }, () => writer.idleRestart()),
  ].sort((one, other) => one.at - other.at);
  return {
    ...{ scenario, timetable, faults, lingering, restarts },
    jumps: Array.from({ length: JUMPS }, () => writer.jump()),
    ...{ moves, isReadable, watched: watched.map(({ index }) => index) },
    listed: createNodeOrder(scenario.service.nodeList.order, world)(START_MS, START_MS).map(({ index }) => index),
    idOf: writer.idOf,
    shows: writer.shows,
  };
}

/** Offline nodes disturb nobody and each other least, so there can be more of them: chance weighs less. */
export const offlineCount = ({ faults, nodes }: Pick<Cell, "faults" | "nodes">): number =>
  Math.min(OFFLINE_TIMES * faults, Math.floor(OFFLINE_SHARE_MAX * nodes));

/** The scenario of a cell: nothing happens in it by itself, and nobody is there but nodes. */
const scenarioOf = ({ nodes, seed, terms, conditions }: Cell): Scenario => ({
  ...defaultScenario,
  ...{ seed, nodes, sessions: 0 },
  rates: { ...defaultScenario.rates, faultEveryMs: NEVER, maintenanceEveryMs: NEVER },
  service: {
    ...defaultScenario.service,
    plan: TERMS[terms].servicePlan,
    nodeList: { ...defaultScenario.service.nodeList, order: conditions === "churn" ? "-created_at" : "joined" },
  },
  ...(conditions === "churn" ? { churn: CHURN } : {}),
  faults: conditions === "bad_details" ? BAD_DETAILS.map((bad) => lasting({ kind: "bad_details", ...bad })) : [],
});

const CHURN = { ...defaultScenario.churn, joinEveryMs: CHURN_EVERY_MS, leaveEveryMs: CHURN_EVERY_MS };

/** From just after the start: all details are read before it. */
const lasting = (fault: FaultKind) => ({ afterMs: 1, forMs: NEVER, fault });

/** Who joins and leaves, which follows from the seed: found out in a world of its own. */
function movesOf(scenario: Scenario, { endMs }: Timetable): readonly Move[] {
  const world = createWorld(scenario, START_MS);
  if (scenario.churn !== CHURN) return [];
  advanceWorld(world, START_MS + endMs);
  const { membershipChanges: moves, membershipChangeCount: moveCount } = world.fleet;
  if (moves.length !== moveCount) throw new Error(`${moveCount} joins and leaves are more than the simulator keeps`);
  return moves.map(({ id, at, kind }) => ({ index: nodeIndex(scenario.seed, id)!, at, joins: kind === "joined" }));
}

/** Deals faults to the nodes of a world of its own, in which they can be looked at at any time. */
function createWriter(
  cell: Cell,
  { leadMs, windowMs, lastsMs, endMs }: Timetable,
  { seed, fleet }: World,
  watched: readonly SimulatedNode[],
) {
  const { roundMs, evenWalkMs } = meansOf(cell);
  const random = seededRandom(cell.seed);
  const idle = [...watched];
  const between = (min: number, max: number): number => min + (max - min) * random();
  const someTime = (): EpochMs => Math.ceil(START_MS + leadMs + random() * windowMs);
  const anyIdle = (): SimulatedNode => idle[Math.floor(random() * idle.length)]!;
  /** As a detail writes it: with four digits. */
  const level = (node: SimulatedNode, resource: Resource, at: EpochMs): number =>
    Number(resourceUsage(seed, node, 0, at)[resource].toFixed(4));

  /** A strain from when it shows on, put on the node. */
  function strained(kind: "creep" | "signalled", node: SimulatedNode, strain: ResourceLoad, from: EpochMs): Fault {
    node.load = strain;
    const visibleAt = firstReport(node, from, (seen) => level(node, strain.resource, seen) > THRESHOLD);
    const endsAt = visibleAt + lastsMs;
    node.load = { ...strain, until: endsAt };
    return { kind, index: node.index, id: node.id, strain: node.load, visibleAt, endsAt };
  }

  return {
    offline(): Fault {
      const { index, id } = takeOne(idle, random);
      const visibleAt = someTime();
      const endsAt = visibleAt + Math.ceil(Math.min(lastsMs, Math.max(OFFLINE_MS_MIN, OFFLINE_WALKS * evenWalkMs)));
      return { kind: "offline", index, id, strain: null, visibleAt, endsAt };
    },
    creep(resource: Resource): Fault {
      const node = takeOne(idle, random);
      const at = someTime();
      const overMs = between(CREEP_ROUNDS.min, CREEP_ROUNDS.max) * roundMs;
      const top = between(LEVEL.min, LEVEL.max);
      const healthy = level(node, resource, at);
      const since = Math.round(at - (overMs * (THRESHOLD - healthy)) / (top - healthy));
      // The healthy level moves, too: it may pass a little sooner than reckoned.
      return strained("creep", node, { resource, since, overMs, level: top, until: NEVER }, at - overMs / 10);
    },
    signalled(resource: Resource): Fault {
      const node = takeOne(idle, random);
      const at = someTime();
      restart(fleet, node, at);
      const top = between(LEVEL.min, LEVEL.max);
      return strained("signalled", node, { resource, since: at, overMs: 0, level: top, until: NEVER }, at);
    },
    lingering(resource: Resource) {
      const top = between(LINGERING.min, LINGERING.max);
      const strain = { resource, since: START_MS - endMs, overMs: 0, level: top, until: NEVER };
      return { id: takeOne(idle, random).id, strain };
    },
    idleRestart: () => ({ id: anyIdle().id, at: Math.ceil(START_MS + random() * endMs) }),
    jump(): Jump {
      const node = anyIdle();
      const at = someTime();
      return { index: node.index, visibleAt: firstReport(node, at, (seen) => seen >= at) };
    },
    idOf: (index: number): string => fleet.nodes[index]!.id,
    shows: ({ index, strain, visibleAt, endsAt }: Fault, at: EpochMs): boolean =>
      at >= visibleAt &&
      at < endsAt &&
      (strain === null || level(fleet.nodes[index]!, strain.resource, at) > THRESHOLD),
  };
}

/** The first report of a node, from that known at `from` on, of which `holds` is true. */
function firstReport(node: SimulatedNode, from: EpochMs, holds: (seen: EpochMs) => boolean): EpochMs {
  for (let seen = lastHeartbeat(node, Math.max(START_MS, from)); ; seen += HEARTBEAT_MS) if (holds(seen)) return seen;
}

/** Takes one of them out at random. */
function takeOne<T>(all: T[], random: Random): T {
  const index = Math.floor(random() * all.length);
  const taken = all[index]!;
  all[index] = all.at(-1)!;
  all.pop();
  return taken;
}
