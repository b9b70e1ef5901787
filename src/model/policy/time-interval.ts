import { DAY_MS } from "../../base/duration.ts";

/** A range of whole numbers, including both ends. */
export interface NumberRange {
  readonly begin: number;
  readonly end: number;
}

/**
 * An interval as in Alertmanager's `time_intervals`. An absent list does not restrict; an empty list matches nothing.
 */
export interface IntervalSpec {
  /** Minutes since midnight. The end is exclusive, and 1440 is midnight at the end of the day. */
  readonly times?: readonly { readonly startMinute: number; readonly endMinute: number }[];
  /** 0 is Sunday. */
  readonly weekdays?: readonly NumberRange[];
  /** 1 to 31, or -31 to -1, which count from the end of the month: -1 is the last day. */
  readonly daysOfMonth?: readonly NumberRange[];
  /** 1 is January. */
  readonly months?: readonly NumberRange[];
  readonly years?: readonly NumberRange[];
  /** IANA time zone, or {@link LOCAL_ZONE}. Absent means UTC. */
  readonly location?: string;
}

/** A named set of intervals. A time matches if it is within any of them. */
export interface TimeInterval {
  readonly name: string;
  readonly intervals: readonly IntervalSpec[];
}

/** Name of the machine's time zone. */
export const LOCAL_ZONE = "Local";

/**
 * Returns whether the lists of days match a day of the zone's calendar, counted from 1970-01-01. Times of day are
 * ignored.
 */
export function matchesDay({ weekdays, daysOfMonth, months, years }: IntervalSpec, day: number): boolean {
  const date = new Date(day * DAY_MS);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const days = (Date.UTC(year, month + 1, 1) - Date.UTC(year, month, 1)) / DAY_MS;
  // Unlike in Alertmanager, the ends are not clamped to the month. The result for a day of that month is the same.
  const fromStart = (value: number) => (value < 0 ? days + value + 1 : value);
  return (
    isWithin(weekdays, date.getUTCDay()) &&
    isWithin(months, month + 1) &&
    isWithin(years, year) &&
    isWithin(
      daysOfMonth?.map(({ begin, end }) => ({ begin: fromStart(begin), end: fromStart(end) })),
      date.getUTCDate(),
    )
  );
}

const isWithin = (ranges: readonly NumberRange[] | undefined, value: number): boolean =>
  ranges === undefined || ranges.some(({ begin, end }) => value >= begin && value <= end);
