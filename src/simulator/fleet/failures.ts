import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { FleetRates } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { flapMs, type Onset, onset, rebootCures } from "./failure-modes.ts";
import { exponential, hashUnit, type Word } from "../hash.ts";
import { NEVER, type SimulatedNode } from "./node.ts";

/** What decides how often nodes fall ill, and which. */
export interface Hazards {
  readonly seed: Word;
  readonly rates: FleetRates;
}

const REPAIR_MS: DurationMs = 10 * MINUTE_MS;

/** A node's health takes its next turn: it falls ill, or its ailment changes. */
export function turn(hazards: Hazards, node: SimulatedNode, at: EpochMs): void {
  if (node.ailment === "none") fallIll(hazards, node, at);
  else if (node.ailment === "flapping") {
    node.down = !node.down;
    node.turnAt = at + flapMs(draw(hazards, node));
  } else {
    node.ailment = "outage";
    node.down = true;
    node.turnAt = NEVER;
  }
}

function fallIll(hazards: Hazards, node: SimulatedNode, at: EpochMs): void {
  const begun = onset(hazards.rates, at, () => draw(hazards, node));
  if (begun === null) {
    node.turnAt = after(hazards, node, at, hazards.rates.faultEveryMs);
    startReboot(hazards, node, true, at);
    return;
  }
  contract(node, begun, at);
}

/** A node falls ill, whatever ailed it before. */
export function contract(node: SimulatedNode, { ailment, cure, healAt, turnAt }: Onset, at: EpochMs): void {
  node.ailment = ailment;
  node.cure = cure;
  node.ailingSince = at;
  node.down = ailment === "outage" || ailment === "flapping";
  node.healAt = healAt;
  node.turnAt = turnAt;
}

/** A node's ailment passes by itself, or a person repairs the node. */
export function heal(hazards: Hazards, node: SimulatedNode, at: EpochMs): void {
  if (node.cure !== "time") {
    // A person takes the node out, mends it and boots it.
    node.maintenanceUntil = at + REPAIR_MS;
    node.unreportedBootAt = at;
  }
  recover(hazards, node, at);
}

function recover(hazards: Hazards, node: SimulatedNode, at: EpochMs): void {
  node.ailment = "none";
  node.ailingSince = NEVER;
  node.down = false;
  node.healAt = NEVER;
  node.turnAt = after(hazards, node, at, hazards.rates.faultEveryMs);
}

/** A reboot begins. */
export function startReboot(hazards: Hazards, node: SimulatedNode, forced: boolean, at: EpochMs): void {
  node.rebootUntil = at + hazards.rates.rebootMs;
  node.rebootForced = forced;
}

/** A reboot ends, and with it what it cures. */
export function endReboot(hazards: Hazards, node: SimulatedNode, at: EpochMs): void {
  node.rebootUntil = NEVER;
  node.unreportedBootAt = at;
  if (node.ailment === "none") return;
  if (rebootCures(node.cure, node.rebootForced)) recover(hazards, node, at);
  // What fills up or leaks starts over.
  else node.ailingSince = at;
}

/** An instant by chance, in `meanMs` from `at` on average. */
export const after = (hazards: Hazards, node: SimulatedNode, at: EpochMs, meanMs: DurationMs): EpochMs =>
  at + Math.max(1, Math.ceil(exponential(meanMs, draw(hazards, node))));

/** The next uniform number drawn for a node. */
export function draw(hazards: Hazards, node: SimulatedNode): number {
  node.draws += 1;
  return hashUnit(hazards.seed, node.index, node.draws);
}
