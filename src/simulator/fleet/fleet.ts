import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import { createEventQueue, type EventQueue } from "../../base/event-queue.ts";
import type { Random } from "../../base/random.ts";
import type { ChurnRates, Scenario } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { hashUnit } from "../hash.ts";
import {
  advanceHealth,
  drawForNode,
  drawInstantAfter,
  endReboot,
  type FailureStart,
  failUntilRepaired,
  type HealthModel,
  recoverNode,
  startFailure,
  startReboot,
} from "./failures.ts";
import { createNode, isServing, NEVER, replaceMachine, SIZE_MAX, type SimulatedNode } from "./node.ts";
import { nodeIndex, VERSIONS } from "./node-identity.ts";

/** How the sessions of a node end when it stops serving: they are closed gracefully or lost. */
export type SessionEnding = "closed" | "lost";

/** The simulated nodes. Only the functions of this file change it. */
export interface Fleet extends HealthModel {
  /** Start of the simulation. */
  readonly startMs: EpochMs;
  readonly churn: ChurnRates;
  /** Every node that was ever in the fleet, by index, or null if it left permanently. */
  readonly allNodes: (SimulatedNode | null)[];
  /** Nodes that are in the fleet now, in the order of their indexes. */
  readonly nodes: SimulatedNode[];
  /** Recent joins and leaves, oldest first. */
  readonly membershipChanges: MembershipChange[];
  /** Number of all joins and leaves. */
  membershipChangeCount: number;
  /** Regions that are cut off. */
  downRegions: ReadonlySet<string>;
  /** Node indexes by the time of the next event. An entry whose time is not the node's `nextAt` is outdated. */
  readonly eventQueue: EventQueue;
  /** Called when a node stops serving. */
  readonly onStopped: (node: SimulatedNode, at: EpochMs, ending: SessionEnding) => void;
}

/** A node that joined the fleet, left it or came back to it. */
export interface MembershipChange {
  readonly at: EpochMs;
  readonly id: string;
  readonly kind: "joined" | "left" | "returned";
}

/** Number of membership changes to keep, which is far more than occur during a walk or a test. */
const MEMBERSHIP_CHANGES_MAX = 2_000;
/** Maximum number of random choices before a node is chosen regardless of its size. */
const CHOICES_MAX = 16;
const MAINTENANCE_MS_MIN: DurationMs = 10 * MINUTE_MS;
const MAINTENANCE_MS_SPREAD: DurationMs = 30 * MINUTE_MS;
/** Maximum time that is simulated before the start, so that the usual share of nodes is failing at the start. */
const WARMUP_MS_MAX: DurationMs = DAY_MS;

/** Creates a fleet in its state at `startMs`, after up to a day of simulated failures. */
export function createFleet(scenario: Scenario, startMs: EpochMs, onStopped: Fleet["onStopped"]): Fleet {
  const { seed, rates, churn } = scenario;
  const nodes = Array.from({ length: scenario.nodes }, (_, index) => createNode(seed, index, startMs));
  const fleet: Fleet = {
    seed,
    rates,
    churn,
    startMs,
    onStopped,
    allNodes: [...nodes],
    nodes,
    membershipChanges: [],
    membershipChangeCount: 0,
    downRegions: new Set(),
    eventQueue: createEventQueue(),
  };
  // Twice the mean time between failures suffices. With frequent failures a full day would take long.
  const warmupStartMs = startMs - Math.min(WARMUP_MS_MAX, 2 * rates.faultEveryMs);
  for (const node of nodes) {
    node.nextPhaseAt = drawInstantAfter(fleet, node, warmupStartMs, rates.faultEveryMs);
    node.maintenanceAt = drawInstantAfter(fleet, node, warmupStartMs, rates.maintenanceEveryMs);
    scheduleNextEvent(fleet, node);
  }
  while (fleet.eventQueue.nextAt() <= startMs) runFleetEvent(fleet);
  return fleet;
}

/** Returns a node of the fleet by id, or null if there is none. */
export function findNode(fleet: Fleet, id: string): SimulatedNode | null {
  const index = nodeIndex(fleet.seed, id);
  const node = index === null ? undefined : fleet.allNodes[index];
  return node?.isPresent === true ? node : null;
}

/** Returns a random serving node, with a probability proportional to its size, or null if there is none. */
export function chooseServingNode({ nodes }: Fleet, random: Random): SimulatedNode | null {
  for (let choices = 0; choices < CHOICES_MAX; choices += 1) {
    const node = nodes[Math.floor(random() * nodes.length)];
    if (node !== undefined && isServing(node) && random() * SIZE_MAX < node.size) return node;
  }
  const serving = nodes.filter(isServing);
  return serving[Math.floor(random() * serving.length)] ?? null;
}

