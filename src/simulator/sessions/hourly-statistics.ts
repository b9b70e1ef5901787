import { DAY_MS, HOUR_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import { hashUnit, type Uint32 } from "../hash.ts";
import { countedBytes } from "./byte-counter.ts";
import { BYTES_PER_MS_MEAN, demandAt, SESSION_MS_MEAN } from "./demand.ts";
import type { Population } from "./population.ts";

/** Totals of one hour (spec, section 2.4). */
interface HourTotals {
  readonly startMs: EpochMs;
  /** Active sessions at the end of the hour. */
  readonly active: number;
  readonly entered: number;
  readonly bytes: number;
}

/** The last 24 complete hours, and the totals at the start of the current hour and day. */
export interface HourlyHistory {
  readonly history: HourTotals[];
  /** End of the current hour. */
  closesAt: EpochMs;
  /** Total sessions and bytes at the start of the current hour and of the current day (UTC). */
  hourEntered: number;
  hourBytes: number;
  dayEntered: number;
  dayBytes: number;
}

const HOURS_KEPT_MAX = DAY_MS / HOUR_MS;
/** Share by which the synthetic hours before the start deviate from the daily curve. */
const SYNTHETIC_NOISE = 0.06;

/**
 * Creates a synthetic history for a network of `target` sessions at `startMs`. `population` is its state at that time.
 */
export function createHourlyHistory(
  seed: Uint32,
  target: number,
  population: Population,
  startMs: EpochMs,
): HourlyHistory {
  const opensAt = Math.floor(startMs / HOUR_MS) * HOUR_MS;
  const history = Array.from({ length: HOURS_KEPT_MAX }, (_, index) =>
    syntheticHour(seed, target, opensAt - (HOURS_KEPT_MAX - index) * HOUR_MS, HOUR_MS),
  );
  const running = syntheticHour(seed, target, opensAt, startMs - opensAt);
  const today = history.filter((hour) => hour.startMs >= startOfDay(startMs));
  const hourEntered = population.enteredCount - running.entered;
  const hourBytes = countedBytes(population.all, 0) - running.bytes;
  population.peakActive = Math.max(population.all.active, ...today.map((hour) => hour.active));
  return {
    history,
    closesAt: opensAt + HOUR_MS,
    hourEntered,
    hourBytes,
    dayEntered: hourEntered - sum(today, "entered"),
    dayBytes: hourBytes - sum(today, "bytes"),
  };
}

/** Completes the current hour at its end, and the day at midnight. */
export function closeHour(hours: HourlyHistory, population: Population, simulationStartMs: EpochMs): void {
  const endMs = hours.closesAt;
  const bytes = countedBytes(population.all, endMs - simulationStartMs);
  const { enteredCount: entered } = population;
  hours.history.push({
    startMs: endMs - HOUR_MS,
    active: population.all.active,
    entered: entered - hours.hourEntered,
    bytes: bytes - hours.hourBytes,
  });
  if (hours.history.length > HOURS_KEPT_MAX) hours.history.shift();
  hours.hourEntered = entered;
  hours.hourBytes = bytes;
  hours.closesAt = endMs + HOUR_MS;
  if (endMs !== startOfDay(endMs)) return;
  hours.dayEntered = entered;
  hours.dayBytes = bytes;
  population.peakActive = population.all.active;
}

const startOfDay = (at: EpochMs): EpochMs => Math.floor(at / DAY_MS) * DAY_MS;

const sum = (entries: readonly HourTotals[], field: "entered" | "bytes"): number =>
  entries.reduce((total, entry) => total + entry[field], 0);

function syntheticHour(seed: Uint32, target: number, startMs: EpochMs, lengthMs: number): HourTotals {
  const noise = 1 + SYNTHETIC_NOISE * (2 * hashUnit(seed, startMs / HOUR_MS, 0x40) - 1);
  const sessions = target * demandAt(startMs + lengthMs / 2) * noise;
  return {
    startMs,
    active: Math.round(target * demandAt(startMs + lengthMs) * noise),
    entered: Math.round((sessions * lengthMs) / SESSION_MS_MEAN),
    bytes: Math.round(sessions * lengthMs * BYTES_PER_MS_MEAN),
  };
}
