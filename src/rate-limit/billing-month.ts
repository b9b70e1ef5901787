import { DAY_MS } from "../base/duration.ts";
import type { EpochMs } from "../model/time.ts";

/** One month of the plan: from the day on which calls_per_month begins anew to the next such day, in UTC. */
export interface BillingMonth {
  /** Its first day (UTC), such as `2026-11-01`: calls made since then are the month's. */
  readonly firstDay: string;
  readonly startMs: EpochMs;
  readonly endMs: EpochMs;
}

/** The plan's month that `now` falls in. `startsOn` is 1 to 31; a month too short for it begins on its last day. */
export function billingMonthOf(now: EpochMs, startsOn: number): BillingMonth {
  const date = new Date(now);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const here = monthStart(year, month, startsOn);
  const [startMs, endMs] =
    now >= here ? [here, monthStart(year, month + 1, startsOn)] : [monthStart(year, month - 1, startsOn), here];
  return { firstDay: utcDay(startMs), startMs, endMs };
}

/** The day (UTC) that an instant falls on, such as `2026-11-21`. */
export const utcDay = (at: EpochMs): string => new Date(at).toISOString().slice(0, 10);

function monthStart(year: number, month: number, startsOn: number): EpochMs {
  const daysInMonth = (Date.UTC(year, month + 1, 1) - Date.UTC(year, month, 1)) / DAY_MS;
  return Date.UTC(year, month, Math.min(startsOn, daysInMonth));
}