/** Executes the fleet's next event at its time. */
export function runFleetEvent(fleet: Fleet): void {
  const at = fleet.eventQueue.nextAt();
  const node = fleet.allNodes[fleet.eventQueue.take()];
  if (node?.nextAt !== at) return;
  node.nextAt = NEVER;
  if (!node.isPresent) returnNode(fleet, node, at);
  else if (node.rebootUntil <= at && leavesAfterReboot(fleet, node, at))
    removeNode(fleet, node, at, at + fleet.churn.vanishForMs);
  else advanceNode(fleet, node, at);
}

/** Executes all due events of a node. */
function advanceNode(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  let ending: SessionEnding = "lost";
  if (node.rebootUntil <= at) {
    endReboot(fleet, node, at);
    if (failsAfterReboot(fleet, node, at)) failUntilRepaired(fleet, node, at);
  }
  if (node.quarantineUntil <= at) node.quarantineUntil = NEVER;
  if (node.maintenanceUntil <= at) {
    node.maintenanceUntil = NEVER;
    node.version = VERSIONS[0].version;
  }
  if (node.maintenanceAt <= at) {
    ending = "closed";
    node.maintenanceUntil = at + Math.ceil(MAINTENANCE_MS_MIN + drawForNode(fleet, node) * MAINTENANCE_MS_SPREAD);
    node.maintenanceAt = drawInstantAfter(fleet, node, at, fleet.rates.maintenanceEveryMs);
  }
  if (node.recoverAt <= at) {
    if (node.remedy !== "time") ending = "closed";
    recoverNode(fleet, node, at);
  }
  if (node.nextPhaseAt <= at) advanceHealth(fleet, node, at);
  updateNodeState(fleet, node, at, ending);
}

/** Adds a new node to the fleet. */
export function addNewNode(fleet: Fleet, at: EpochMs): void {
  const node = createNode(fleet.seed, fleet.allNodes.length, at, true);
  fleet.allNodes.push(node);
  recordMembershipChange(fleet, node, "joined", at);
  insertNode(fleet, node, at);
}

/** Removes a node from the fleet until `returnAt`, or permanently if it is {@link NEVER}. Its sessions are lost. */
export function removeNode(fleet: Fleet, node: SimulatedNode, at: EpochMs, returnAt: EpochMs): void {
  fleet.nodes.splice(fleet.nodes.indexOf(node), 1);
  recordMembershipChange(fleet, node, "left", at);
  const served = isServing(node);
  Object.assign(node, ABSENT_STATE, { silentSince: Math.min(node.silentSince, at), returnAt });
  if (served) fleet.onStopped(node, at, "lost");
  if (returnAt === NEVER) fleet.allNodes[node.index] = null;
  else scheduleNextEvent(fleet, node);
}

/** Quarantines a node until `until`, or ends its quarantine if that is {@link NEVER}. A second quarantine replaces the first. */
export function quarantine(fleet: Fleet, node: SimulatedNode, until: EpochMs, at: EpochMs): void {
  node.quarantineUntil = until;
  updateNodeState(fleet, node, at, "closed");
}

/** Starts a failure, which replaces an earlier one. */
export function injectFailure(fleet: Fleet, node: SimulatedNode, failure: FailureStart, at: EpochMs): void {
  startFailure(node, failure, at);
  updateNodeState(fleet, node, at, "lost");
}

/**
 * Restarts a serving node without a visible change of its status. Its sessions are lost, and it reports a new uptime
 * immediately.
 */
export function restart(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  if (!isServing(node)) return;
  node.bootAt = at;
  node.aliveSince = at;
  fleet.onStopped(node, at, "lost");
}

/** Reboots a node. A graceful reboot has no effect on an unresponsive node that requires a forced one. */
export function reboot(fleet: Fleet, node: SimulatedNode, forced: boolean, at: EpochMs): void {
  if (node.isUnresponsive && node.remedy === "forced_reboot" && !forced) return;
  startReboot(fleet, node, forced, at);
  updateNodeState(fleet, node, at, forced ? "lost" : "closed");
}

/** Cuts off these regions and reconnects all others. */
export function setDownRegions(fleet: Fleet, regions: ReadonlySet<string>, at: EpochMs): void {
  fleet.downRegions = regions;
  for (const node of fleet.nodes) {
    const isDown = regions.has(node.region);
    if (node.isRegionDown === isDown) continue;
    node.isRegionDown = isDown;
    updateNodeState(fleet, node, at, "lost");
  }
}

