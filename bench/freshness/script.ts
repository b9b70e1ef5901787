import { type DurationMs, MINUTE_MS } from "../../src/base/duration.ts";
import type { Random } from "../../src/base/random.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { FaultKind, Scenario } from "../../src/config/schema/scenario.ts";
import type { EpochMs } from "../../src/model/time.ts";
import { nodesInOrder } from "../../src/simulator/api/list-order.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { restart } from "../../src/simulator/fleet/fleet.ts";
import { HEARTBEAT_MS, lastHeartbeat, type SimulatedNode } from "../../src/simulator/fleet/node.ts";
import { nodeIndex } from "../../src/simulator/fleet/node-identity.ts";
import { type Resource, type ResourceLoad, resourceUsage } from "../../src/simulator/fleet/resource-usage.ts";
import { badDetailFault } from "../../src/simulator/http/faults.ts";
import { advanceNetwork, createNetwork, type Network } from "../../src/simulator/network.ts";
import {
  BAD_DETAILS,
  type Cell,
  CHURN_EVERY_MS,
  CREEP_ROUNDS,
  PLAN_VARIANTS,
  pollingBudgetOf,
  type Timetable,
  timetableOf,
} from "./cell.ts";

/** The first of a month of 30 days. */
export const START_MS: EpochMs = Date.UTC(2026, 3, 1);
/** A usage above this is a fault for the policies of the benchmark. */
export const THRESHOLD = 0.9;

/** `offline`: lists show it. `creep` and `signalled`: usage rises, slowly or at a restart, and only details show it. */
export interface Fault {
  readonly kind: "offline" | "creep" | "signalled";
  /** Index of the node in the order of joining. */
  readonly index: number;
  readonly id: string;
  /** Null if the node is offline. */
  readonly load: ResourceLoad | null;
  /** The earliest time at which a read shows the fault. */
  readonly visibleAt: EpochMs;
  readonly endsAt: EpochMs;
}

/**
 * A jump of usage without a signal. It is not simulated, because it has no effect before its node is read: the next read
 * of the node finds it. Therefore there can be many of them.
 */
export interface Jump {
  readonly index: number;
  readonly visibleAt: EpochMs;
}

/** A node joins the fleet or leaves it. */
export interface MembershipChange {
  readonly index: number;
  readonly at: EpochMs;
  readonly joins: boolean;
}

/** The events of a cell. */
export interface Script {
  readonly scenario: Scenario;
  readonly timetable: Timetable;
  /** Sorted by `visibleAt`. */
  readonly faults: readonly Fault[];
  readonly jumps: readonly Jump[];
  /** Nodes whose usage is near the threshold but never passes it. */
  readonly nearThreshold: readonly { readonly id: string; readonly load: ResourceLoad }[];
  /** Restarts with and without a jump of usage, sorted by time. */
  readonly restarts: readonly { readonly id: string; readonly at: EpochMs }[];
  /** Indexes of the nodes in list order at the start. */
  readonly listed: readonly number[];
  /** Joins and leaves, sorted by time. */
  readonly membershipChanges: readonly MembershipChange[];
  /**
   * Nodes that are always in the fleet and have readable details. Only these nodes have faults, and only their ages
   * count.
   */
  readonly eligible: readonly number[];
  idOf(index: number): string;
  /** Whether the node's detail is readable. */
  isReadable(index: number): boolean;
  /** Whether a read at `at` shows the fault. */
  shows(fault: Fault, at: EpochMs): boolean;
}

/** Share of the nodes near the threshold, and the range of their usage. */
export const NEAR_THRESHOLD = { share: 0.02, min: 0.8, max: 0.88 } as const;
/** Number of restarts without a jump for each one with a jump. */
const IDLE_RESTARTS = 3;
/** Range of the final usage of rises and jumps. */
const LEVEL = { min: 0.93, max: 0.99 } as const;
const JUMPS = 4_000;
/** Duration of an offline fault in walks of the even poller. Each contender can find it within that time. */
export const OFFLINE_WALKS = 4;
const OFFLINE_TIMES = 3;
const OFFLINE_SHARE_MAX = 0.3;
/** Minimum duration of an offline fault. */
export const OFFLINE_MS_MIN: DurationMs = 10 * MINUTE_MS;
const RESOURCES = ["cpu", "memory", "disk"] as const;
const NEVER = Number.POSITIVE_INFINITY;

