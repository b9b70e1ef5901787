import { DAY_MS, HOUR_MS } from "../../base/duration.ts";
import type { EpochMs } from "../../model/time.ts";
import { dayCurve, LIFE_MS_MEAN, RATE_MEAN } from "./demand.ts";
import { hashUnit, type Word } from "../hash.ts";
import type { Population } from "./population.ts";
import { tallyBytes } from "./byte-counter.ts";

/** What one whole hour came to (spec, section 2.4). */
export interface Hour {
  readonly startMs: EpochMs;
  /** Active sessions as the hour closed. */
  readonly active: number;
  readonly entered: number;
  readonly bytes: number;
}

/** The history behind the statistics: the last 24 whole hours, and where the running hour and day began. */
export interface Hours {
  readonly history: Hour[];
  /** End of the running hour. */
  closesAt: EpochMs;
  /** Sessions entered, and bytes moved, by the beginning of the running hour and of the running day (UTC). */
  hourEntered: number;
  hourBytes: number;
  dayEntered: number;
  dayBytes: number;
}

const HOURS_KEPT = DAY_MS / HOUR_MS;
/** Hours before the start are made up, and differ from the day's curve by up to this share. */
const NOISE = 0.06;

/** The history that a network of `target` sessions would have by `startMs`. `population` is as it is at that instant. */
export function createHours(seed: Word, target: number, population: Population, startMs: EpochMs): Hours {
  const opensAt = Math.floor(startMs / HOUR_MS) * HOUR_MS;
  const history = Array.from({ length: HOURS_KEPT }, (_, index) =>
    imagine(seed, target, opensAt - (HOURS_KEPT - index) * HOUR_MS, HOUR_MS),
  );
  const running = imagine(seed, target, opensAt, startMs - opensAt);
  const today = history.filter((hour) => hour.startMs >= startOfDay(startMs));
  const hourEntered = population.entered - running.entered;
  const hourBytes = tallyBytes(population.all, 0) - running.bytes;
  population.peak = Math.max(population.all.active, ...today.map((hour) => hour.active));
  return {
    history,
    closesAt: opensAt + HOUR_MS,
    hourEntered,
    hourBytes,
    dayEntered: hourEntered - sum(today, "entered"),
    dayBytes: hourBytes - sum(today, "bytes"),
  };
}

/** Closes the running hour, at its end, and the day with its last. */
export function closeHour(hours: Hours, population: Population, simulationStartMs: EpochMs): void {
  const endMs = hours.closesAt;
  const bytes = tallyBytes(population.all, endMs - simulationStartMs);
  const { entered } = population;
  hours.history.push({
    startMs: endMs - HOUR_MS,
    active: population.all.active,
    entered: entered - hours.hourEntered,
    bytes: bytes - hours.hourBytes,
  });
  if (hours.history.length > HOURS_KEPT) hours.history.shift();
  hours.hourEntered = entered;
  hours.hourBytes = bytes;
  hours.closesAt = endMs + HOUR_MS;
  if (endMs !== startOfDay(endMs)) return;
  hours.dayEntered = entered;
  hours.dayBytes = bytes;
  population.peak = population.all.active;
}

const startOfDay = (at: EpochMs): EpochMs => Math.floor(at / DAY_MS) * DAY_MS;

const sum = (entries: readonly Hour[], field: "entered" | "bytes"): number =>
  entries.reduce((total, entry) => total + entry[field], 0);

function imagine(seed: Word, target: number, startMs: EpochMs, lengthMs: number): Hour {
  const noise = 1 + NOISE * (2 * hashUnit(seed, startMs / HOUR_MS, 0x40) - 1);
  const sessions = target * dayCurve(startMs + lengthMs / 2) * noise;
  return {
    startMs,
    active: Math.round(target * dayCurve(startMs + lengthMs) * noise),
    entered: Math.round((sessions * lengthMs) / LIFE_MS_MEAN),
    bytes: Math.round(sessions * lengthMs * RATE_MEAN),
  };
}
