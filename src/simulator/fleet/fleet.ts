import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { ChurnRates, Scenario } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { createEventQueue, type EventQueue } from "../event-queue.ts";
import { hashUnit } from "../hash.ts";
import type { FailureStart } from "./failure-modes.ts";
import {
  advanceHealth,
  drawForNode,
  drawInstantAfter,
  endReboot,
  type HealthModel,
  recoverNode,
  startFailure,
  startReboot,
} from "./failures.ts";
import { createNode, isServing, NEVER, type SimulatedNode } from "./node.ts";
import { nodeIndex, VERSIONS } from "./node-identity.ts";
import { createServingNodes, type ServingNodes } from "./serving-nodes.ts";

/** How the sessions of a node end when it stops serving: closed in order, or lost with the node. */
export type SessionEnding = "closed" | "lost";

/** The nodes and their lives. Changed in place by the functions of this file alone. */
export interface Fleet extends HealthModel {
  /** When the simulation starts. */
  readonly startMs: EpochMs;
  readonly churn: ChurnRates;
  /** Every node that ever belonged to it, by index; null: it left for good. */
  readonly allNodes: (SimulatedNode | null)[];
  /** Those that belong to it now, by index. */
  readonly nodes: SimulatedNode[];
  /** The last joins and leaves, oldest first, and how many there ever were. */
  readonly membershipChanges: MembershipChange[];
  membershipChangeCount: number;
  /** Regions that are cut off. */
  downRegions: ReadonlySet<string>;
  /** Counts changes of any node's status, boot or membership: what was derived from them holds until the next. */
  changeCount: number;
  readonly servingNodes: ServingNodes;
  /** Indexes of nodes by the time of their next event; an entry that is not its node's `nextAt` is overtaken. */
  readonly eventQueue: EventQueue;
  /** Told when a node stops serving. */
  readonly onStopped: (node: SimulatedNode, at: EpochMs, ending: SessionEnding) => void;
}

/** A node that joined the fleet, left it or came back to it. */
export interface MembershipChange {
  readonly at: EpochMs;
  readonly id: string;
  readonly kind: "joined" | "left" | "returned";
}

/** Moves that are kept: far more than there are within any walk or test. */
const MEMBERSHIP_CHANGES_MAX = 10_000;
const MAINTENANCE_MS_MIN: DurationMs = 10 * MINUTE_MS;
const MAINTENANCE_MS_SPREAD: DurationMs = 30 * MINUTE_MS;
/** How long a fleet has lived before the start, so that it starts with its share of ailing nodes. */
const WARMUP_MS_MAX: DurationMs = DAY_MS;

/** A fleet that has lived for up to a day by `startMs`. */
export function createFleet(scenario: Scenario, startMs: EpochMs, onStopped: Fleet["onStopped"]): Fleet {
  const { seed, rates, churn } = scenario;
  const nodes = Array.from({ length: scenario.nodes }, (_, index) => createNode(seed, index, startMs));
  const fleet: Fleet = {
    ...{ seed, rates, churn, startMs, onStopped },
    ...{
      allNodes: [...nodes],
      nodes,
      membershipChanges: [],
      membershipChangeCount: 0,
      downRegions: new Set(),
      changeCount: 0,
    },
    servingNodes: createServingNodes(),
    eventQueue: createEventQueue(),
  };
  // Two lives are enough to even out, and a script of one fault a minute shall not cost a day of them.
  const bornMs = startMs - Math.min(WARMUP_MS_MAX, 2 * rates.faultEveryMs);
  for (const node of nodes) {
    node.nextPhaseAt = drawInstantAfter(fleet, node, bornMs, rates.faultEveryMs);
    node.maintenanceAt = drawInstantAfter(fleet, node, bornMs, rates.maintenanceEveryMs);
    fleet.servingNodes.join(node);
    scheduleNextEvent(fleet, node);
  }
  while (fleet.eventQueue.nextAt() <= startMs) runFleetEvent(fleet);
  return fleet;
}

/** The node of that identifier; null if the fleet has none. */
export function findNode(fleet: Fleet, id: string): SimulatedNode | null {
  const index = nodeIndex(fleet.seed, id);
  const node = index === null ? undefined : fleet.allNodes[index];
  return node?.isPresent === true ? node : null;
}

/** Lets the fleet's next event happen, at its own time. */
export function runFleetEvent(fleet: Fleet): void {
  const at = fleet.eventQueue.nextAt();
  const node = fleet.allNodes[fleet.eventQueue.take()];
  if (node?.nextAt !== at) return;
  node.nextAt = NEVER;
  if (!node.isPresent) returnNode(fleet, node, at);
  else if (node.rebootUntil <= at && leavesAfterReboot(fleet, node, at)) {
    removeNode(fleet, node, at, at + fleet.churn.vanishForMs);
  } else advanceNode(fleet, node, at);
}