/** Creates the script of a cell. The same cell gives the same script. */
export function createScript(cell: Cell): Script {
  const scenario = scenarioOf(cell);
  const timetable = timetableOf(cell);
  const network = createNetwork(scenario, START_MS);
  const membershipChanges = membershipChangesOf(scenario, timetable);
  const changed = new Set(membershipChanges.map(({ index }) => index));
  const isReadable = (index: number): boolean => badDetailFault(scenario.faults, cell.seed, index) === null;
  const eligible = network.fleet.nodes.filter(({ index }) => !changed.has(index) && isReadable(index));
  const writer = createFaultWriter(cell, timetable, network, eligible);
  const counts = Array.from({ length: cell.faults }, (_, count) => count);
  const faults = [
    ...Array.from({ length: offlineCount(cell) }, () => writer.offline()),
    ...counts.map((count) => writer.creep(RESOURCES[count % RESOURCES.length]!)),
    ...counts.map((count) => writer.signalled(RESOURCES[count % RESOURCES.length]!)),
  ].sort((one, other) => one.visibleAt - other.visibleAt);
  const nearThreshold = Array.from({ length: Math.ceil(NEAR_THRESHOLD.share * cell.nodes) }, (_, count) =>
    writer.nearThreshold(RESOURCES[count % RESOURCES.length]!),
  );
  const restarts = [
    ...faults.flatMap(({ kind, id, visibleAt }) => (kind === "signalled" ? [{ id, at: visibleAt }] : [])),
    ...Array.from({ length: IDLE_RESTARTS * cell.faults }, () => writer.idleRestart()),
  ].sort((one, other) => one.at - other.at);
  return {
    scenario,
    timetable,
    faults,
    nearThreshold,
    restarts,
    jumps: Array.from({ length: JUMPS }, () => writer.jump()),
    membershipChanges,
    isReadable,
    eligible: eligible.map(({ index }) => index),
    listed: nodesInOrder({ options: scenario.service, network }, START_MS, START_MS).map(({ index }) => index),
    idOf: writer.idOf,
    shows: writer.shows,
  };
}

/** Returns the number of offline faults, which do not affect each other and may therefore be more numerous. */
export const offlineCount = ({ faults, nodes }: Pick<Cell, "faults" | "nodes">): number =>
  Math.min(OFFLINE_TIMES * faults, Math.floor(OFFLINE_SHARE_MAX * nodes));

/** Returns the scenario of a cell: nodes without sessions and without random failures. */
const scenarioOf = ({ nodes, seed, plan, conditions }: Cell): Scenario => ({
  ...defaultScenario,
  seed,
  nodes,
  sessions: 0,
  rates: { ...defaultScenario.rates, faultEveryMs: NEVER, maintenanceEveryMs: NEVER },
  service: {
    ...defaultScenario.service,
    plan: PLAN_VARIANTS[plan].servicePlan,
    nodeList: { ...defaultScenario.service.nodeList, order: conditions === "churn" ? "-created_at" : "joined" },
  },
  ...(conditions === "churn" ? { churn: CHURN } : {}),
  faults:
    conditions === "bad_details"
      ? BAD_DETAILS.map(({ share, answer }) => permanent({ kind: "bad_details", nodes: share, answer }))
      : [],
});

const CHURN = { ...defaultScenario.churn, joinEveryMs: CHURN_EVERY_MS, leaveEveryMs: CHURN_EVERY_MS };

/** Creates a fault that begins just after the start, before which all details are read, and never ends. */
const permanent = (fault: FaultKind) => ({ afterMs: 1, forMs: NEVER, fault });

/** Determines joins and leaves, which depend on the seed, by simulating them in a separate network. */
function membershipChangesOf(scenario: Scenario, { endMs }: Timetable): readonly MembershipChange[] {
  const network = createNetwork(scenario, START_MS);
  if (scenario.churn !== CHURN) return [];
  advanceNetwork(network, START_MS + endMs);
  const { membershipChanges, membershipChangeCount } = network.fleet;
  if (membershipChanges.length !== membershipChangeCount)
    throw new Error(`the simulator does not keep all of ${membershipChangeCount} joins and leaves`);
  return membershipChanges.map(({ id, at, kind }) => ({
    index: nodeIndex(scenario.seed, id)!,
    at,
    joins: kind === "joined",
  }));
}

