import { DAY_MS, type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { FleetRates, Scenario } from "../model/scenario.ts";
import type { EpochMs } from "../model/time.ts";
import { type Agenda, createAgenda } from "./agenda.ts";
import { flapMs, type Onset, onset, rebootCures } from "./ailment.ts";
import { exponential, hashUnit, type Word } from "./hash.ts";
import { nodeIndex, VERSIONS } from "./identity.ts";
import { createNode, NEVER, type SimulatedNode, serves } from "./node.ts";
import { createServing, type Serving } from "./serving.ts";

/** How the sessions of a node end when it stops serving: closed in order, or lost with the node. */
export type Parting = "closed" | "lost";

/** The nodes and their lives. Changed in place by the functions of this file alone. */
export interface Fleet {
  readonly seed: Word;
  readonly rates: FleetRates;
  readonly nodes: readonly SimulatedNode[];
  readonly serving: Serving;
  /** Indexes of nodes by the time of their next event; an entry that is not its node's `nextAt` is overtaken. */
  readonly agenda: Agenda;
  /** Told when a node stops serving. */
  readonly onStopped: (node: SimulatedNode, at: EpochMs, parting: Parting) => void;
}

const MAINTENANCE_MS_MIN: DurationMs = 10 * MINUTE_MS;
const MAINTENANCE_MS_SPREAD: DurationMs = 30 * MINUTE_MS;
const REPAIR_MS: DurationMs = 10 * MINUTE_MS;
/** How long a fleet has lived before the start, so that it starts with its share of ailing nodes. */
const WARMUP_MS_MAX: DurationMs = DAY_MS;

/** A fleet that has lived for up to a day by `startMs`. */
export function createFleet(scenario: Scenario, startMs: EpochMs, onStopped: Fleet["onStopped"]): Fleet {
  const { seed, rates } = scenario;
  const nodes = Array.from({ length: scenario.nodes }, (_, index) => createNode(seed, index, startMs));
  const fleet: Fleet = { seed, rates, nodes, serving: createServing(nodes.length), agenda: createAgenda(), onStopped };
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
  return index === null ? null : (fleet.nodes[index] ?? null);
}

/** Lets the fleet's next event happen, at its own time. */
export function runFleetEvent(fleet: Fleet): void {
  const at = fleet.agenda.nextAt();
  const node = fleet.nodes[fleet.agenda.take()]!;
  if (node.nextAt !== at) return;
  node.nextAt = NEVER;
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
  for (const node of fleet.nodes) {
    const dark = regions.has(node.region);
    if (node.dark === dark) continue;
    node.dark = dark;
    settle(fleet, node, at, "lost");
  }
}

function turn(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  if (node.ailment === "none") fallIll(fleet, node, at);
  else if (node.ailment === "flapping") {
    node.down = !node.down;
    node.turnAt = at + flapMs(draw(fleet, node));
  } else {
    node.ailment = "outage";
    node.down = true;
    node.turnAt = NEVER;
  }
}

function fallIll(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  const begun = onset(fleet.rates, at, () => draw(fleet, node));
  if (begun === null) {
    node.turnAt = after(fleet, node, at, fleet.rates.faultEveryMs);
    startReboot(fleet, node, true, at);
    return;
  }
  contract(node, begun, at);
}

function contract(node: SimulatedNode, { ailment, cure, healAt, turnAt }: Onset, at: EpochMs): void {
  node.ailment = ailment;
  node.cure = cure;
  node.ailingSince = at;
  node.down = ailment === "outage" || ailment === "flapping";
  node.healAt = healAt;
  node.turnAt = turnAt;
}

function heal(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  if (node.cure !== "time") {
    // A person takes the node out, mends it and boots it.
    node.maintenanceUntil = at + REPAIR_MS;
    node.unreportedBootAt = at;
  }
  recover(fleet, node, at);
}

function recover(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  node.ailment = "none";
  node.ailingSince = NEVER;
  node.down = false;
  node.healAt = NEVER;
  node.turnAt = after(fleet, node, at, fleet.rates.faultEveryMs);
}

function startReboot(fleet: Fleet, node: SimulatedNode, forced: boolean, at: EpochMs): void {
  node.rebootUntil = at + fleet.rates.rebootMs;
  node.rebootForced = forced;
}

function endReboot(fleet: Fleet, node: SimulatedNode, at: EpochMs): void {
  node.rebootUntil = NEVER;
  node.unreportedBootAt = at;
  if (node.ailment === "none") return;
  if (rebootCures(node.cure, node.rebootForced)) recover(fleet, node, at);
  // What fills up or leaks starts over.
  else node.ailingSince = at;
}

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
  const { rebootUntil, quarantineUntil, maintenanceUntil, maintenanceAt, healAt, turnAt } = node;
  const nextAt = Math.min(rebootUntil, quarantineUntil, maintenanceUntil, maintenanceAt, healAt, turnAt);
  if (nextAt === node.nextAt) return;
  node.nextAt = nextAt;
  if (nextAt !== NEVER) fleet.agenda.add(nextAt, node.index);
}

const after = (fleet: Fleet, node: SimulatedNode, at: EpochMs, meanMs: DurationMs): EpochMs =>
  at + Math.max(1, Math.ceil(exponential(meanMs, draw(fleet, node))));

function draw(fleet: Fleet, node: SimulatedNode): number {
  node.draws += 1;
  return hashUnit(fleet.seed, node.index, node.draws);
}
