import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { ChurnRates, Scenario } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { type Agenda, createAgenda } from "../event-queue.ts";
import type { Onset } from "./failure-modes.ts";
import { hashUnit } from "../hash.ts";
import { after, contract, draw, endReboot, type Hazards, heal, startReboot, turn } from "./failures.ts";
import { nodeIndex, VERSIONS } from "./node-identity.ts";
import { createNode, NEVER, type SimulatedNode, serves } from "./node.ts";
import { createServing, type Serving } from "./serving-nodes.ts";

/** How the sessions of a node end when it stops serving: closed in order, or lost with the node. */
export type Parting = "closed" | "lost";

/** The nodes and their lives. Changed in place by the functions of this file alone. */
export interface Fleet extends Hazards {
  /** When the simulation starts. */
  readonly startMs: EpochMs;
  readonly churn: ChurnRates;
  /** Every node that ever belonged to it, by index; null: it left for good. */
  readonly all: (SimulatedNode | null)[];
  /** Those that belong to it now, by index. */
  readonly nodes: SimulatedNode[];
  /** The last joins and leaves, oldest first, and how many there ever were. */
  readonly moves: FleetMove[];
  moveCount: number;
  /** Regions that are cut off. */
  dark: ReadonlySet<string>;
  /** Counts changes of any node's status, boot or membership: what was derived from them holds until the next. */
  changes: number;
  readonly serving: Serving;
  /** Indexes of nodes by the time of their next event; an entry that is not its node's `nextAt` is overtaken. */
  readonly agenda: Agenda;
  /** Told when a node stops serving. */
  readonly onStopped: (node: SimulatedNode, at: EpochMs, parting: Parting) => void;
}

/** A node that joined the fleet, left it or came back to it. */
export interface FleetMove {
  readonly at: EpochMs;
  readonly id: string;
  readonly kind: "joined" | "left" | "returned";
}

/** Moves that are kept: far more than there are within any walk or test. */
const MOVES_MAX = 10_000;
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
    ...{ all: [...nodes], nodes, moves: [], moveCount: 0, dark: new Set(), changes: 0 },
    serving: createServing(),
    agenda: createAgenda(),
  };
  // Two lives are enough to even out, and a script of one fault a minute shall not cost a day of them.
  const bornMs = startMs - Math.min(WARMUP_MS_MAX, 2 * rates.faultEveryMs);
  for (const node of nodes) {
    node.turnAt = after(fleet, node, bornMs, rates.faultEveryMs);
    node.maintenanceAt = after(fleet, node, bornMs, rates.maintenanceEveryMs);
    fleet.serving.join(node);
    schedule(fleet, node);
  }
  while (fleet.agenda.nextAt() <= startMs) runFleetEvent(fleet);
  return fleet;
}

/** The node of that identifier; null if the fleet has none. */
export function findNode(fleet: Fleet, id: string): SimulatedNode | null {
  const index = nodeIndex(fleet.seed, id);
  const node = index === null ? undefined : fleet.all[index];
  return node?.isPresent === true ? node : null;
}

/** Lets the fleet's next event happen, at its own time. */
export function runFleetEvent(fleet: Fleet): void {
  const at = fleet.agenda.nextAt();
  const node = fleet.all[fleet.agenda.take()];
  if (node?.nextAt !== at) return;
  node.nextAt = NEVER;
  if (!node.isPresent) returnNode(fleet, node, at);
  else if (node.rebootUntil <= at && vanishes(fleet, node, at)) {
    removeNode(fleet, node, at, at + fleet.churn.vanishForMs);
  } else moveOn(fleet, node, at);
}

/** Lets all happen to a node that is due. */
function moveOn(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  let parting: Parting = "lost";
  if (node.rebootUntil <= at) endReboot(fleet, node, at);
  if (node.quarantineUntil <= at) node.quarantineUntil = NEVER;
  if (node.maintenanceUntil <= at) {
    node.maintenanceUntil = NEVER;
    node.version = VERSIONS[0].version;
  }
  if (node.maintenanceAt <= at) {
    parting = "closed";
    node.maintenanceUntil = at + Math.ceil(MAINTENANCE_MS_MIN + draw(fleet, node) * MAINTENANCE_MS_SPREAD);
    node.maintenanceAt = after(fleet, node, at, fleet.rates.maintenanceEveryMs);
  }
  if (node.healAt <= at) {
    if (node.cure !== "time") parting = "closed";
    heal(fleet, node, at);
  }
  if (node.turnAt <= at) turn(fleet, node, at);
  settle(fleet, node, at, parting);
}

/** A new node joins the fleet. */
export function admitNode(fleet: Fleet, at: EpochMs): void {
  const node = createNode(fleet.seed, fleet.all.length, at, true);
  fleet.all.push(node);
  noteMove(fleet, node, "joined", at);
  enlist(fleet, node, at);
}

/** A node leaves the fleet with its sessions lost, until `returnAt`; {@link NEVER}: for good. */
export function removeNode(fleet: Fleet, node: SimulatedNode, at: EpochMs, returnAt: EpochMs): void {
  fleet.nodes.splice(fleet.nodes.indexOf(node), 1);
  noteMove(fleet, node, "left", at);
  const served = serves(node);
  Object.assign(node, GONE, { silentSince: Math.min(node.silentSince, at), returnAt });
  if (served) {
    fleet.serving.leave(node);
    fleet.onStopped(node, at, "lost");
  }
  if (returnAt === NEVER) fleet.all[node.index] = null;
  else schedule(fleet, node);
}

