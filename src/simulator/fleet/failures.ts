import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { FleetRates } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential, hashUnit, type Uint32 } from "../hash.ts";
import { drawFailure, type FailureStart, flapMs, rebootRepairs } from "./failure-modes.ts";
import { NEVER, type SimulatedNode } from "./node.ts";

/** The seed and rates from which failures are drawn. */
export interface HealthModel {
  readonly seed: Uint32;
  readonly rates: FleetRates;
}

const REPAIR_MS: DurationMs = 10 * MINUTE_MS;

/** Executes the next health event of a node, which is the start or the next phase of a failure. */
export function advanceHealth(model: HealthModel, node: SimulatedNode, at: EpochMs): void {
  if (node.failureMode === "none") drawAndStartFailure(model, node, at);
  else if (node.failureMode === "flapping") {
    node.isUnresponsive = !node.isUnresponsive;
    node.nextPhaseAt = at + flapMs(drawForNode(model, node));
  } else {
    node.failureMode = "outage";
    node.isUnresponsive = true;
    node.nextPhaseAt = NEVER;
  }
}

function drawAndStartFailure(model: HealthModel, node: SimulatedNode, at: EpochMs): void {
  const failure = drawFailure(model.rates, at, () => drawForNode(model, node));
  if (failure === null) {
    node.nextPhaseAt = drawInstantAfter(model, node, at, model.rates.faultEveryMs);
    startReboot(model, node, true, at);
    return;
  }
  startFailure(node, failure, at);
}

/** Starts a failure, which replaces an earlier one. */
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

/** Starts an outage that only an operator's repair ends. */
export function failUntilRepaired(model: HealthModel, node: SimulatedNode, at: EpochMs): void {
  const recoverAt = drawInstantAfter(model, node, at, model.rates.repairMs);
  startFailure(node, { failureMode: "outage", remedy: "person", recoverAt, nextPhaseAt: NEVER }, at);
}

/** Ends a failure that time ends, or starts an operator's repair. */
export function recoverNode(model: HealthModel, node: SimulatedNode, at: EpochMs): void {
  if (node.remedy !== "time") {
    // An operator repairs the node in maintenance and boots it.
    node.maintenanceUntil = at + REPAIR_MS;
    node.unreportedBootAt = at;
  }
  clearFailure(model, node, at);
}

function clearFailure(model: HealthModel, node: SimulatedNode, at: EpochMs): void {
  node.failureMode = "none";
  node.failingSince = NEVER;
  node.isUnresponsive = false;
  node.recoverAt = NEVER;
  node.nextPhaseAt = drawInstantAfter(model, node, at, model.rates.faultEveryMs);
}

/** Starts a reboot. */
export function startReboot(model: HealthModel, node: SimulatedNode, forced: boolean, at: EpochMs): void {
  node.rebootUntil = at + model.rates.rebootMs;
  node.rebootForced = forced;
}

/** Ends a reboot and the failure that it repairs. */
export function endReboot(model: HealthModel, node: SimulatedNode, at: EpochMs): void {
  node.rebootUntil = NEVER;
  node.unreportedBootAt = at;
  if (node.failureMode === "none") return;
  if (rebootRepairs(node.remedy, node.rebootForced)) clearFailure(model, node, at);
  // The growth of resource usage starts over.
  else node.failingSince = at;
}

/** Draws a time after `at` with an exponential distribution of mean `meanMs`. */
export const drawInstantAfter = (model: HealthModel, node: SimulatedNode, at: EpochMs, meanMs: DurationMs): EpochMs =>
  at + Math.max(1, Math.ceil(exponential(meanMs, drawForNode(model, node))));

/** Draws the node's next uniform number from 0 to 1. */
export function drawForNode(model: HealthModel, node: SimulatedNode): number {
  node.drawCount += 1;
  return hashUnit(model.seed, node.index, node.drawCount);
}