/** The state of a node outside the fleet: no failure, action or event. */
const ABSENT_STATE = {
  isPresent: false,
  status: "offline",
  failureMode: "none",
  load: null,
  isUnresponsive: false,
  failingSince: NEVER,
  recoverAt: NEVER,
  nextPhaseAt: NEVER,
  rebootUntil: NEVER,
  quarantineUntil: NEVER,
  maintenanceUntil: NEVER,
  maintenanceAt: NEVER,
} as const satisfies Partial<SimulatedNode>;

/** Returns a removed node to the fleet, repaired and freshly booted. */
function returnNode(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  node.isPresent = true;
  node.returnAt = NEVER;
  node.unreportedBootAt = at;
  if (fleet.churn.reuseIds) replaceMachine(fleet.seed, node, at);
  recordMembershipChange(fleet, node, "returned", at);
  insertNode(fleet, node, at);
}

/** Inserts a node into the fleet in the order of indexes and schedules its events. */
function insertNode(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  const before = fleet.nodes.findLastIndex(({ index }) => index < node.index);
  fleet.nodes.splice(before + 1, 0, node);
  node.isRegionDown = fleet.downRegions.has(node.region);
  node.nextPhaseAt = drawInstantAfter(fleet, node, at, fleet.rates.faultEveryMs);
  node.maintenanceAt = drawInstantAfter(fleet, node, at, fleet.rates.maintenanceEveryMs);
  updateNodeState(fleet, node, at, "lost");
}

function recordMembershipChange(
  fleet: Fleet,
  { id }: SimulatedNode,
  kind: MembershipChange["kind"],
  at: EpochMs,
): void {
  fleet.membershipChangeCount += 1;
  fleet.membershipChanges.push({ at, id, kind });
  if (fleet.membershipChanges.length > MEMBERSHIP_CHANGES_MAX) fleet.membershipChanges.shift();
}

/** Returns whether the node leaves the fleet at the end of this reboot. Before the start of the simulation none does. */
const leavesAfterReboot = ({ seed, churn, startMs }: Fleet, { index }: SimulatedNode, at: EpochMs): boolean =>
  at > startMs && hashUnit(seed ^ 0xfade, index, at) < churn.vanishAfterReboot;

/** Returns whether the node stays down after this reboot. Before the start of the simulation none does. */
const failsAfterReboot = ({ seed, churn, startMs }: Fleet, { index }: SimulatedNode, at: EpochMs): boolean =>
  at > startMs && hashUnit(seed ^ 0xdead, index, at) < churn.failAfterReboot;

/** Updates the values that are derived from the node's state, and schedules its next event. */
function updateNodeState(fleet: Fleet, node: SimulatedNode, at: EpochMs, ending: SessionEnding): void {
  const alive = !node.isUnresponsive && !node.isRegionDown && node.rebootUntil === NEVER;
  if (!alive) node.silentSince = Math.min(node.silentSince, at);
  else if (node.silentSince !== NEVER) {
    node.silentSince = NEVER;
    node.aliveSince = at;
  }
  if (alive && node.unreportedBootAt !== NEVER) {
    node.bootAt = node.unreportedBootAt;
    node.unreportedBootAt = NEVER;
  }
  const served = isServing(node);
  const status = statusOf(node, alive);
  if (status !== node.status) node.changedAt = at;
  node.status = status;
  if (served && !isServing(node)) fleet.onStopped(node, at, ending);
  scheduleNextEvent(fleet, node);
}

function statusOf(node: SimulatedNode, alive: boolean): SimulatedNode["status"] {
  if (node.rebootUntil !== NEVER) return "rebooting";
  if (node.quarantineUntil !== NEVER) return "quarantined";
  if (node.maintenanceUntil !== NEVER) return "maintenance";
  return alive ? "online" : "offline";
}

function scheduleNextEvent(fleet: Fleet, node: SimulatedNode): void {
  const { rebootUntil, quarantineUntil, maintenanceUntil, maintenanceAt, recoverAt, nextPhaseAt, returnAt } = node;
  const nextAt = Math.min(
    rebootUntil,
    quarantineUntil,
    maintenanceUntil,
    maintenanceAt,
    recoverAt,
    nextPhaseAt,
    returnAt,
  );
  if (nextAt === node.nextAt) return;
  node.nextAt = nextAt;
  if (nextAt !== NEVER) fleet.eventQueue.add(nextAt, node.index);
}
