import { DAY_MS } from "../base/duration.ts";
import type { EpochMs } from "../model/time.ts";

/** One month of the plan: from the day on which calls_per_month begins anew to the next such day, in UTC. */
export interface PlanMonth {
  /** Its first day, such as `2026-11-01`: the key under which its calls are kept. */
  readonly key: string;
  readonly startMs: EpochMs;
  readonly endMs: EpochMs;
}

/** The plan's month that `now` falls in. `startsOn` is 1 to 31; a month too short for it begins on its last day. */
export function planMonth(now: EpochMs, startsOn: number): PlanMonth {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const here = startOf(year, month, startsOn);
  const [startMs, endMs] =
    now >= here ? [here, startOf(year, month + 1, startsOn)] : [startOf(year, month - 1, startsOn), here];
  return { key: new Date(startMs).toISOString().slice(0, 10), startMs, endMs };
}

function startOf(year: number, month: number, startsOn: number): EpochMs {
  const daysInMonth = (Date.UTC(year, month + 1, 1) - Date.UTC(year, month, 1)) / DAY_MS;
  return Date.UTC(year, month, Math.min(startsOn, daysInMonth));
}
