import { createTask, parse, validateDetailed } from "node-cron";
import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { EpochMs } from "../model/time.ts";

/** A leap day is at most eight years away, as from 1896 to 1904 and from 2096 to 2104. */
const LOOKAHEAD_DAYS_MAX = 8 * 366;
/** Within this time a leap day falls on each weekday, so an expression without a time until then never runs. */
const CYCLE_DAYS_MAX = 40 * 366;
/** Maximum number of cached schedules. Each collector has at most one, but reloads may add others. */
const SCHEDULES_MAX = 64;

/** The times of day and the days of a cron expression. */
type CronSchedule = ReturnType<typeof parseSchedule>;

/** Schedules by expression. */
const schedules = new Map<string, CronSchedule>();

/**
 * Returns the first time of a cron expression after `after`, in UTC, or null if there is none within eight years. Throws
 * if the expression is invalid. It has five or six fields in node-cron's grammar: names, ranges, steps, lists, `L`, `W`,
 * `#` and nicknames such as `@hourly`. Unlike in Vixie cron, a day must match both the day of month and the day of week.
 */
export function nextCronTime(expression: string, after: EpochMs): EpochMs | null {
  let schedule = schedules.get(expression);
  if (schedule === undefined) {
    if (schedules.size >= SCHEDULES_MAX) schedules.clear();
    schedule = parseSchedule(expression);
    schedules.set(expression, schedule);
  }
  return nextRunAt(schedule, after, LOOKAHEAD_DAYS_MAX);
}

/** Returns everything that is wrong with a cron expression, or null if it is valid and has a time. */
export function cronError(expression: string): string | null {
  const { valid, errors } = validateDetailed(expression);
  if (!valid) {
    const faults = errors.map(({ message }) => message.replace(" is a invalid expression for ", " is not a valid "));
    return `${faults.join("; ")}; a cron expression looks like "2 * * * *" (minute, hour, day, month, weekday; seconds are optional and come first)`;
  }
  return nextRunAt(parseSchedule(expression), 0, CYCLE_DAYS_MAX) === null ? "it names a day that never occurs" : null;
}

function parseSchedule(expression: string) {
  const fields = parse(expression);
  const hours = fields.hour.map((hour) => hour * HOUR_MS);
  const minutes = hours.flatMap((hourMs) => fields.minute.map((minute) => hourMs + minute * MINUTE_MS));
  const seconds = minutes.flatMap((minuteMs) => fields.second.map((second) => minuteMs + second * SECOND_MS));
  const times: readonly DurationMs[] = seconds.toSorted((a, b) => a - b);
  const task = createTask(expression, () => {}, { timezone: "UTC" });
  // Only `match` is used. Unless it is destroyed, node-cron keeps the task for the life of the process.
  task.destroy();
  // The next time is computed every few seconds, mostly on the same day, and `match` is slow.
  let last = { day: Number.NaN, runs: false };
  return {
    /** Offsets from midnight, in ascending order. */
    times,
    /** Months, 1 to 12. Checking them first is cheaper than `runsOn`. */
    months: fields.month,
    /** Returns whether it runs on the UTC day that begins at `day`. */
    runsOn(day: EpochMs): boolean {
      if (last.day !== day) last = { day, runs: task.match(new Date(day + times[0]!)) };
      return last.runs;
    },
  };
}

function nextRunAt(schedule: CronSchedule, after: EpochMs, daysMax: number): EpochMs | null {
  const from = (Math.floor(after / SECOND_MS) + 1) * SECOND_MS;
  const firstDay = Math.floor(from / DAY_MS) * DAY_MS;
  for (let day = firstDay; day <= firstDay + daysMax * DAY_MS; day += DAY_MS) {
    if (!schedule.months.includes(new Date(day).getUTCMonth() + 1)) continue;
    const time = schedule.times.find((each) => day + each >= from);
    if (time !== undefined && schedule.runsOn(day)) return day + time;
  }
  return null;
}
