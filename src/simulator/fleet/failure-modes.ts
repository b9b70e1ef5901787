import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { FleetRates } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential } from "../hash.ts";

/**
 * The failure of a node:
 * - `outage`: the node does not respond.
 * - `flapping`: it stops and resumes responding every few minutes.
 * - `hot`, `leak` and `full`: it responds, its sessions fail, and only its detail shows the exhausted CPU, memory or
 *   disk. Without a repair these become an outage.
 */
export type FailureMode = "none" | "outage" | "flapping" | "hot" | "leak" | "full";

/** What ends a failure: time, any reboot, only a forced reboot, or only a repair by an operator. */
export type Remedy = "time" | "reboot" | "forced_reboot" | "person";

/** The start of a failure. */
export interface FailureStart {
  readonly failureMode: Exclude<FailureMode, "none">;
  readonly remedy: Remedy;
  /** When it ends without an action, by time or an operator's repair; Infinity if never. */
  readonly recoverAt: EpochMs;
  /** When the node next stops or resumes responding, or its failure becomes an outage; Infinity if never. */
  readonly nextPhaseAt: EpochMs;
}

/** Share of failures that are a crash, after which the node reboots without an action and is healthy. */
const CRASH_SHARE = 0.2;
/** Shares of the other failures. The rest are outages. */
const HOT_SHARE = 0.2;
const LEAK_SHARE = 0.2;
const FULL_SHARE = 0.15;
/** Share of the failures that a reboot ends for which it must be forced, because the system can't shut down. */
const FORCED_REBOOT_SHARE = 0.3;

const TRANSIENT_MS_MIN: DurationMs = 30 * SECOND_MS;
const TRANSIENT_MS_MEAN: DurationMs = 4 * MINUTE_MS;
const TRANSIENT_MS_MAX: DurationMs = 15 * MINUTE_MS;
const FLAP_MS_MIN: DurationMs = MINUTE_MS;
const FLAP_MS_SPREAD: DurationMs = 3 * MINUTE_MS;
const DECLINE_MS_MIN: DurationMs = HOUR_MS;
const DECLINE_MS_SPREAD: DurationMs = 5 * HOUR_MS;

/** Returns the time until a flapping node changes. `unit` is a uniform draw from 0 to 1. */
export const flapMs = (unit: number): DurationMs => Math.ceil(FLAP_MS_MIN + unit * FLAP_MS_SPREAD);

/**
 * Draws the failure of a healthy node at `at`, or null if it crashes and reboots. `draw` returns uniform numbers from 0
 * to 1.
 */
export function drawFailure(rates: FleetRates, at: EpochMs, draw: () => number): FailureStart | null {
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
export const rebootRepairs = (remedy: Remedy, forced: boolean): boolean =>
  remedy === "time" || remedy === "reboot" || (remedy === "forced_reboot" && forced);

function failureModeOf(unit: number, isFlapping: boolean): FailureStart["failureMode"] {
  if (unit < HOT_SHARE) return "hot";
  if (unit < HOT_SHARE + LEAK_SHARE) return "leak";
  if (unit < HOT_SHARE + LEAK_SHARE + FULL_SHARE) return "full";
  return isFlapping ? "flapping" : "outage";
}

function remedyOf(rates: FleetRates, draw: () => number): Remedy {
  if (draw() < rates.selfHealing) return "time";
  if (draw() < rates.incurable) return "person";
  return draw() < FORCED_REBOOT_SHARE ? "forced_reboot" : "reboot";
}

function phaseMs(failureMode: FailureStart["failureMode"], unit: number): DurationMs {
  if (failureMode === "outage") return Number.POSITIVE_INFINITY;
  if (failureMode === "flapping") return flapMs(unit);
  return Math.ceil(DECLINE_MS_MIN + unit * DECLINE_MS_SPREAD);
}