/** Creates faults on the nodes of a separate network, in which their usage can be computed for any time. */
function createFaultWriter(
  cell: Cell,
  { leadMs, windowMs, lastsMs, endMs }: Timetable,
  { seed, fleet }: Network,
  eligible: readonly SimulatedNode[],
) {
  const { roundMs, evenWalkMs } = pollingBudgetOf(cell);
  const random = seededRandom(cell.seed);
  const withoutFault = [...eligible];
  const between = (min: number, max: number): number => min + (max - min) * random();
  const randomTime = (): EpochMs => Math.ceil(START_MS + leadMs + random() * windowMs);
  const randomNodeWithoutFault = (): SimulatedNode => withoutFault[Math.floor(random() * withoutFault.length)]!;
  /** Returns the usage as in a detail, with four digits. */
  const level = (node: SimulatedNode, resource: Resource, at: EpochMs): number =>
    Number(resourceUsage(seed, node, 0, at)[resource].toFixed(4));

  /** Puts a load on the node and ends it `lastsMs` after it becomes visible. */
  function loadFault(kind: "creep" | "signalled", node: SimulatedNode, load: ResourceLoad, from: EpochMs): Fault {
    node.load = load;
    const visibleAt = firstReport(node, from, (reportedAt) => level(node, load.resource, reportedAt) > THRESHOLD);
    const endsAt = visibleAt + lastsMs;
    node.load = { ...load, until: endsAt };
    return { kind, index: node.index, id: node.id, load: node.load, visibleAt, endsAt };
  }

  return {
    offline(): Fault {
      const { index, id } = takeRandom(withoutFault, random);
      const visibleAt = randomTime();
      const endsAt = visibleAt + Math.ceil(Math.min(lastsMs, Math.max(OFFLINE_MS_MIN, OFFLINE_WALKS * evenWalkMs)));
      return { kind: "offline", index, id, load: null, visibleAt, endsAt };
    },
    creep(resource: Resource): Fault {
      const node = takeRandom(withoutFault, random);
      const at = randomTime();
      const overMs = between(CREEP_ROUNDS.min, CREEP_ROUNDS.max) * roundMs;
      const top = between(LEVEL.min, LEVEL.max);
      const healthy = level(node, resource, at);
      const since = Math.round(at - (overMs * (THRESHOLD - healthy)) / (top - healthy));
      // The healthy usage varies as well, so the threshold may be passed slightly earlier.
      return loadFault("creep", node, { resource, since, overMs, level: top, until: NEVER }, at - overMs / 10);
    },
    signalled(resource: Resource): Fault {
      const node = takeRandom(withoutFault, random);
      const at = randomTime();
      restart(fleet, node, at);
      const top = between(LEVEL.min, LEVEL.max);
      return loadFault("signalled", node, { resource, since: at, overMs: 0, level: top, until: NEVER }, at);
    },
    nearThreshold(resource: Resource) {
      const top = between(NEAR_THRESHOLD.min, NEAR_THRESHOLD.max);
      const load = { resource, since: START_MS - endMs, overMs: 0, level: top, until: NEVER };
      return { id: takeRandom(withoutFault, random).id, load };
    },
    idleRestart: () => ({ id: randomNodeWithoutFault().id, at: Math.ceil(START_MS + random() * endMs) }),
    jump(): Jump {
      const node = randomNodeWithoutFault();
      const at = randomTime();
      return { index: node.index, visibleAt: firstReport(node, at, (reportedAt) => reportedAt >= at) };
    },
    idOf: (index: number): string => fleet.nodes[index]!.id,
    shows: ({ index, load, visibleAt, endsAt }: Fault, at: EpochMs): boolean =>
      at >= visibleAt && at < endsAt && (load === null || level(fleet.nodes[index]!, load.resource, at) > THRESHOLD),
  };
}

/** Returns the time of the first matching report of a node, starting with the last one at `from`. */
function firstReport(node: SimulatedNode, from: EpochMs, matches: (reportedAt: EpochMs) => boolean): EpochMs {
  let reportedAt = lastHeartbeat(node, Math.max(START_MS, from));
  while (!matches(reportedAt)) reportedAt += HEARTBEAT_MS;
  return reportedAt;
}

/** Removes a random element and returns it. */
function takeRandom<T>(all: T[], random: Random): T {
  const index = Math.floor(random() * all.length);
  const taken = all[index]!;
  all[index] = all.at(-1)!;
  all.pop();
  return taken;
}
