import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { FleetRates } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential, hashUnit, type Uint32 } from "../hash.ts";
import { drawFailure, type FailureStart, flapMs, rebootRepairs } from "./failure-modes.ts";
import { NEVER, type SimulatedNode } from "./node.ts";

/** What decides how often nodes fall ill, and which. */
export interface HealthModel {
  readonly seed: Uint32;
  readonly rates: FleetRates;
}

const REPAIR_MS: DurationMs = 10 * MINUTE_MS;

/** A node's health takes its next turn: it falls ill, or its ailment changes. */
export function advanceHealth(healthModel: HealthModel, node: SimulatedNode, at: EpochMs): void {
  if (node.failureMode === "none") drawAndStartFailure(healthModel, node, at);
  else if (node.failureMode === "flapping") {
    node.isUnresponsive = !node.isUnresponsive;
    node.nextPhaseAt = at + flapMs(drawForNode(healthModel, node));
  } else {
    node.failureMode = "outage";
    node.isUnresponsive = true;
    node.nextPhaseAt = NEVER;
  }
}

function drawAndStartFailure(healthModel: HealthModel, node: SimulatedNode, at: EpochMs): void {
  const begun = drawFailure(healthModel.rates, at, () => drawForNode(healthModel, node));
  if (begun === null) {
    node.nextPhaseAt = drawInstantAfter(healthModel, node, at, healthModel.rates.faultEveryMs);
    startReboot(healthModel, node, true, at);
    return;
  }
  startFailure(node, begun, at);
}

/** A node falls ill, whatever ailed it before. */
export function startFailure(
  node: SimulatedNode,
  { failureMode, remedy, recoverAt, nextPhaseAt }: FailureStart,
  at: EpochMs,
): void {
  node.failureMode = failureMode;
  node.remedy = remedy;
  node.failingSince = at;
  node.isUnresponsive = failureMode === "outage" || failureMode === "flapping";
  node.recoverAt = recoverAt;
  node.nextPhaseAt = nextPhaseAt;
}

/** A node's ailment passes by itself, or a person repairs the node. */
export function recoverNode(healthModel: HealthModel, node: SimulatedNode, at: EpochMs): void {
  if (node.remedy !== "time") {
    // A person takes the node out, mends it and boots it.
    node.maintenanceUntil = at + REPAIR_MS;
    node.unreportedBootAt = at;
  }
  clearFailure(healthModel, node, at);
}

function clearFailure(healthModel: HealthModel, node: SimulatedNode, at: EpochMs): void {
  node.failureMode = "none";
  node.failingSince = NEVER;
  node.isUnresponsive = false;
  node.recoverAt = NEVER;
  node.nextPhaseAt = drawInstantAfter(healthModel, node, at, healthModel.rates.faultEveryMs);
}

/** A reboot begins. */
export function startReboot(healthModel: HealthModel, node: SimulatedNode, forced: boolean, at: EpochMs): void {
  node.rebootUntil = at + healthModel.rates.rebootMs;
  node.rebootForced = forced;
}

/** A reboot ends, and with it what it cures. */
export function endReboot(healthModel: HealthModel, node: SimulatedNode, at: EpochMs): void {
  node.rebootUntil = NEVER;
  node.unreportedBootAt = at;
  if (node.failureMode === "none") return;
  if (rebootRepairs(node.remedy, node.rebootForced)) clearFailure(healthModel, node, at);
  // What fills up or leaks starts over.
  else node.failingSince = at;
}

/** An instant by chance, in `meanMs` from `at` on average. */
export const drawInstantAfter = (
  healthModel: HealthModel,
  node: SimulatedNode,
  at: EpochMs,
  meanMs: DurationMs,
): EpochMs => at + Math.max(1, Math.ceil(exponential(meanMs, drawForNode(healthModel, node))));

/** The next uniform number drawn for a node. */
export function drawForNode(healthModel: HealthModel, node: SimulatedNode): number {
  node.drawCount += 1;
  return hashUnit(healthModel.seed, node.index, node.drawCount);
}