/** Puts a node into quarantine until `until`; a second quarantine replaces the first. */
export function quarantine(fleet: Fleet, node: SimulatedNode, until: EpochMs, at: EpochMs): void {
  node.quarantineUntil = until;
  settle(fleet, node, at, "closed");
}

/** Ends a node's quarantine before its time, as a person may. */
export function liftQuarantine(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  node.quarantineUntil = NEVER;
  settle(fleet, node, at, "closed");
}

/** Makes a node fall ill, whatever ailed it before. */
export function inflict(fleet: Fleet, node: SimulatedNode, illness: Onset, at: EpochMs): void {
  contract(node, illness, at);
  settle(fleet, node, at, "lost");
}

/**
 * Restarts a node that serves, so fast that its status never shows it: its sessions are lost, its uptime begins anew,
 * and it reports at once.
 */
export function restart(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  if (!serves(node)) return;
  node.bootAt = at;
  node.aliveSince = at;
  fleet.changes += 1;
  fleet.onStopped(node, at, "lost");
}

/** Reboots a node. A graceful reboot of a node that hangs too deep to hear of it changes nothing. */
export function reboot(fleet: Fleet, node: SimulatedNode, forced: boolean, at: EpochMs): void {
  if (node.down && node.cure === "forced_reboot" && !forced) return;
  startReboot(fleet, node, forced, at);
  settle(fleet, node, at, forced ? "lost" : "closed");
}

/** Cuts regions off, and brings every other one back. */
export function darken(fleet: Fleet, regions: ReadonlySet<string>, at: EpochMs): void {
  fleet.dark = regions;
  for (const node of fleet.nodes) {
    const dark = regions.has(node.region);
    if (node.dark === dark) continue;
    node.dark = dark;
    settle(fleet, node, at, "lost");
  }
}

/** A state without ailment, action or event. */
const GONE = {
  ...{ isPresent: false, status: "offline", ailment: "none", strain: null, down: false },
  ...{ ailingSince: NEVER, healAt: NEVER, turnAt: NEVER, rebootUntil: NEVER, quarantineUntil: NEVER },
  ...{ maintenanceUntil: NEVER, maintenanceAt: NEVER },
} as const satisfies Partial<SimulatedNode>;

/** A node that left comes back to the fleet, repaired and just booted. */
function returnNode(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  node.isPresent = true;
  node.returnAt = NEVER;
  node.unreportedBootAt = at;
  if (fleet.churn.reuseIds) node.createdAt = at;
  noteMove(fleet, node, "returned", at);
  enlist(fleet, node, at);
}

/** Puts a node among those that belong to the fleet, in its place by index, and begins its life. */
function enlist(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  const before = fleet.nodes.findLastIndex(({ index }) => index < node.index);
  fleet.nodes.splice(before + 1, 0, node);
  node.dark = fleet.dark.has(node.region);
  node.turnAt = after(fleet, node, at, fleet.rates.faultEveryMs);
  node.maintenanceAt = after(fleet, node, at, fleet.rates.maintenanceEveryMs);
  if (serves(node)) fleet.serving.join(node);
  settle(fleet, node, at, "lost");
}

function noteMove(fleet: Fleet, { id }: SimulatedNode, kind: FleetMove["kind"], at: EpochMs): void {
  fleet.changes += 1;
  fleet.moveCount += 1;
  fleet.moves.push({ at, id, kind });
  if (fleet.moves.length > MOVES_MAX) fleet.moves.shift();
}

/** Whether a reboot that is over takes the node out of the fleet. The life before the start doesn't count. */
const vanishes = ({ seed, churn, startMs }: Fleet, { index }: SimulatedNode, at: EpochMs): boolean =>
  at > startMs && hashUnit(seed ^ 0xfade, index, at) < churn.vanishAfterReboot;

/** Brings what follows from the node's state up to date, and schedules its next event. */
function settle(fleet: Fleet, node: SimulatedNode, at: EpochMs, parting: Parting): void {
  const alive = !node.down && !node.dark && node.rebootUntil === NEVER;
  if (!alive) node.silentSince = Math.min(node.silentSince, at);
  else if (node.silentSince !== NEVER) {
    node.silentSince = NEVER;
    node.aliveSince = at;
  }
  if (alive && node.unreportedBootAt !== NEVER) {
    node.bootAt = node.unreportedBootAt;
    node.unreportedBootAt = NEVER;
  }
  fleet.changes += 1;
  const served = serves(node);
  const status = statusOf(node, alive);
  if (status !== node.status) node.changedAt = at;
  node.status = status;
  if (served && !serves(node)) {
    fleet.serving.leave(node);
    fleet.onStopped(node, at, parting);
  } else if (!served && serves(node)) fleet.serving.join(node);
  schedule(fleet, node);
}

function statusOf(node: SimulatedNode, alive: boolean): SimulatedNode["status"] {
  if (node.rebootUntil !== NEVER) return "rebooting";
  if (node.quarantineUntil !== NEVER) return "quarantined";
  if (node.maintenanceUntil !== NEVER) return "maintenance";
  return alive ? "online" : "offline";
}

function schedule(fleet: Fleet, node: SimulatedNode): void {
  const { rebootUntil, quarantineUntil, maintenanceUntil, maintenanceAt, healAt, turnAt, returnAt } = node;
  const nextAt = Math.min(rebootUntil, quarantineUntil, maintenanceUntil, maintenanceAt, healAt, turnAt, returnAt);
  if (nextAt === node.nextAt) return;
  node.nextAt = nextAt;
  if (nextAt !== NEVER) fleet.agenda.add(nextAt, node.index);
}
