import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { FleetRates } from "../../config/schema/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential, hashUnit, type Uint32 } from "../hash.ts";
import { NEVER, type SimulatedNode } from "./node.ts";

/**
 * The failure of a node:
 * - `outage`: the node does not respond.
 * - `flapping`: it stops and resumes responding every few minutes.
 * - `hot`, `leak` and `full`: it responds, its sessions fail, and only its detail shows the exhausted CPU, memory or
 *   disk. If the failure lasts for hours, it becomes an outage.
 */
export type FailureMode = "none" | "outage" | "flapping" | "hot" | "leak" | "full";

/** What ends a failure: time, any reboot, only a forced reboot, or only a repair by an operator. */
export type Remedy = "time" | "reboot" | "forced_reboot" | "operator";

/** The start of a failure. */
export interface FailureStart {
  readonly failureMode: Exclude<FailureMode, "none">;
  readonly remedy: Remedy;
  /** When it ends without an action, by time or an operator's repair; Infinity if never. */
  readonly recoverAt: EpochMs;
  /** When the node next stops or resumes responding, or its failure becomes an outage; Infinity if never. */
  readonly nextPhaseAt: EpochMs;
}

/** Share of failures that are crashes, after which the node reboots by itself and is healthy. */
const CRASH_SHARE = 0.2;
/** Shares of the other failures. The rest are outages, some of them flapping. */
const HOT_SHARE = 0.2;
const LEAK_SHARE = 0.2;
const FULL_SHARE = 0.15;
/** Of the failures that a reboot ends, the share that requires a forced one, because the system can't shut down. */
const FORCED_REBOOT_SHARE = 0.3;

const TRANSIENT_MS_MIN: DurationMs = 30 * SECOND_MS;
const TRANSIENT_MS_MEAN: DurationMs = 4 * MINUTE_MS;
const TRANSIENT_MS_MAX: DurationMs = 15 * MINUTE_MS;
const FLAP_MS_MIN: DurationMs = MINUTE_MS;
const FLAP_MS_SPREAD: DurationMs = 3 * MINUTE_MS;
const DECLINE_MS_MIN: DurationMs = HOUR_MS;
const DECLINE_MS_SPREAD: DurationMs = 5 * HOUR_MS;

/** Returns the time until a flapping node next stops or resumes responding. `unit` is a uniform draw from 0 to 1. */
const flapMs = (unit: number): DurationMs => Math.ceil(FLAP_MS_MIN + unit * FLAP_MS_SPREAD);

/**
 * Draws the failure of a healthy node at `at`, or null if it crashes and reboots. `draw` returns uniform numbers from 0
 * to 1.
 */
function drawFailure(rates: FleetRates, at: EpochMs, draw: () => number): FailureStart | null {
  if (draw() < CRASH_SHARE) return null;
  const failureMode = failureModeOf(draw(), draw() < rates.flapping);
  const remedy = remedyOf(rates, draw);
  const durationMs =
    remedy === "time"
      ? Math.min(TRANSIENT_MS_MAX, TRANSIENT_MS_MIN + exponential(TRANSIENT_MS_MEAN, draw()))
      : exponential(rates.repairMs, draw());
  return { failureMode, remedy, recoverAt: at + Math.ceil(durationMs), nextPhaseAt: at + phaseMs(failureMode, draw()) };
}

/** Returns whether a reboot ends a failure with this remedy. A reboot also ends a failure that time would end. */
const rebootRepairs = (remedy: Remedy, forced: boolean): boolean =>
  remedy === "time" || remedy === "reboot" || (remedy === "forced_reboot" && forced);

function failureModeOf(unit: number, isFlapping: boolean): FailureStart["failureMode"] {
  if (unit < HOT_SHARE) return "hot";
  if (unit < HOT_SHARE + LEAK_SHARE) return "leak";
  if (unit < HOT_SHARE + LEAK_SHARE + FULL_SHARE) return "full";
  return isFlapping ? "flapping" : "outage";
}

function remedyOf(rates: FleetRates, draw: () => number): Remedy {
  if (draw() < rates.selfHealing) return "time";
  if (draw() < rates.incurable) return "operator";
  return draw() < FORCED_REBOOT_SHARE ? "forced_reboot" : "reboot";
}

function phaseMs(failureMode: FailureStart["failureMode"], unit: number): DurationMs {
  if (failureMode === "outage") return Number.POSITIVE_INFINITY;
  if (failureMode === "flapping") return flapMs(unit);
  return Math.ceil(DECLINE_MS_MIN + unit * DECLINE_MS_SPREAD);
}

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
  startFailure(node, { failureMode: "outage", remedy: "operator", recoverAt, nextPhaseAt: NEVER }, at);
}

/** Ends a failure, either by time or by an operator, who repairs the node in maintenance and boots it. */
export function recoverNode(model: HealthModel, node: SimulatedNode, at: EpochMs): void {
  if (node.remedy !== "time") {
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