/** Lets all happen to a node that is due. */
function advanceNode(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  let ending: SessionEnding = "lost";
  if (node.rebootUntil <= at) endReboot(fleet, node, at);
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

/** A new node joins the fleet. */
export function addNewNode(fleet: Fleet, at: EpochMs): void {
  const node = createNode(fleet.seed, fleet.allNodes.length, at, true);
  fleet.allNodes.push(node);
  recordMembershipChange(fleet, node, "joined", at);
  insertNode(fleet, node, at);
}

/** A node leaves the fleet with its sessions lost, until `returnAt`; {@link NEVER}: for good. */
export function removeNode(fleet: Fleet, node: SimulatedNode, at: EpochMs, returnAt: EpochMs): void {
  fleet.nodes.splice(fleet.nodes.indexOf(node), 1);
  recordMembershipChange(fleet, node, "left", at);
  const served = isServing(node);
  Object.assign(node, ABSENT_STATE, { silentSince: Math.min(node.silentSince, at), returnAt });
  if (served) {
    fleet.servingNodes.leave(node);
    fleet.onStopped(node, at, "lost");
  }
  if (returnAt === NEVER) fleet.allNodes[node.index] = null;
  else scheduleNextEvent(fleet, node);
}

/** Puts a node into quarantine until `until`; a second quarantine replaces the first. */
export function quarantine(fleet: Fleet, node: SimulatedNode, until: EpochMs, at: EpochMs): void {
  node.quarantineUntil = until;
  updateNodeState(fleet, node, at, "closed");
}

/** Ends a node's quarantine before its time, as a person may. */
export function liftQuarantine(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  node.quarantineUntil = NEVER;
  updateNodeState(fleet, node, at, "closed");
}

/** Makes a node fall ill, whatever ailed it before. */
export function injectFailure(fleet: Fleet, node: SimulatedNode, failure: FailureStart, at: EpochMs): void {
  startFailure(node, failure, at);
  updateNodeState(fleet, node, at, "lost");
}

/**
 * Restarts a node that serves, so fast that its status never shows it: its sessions are lost, its uptime begins anew,
 * and it reports at once.
 */
export function restart(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  if (!isServing(node)) return;
  node.bootAt = at;
  node.aliveSince = at;
  fleet.changeCount += 1;
  fleet.onStopped(node, at, "lost");
}

/** Reboots a node. A graceful reboot of a node that hangs too deep to hear of it changes nothing. */
export function reboot(fleet: Fleet, node: SimulatedNode, forced: boolean, at: EpochMs): void {
  if (node.isUnresponsive && node.remedy === "forced_reboot" && !forced) return;
  startReboot(fleet, node, forced, at);
  updateNodeState(fleet, node, at, forced ? "lost" : "closed");
}

/** Cuts regions off, and brings every other one back. */
export function setDownRegions(fleet: Fleet, regions: ReadonlySet<string>, at: EpochMs): void {
  fleet.downRegions = regions;
  for (const node of fleet.nodes) {
    const dark = regions.has(node.region);
    if (node.isRegionDown === dark) continue;
    node.isRegionDown = dark;
    updateNodeState(fleet, node, at, "lost");
  }
}

/** A state without ailment, action or event. */
const ABSENT_STATE = {
  ...{ isPresent: false, status: "offline", failureMode: "none", load: null, isUnresponsive: false },
  ...{ failingSince: NEVER, recoverAt: NEVER, nextPhaseAt: NEVER, rebootUntil: NEVER, quarantineUntil: NEVER },
  ...{ maintenanceUntil: NEVER, maintenanceAt: NEVER },
} as const satisfies Partial<SimulatedNode>;

/** A node that left comes back to the fleet, repaired and just booted. */
function returnNode(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  node.isPresent = true;
  node.returnAt = NEVER;
  node.unreportedBootAt = at;
  if (fleet.churn.reuseIds) node.createdAt = at;
  recordMembershipChange(fleet, node, "returned", at);
  insertNode(fleet, node, at);
}

/** Puts a node among those that belong to the fleet, in its place by index, and begins its life. */
function insertNode(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  const before = fleet.nodes.findLastIndex(({ index }) => index < node.index);
  fleet.nodes.splice(before + 1, 0, node);
  node.isRegionDown = fleet.downRegions.has(node.region);
  node.nextPhaseAt = drawInstantAfter(fleet, node, at, fleet.rates.faultEveryMs);
  node.maintenanceAt = drawInstantAfter(fleet, node, at, fleet.rates.maintenanceEveryMs);
  if (isServing(node)) fleet.servingNodes.join(node);
  updateNodeState(fleet, node, at, "lost");
}

function recordMembershipChange(
  fleet: Fleet,
  { id }: SimulatedNode,
  kind: MembershipChange["kind"],
  at: EpochMs,
): void {
  fleet.changeCount += 1;
  fleet.membershipChangeCount += 1;
  fleet.membershipChanges.push({ at, id, kind });
  if (fleet.membershipChanges.length > MEMBERSHIP_CHANGES_MAX) fleet.membershipChanges.shift();
}

/** Whether a reboot that is over takes the node out of the fleet. The life before the start doesn't count. */
const leavesAfterReboot = ({ seed, churn, startMs }: Fleet, { index }: SimulatedNode, at: EpochMs): boolean =>
  at > startMs && hashUnit(seed ^ 0xfade, index, at) < churn.vanishAfterReboot;

/** Brings what follows from the node's state up to date, and schedules its next event. */
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
  fleet.changeCount += 1;
  const served = isServing(node);
  const status = statusOf(node, alive);
  if (status !== node.status) node.changedAt = at;
  node.status = status;
  if (served && !isServing(node)) {
    fleet.servingNodes.leave(node);
    fleet.onStopped(node, at, ending);
  } else if (!served && isServing(node)) fleet.servingNodes.join(node);
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
