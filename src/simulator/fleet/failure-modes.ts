import { type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { FleetRates } from "../../model/scenario.ts";
import type { EpochMs } from "../../model/time.ts";
import { exponential } from "../hash.ts";

/**
 * What is wrong with a node. `outage`: it does not respond; `flapping`: it does, and does not, every few minutes;
 * `hot`, `leak` and `full`: it responds, its sessions fail, and only the detail shows the processor, the memory or the
 * disk that is to blame. Left alone, those three end in an outage.
 */
export type FailureMode = "none" | "outage" | "flapping" | "hot" | "leak" | "full";

/** What ends a failure: time, any reboot, only a forced reboot, or only an operator. */
export type Remedy = "time" | "reboot" | "forced_reboot" | "person";

/** How an ailment begins. */
export interface FailureStart {
  readonly failureMode: Exclude<FailureMode, "none">;
  readonly remedy: Remedy;
  /** When it passes by itself, or a person mends it; Infinity: never. */
  readonly recoverAt: EpochMs;
  /** When it takes its next turn, up or down, or into an outage; Infinity: never. */
  readonly nextPhaseAt: EpochMs;
}

/** Share of faults that are a crash: the node reboots by itself, and is well. */
const CRASH_SHARE = 0.2;
/** Shares of the other faults; what is left are outages. */
const HOT_SHARE = 0.2;
const LEAK_SHARE = 0.2;
const FULL_SHARE = 0.15;
/** Share of what a reboot heals that only a forced one does: the system hangs too deep to shut down. */
const FORCED_REBOOT_SHARE = 0.3;

const TRANSIENT_MS_MIN: DurationMs = 30 * SECOND_MS;
const TRANSIENT_MS_MEAN: DurationMs = 4 * MINUTE_MS;
const TRANSIENT_MS_MAX: DurationMs = 15 * MINUTE_MS;
const FLAP_MS_MIN: DurationMs = MINUTE_MS;
const FLAP_MS_SPREAD: DurationMs = 3 * MINUTE_MS;
const DECLINE_MS_MIN: DurationMs = HOUR_MS;
const DECLINE_MS_SPREAD: DurationMs = 5 * HOUR_MS;

/** How long until a flapping node changes its mind. `unit`: a uniform draw. */
export const flapMs = (unit: number): DurationMs => Math.ceil(FLAP_MS_MIN + unit * FLAP_MS_SPREAD);

/** Draws the next failure of a healthy node at `at`; null: it crashes and reboots. `draw` gives uniform numbers. */
export function drawFailure(rates: FleetRates, at: EpochMs, draw: () => number): FailureStart | null {
  if (draw() < CRASH_SHARE) return null;
  const failureMode = failureModeOf(draw(), draw() < rates.flapping);
  const remedy = remedyOf(rates, draw);
  const lasts =
    remedy === "time"
      ? Math.min(TRANSIENT_MS_MAX, TRANSIENT_MS_MIN + exponential(TRANSIENT_MS_MEAN, draw()))
      : exponential(rates.repairMs, draw());
  return { failureMode, remedy, recoverAt: at + Math.ceil(lasts), nextPhaseAt: at + phaseMs(failureMode, draw()) };
}

/** Whether a reboot of that kind ends what has that cure. What passes by itself passes with a reboot, too. */
export const rebootRepairs = (remedy: Remedy, forced: boolean): boolean =>
  remedy === "time" || remedy === "reboot" || (remedy === "forced_reboot" && forced);

function failureModeOf(unit: number, flaps: boolean): FailureStart["failureMode"] {
  if (unit < HOT_SHARE) return "hot";
  if (unit < HOT_SHARE + LEAK_SHARE) return "leak";
  if (unit < HOT_SHARE + LEAK_SHARE + FULL_SHARE) return "full";
  return flaps ? "flapping" : "outage";
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
