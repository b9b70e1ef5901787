import { DAY_MS } from "../../base/duration.ts";

/** A range of whole numbers, both ends within it. */
export interface NumberRange {
  readonly begin: number;
  readonly end: number;
}

/** One interval as Alertmanager's `time_intervals` write it; an absent list is no restriction, an empty one fits nothing. */
export interface IntervalSpec {
  /** Minutes since midnight, the end not within; 1440 is midnight at the day's end. */
  readonly times?: readonly { readonly startMinute: number; readonly endMinute: number }[];
  /** 0 is Sunday. */
  readonly weekdays?: readonly NumberRange[];
  /** 1 to 31; negative ones count from the month's end, -1 being its last day. */
  readonly daysOfMonth?: readonly NumberRange[];
  /** 1 is January; others fit no month. */
  readonly months?: readonly NumberRange[];
  readonly years?: readonly NumberRange[];
  /** IANA time zone, or {@link LOCAL_ZONE}; absent: UTC. */
  readonly location?: string;
}

/** A named set of intervals: an instant is within if it is within any of them. */
export interface TimeInterval {
  readonly name: string;
  readonly intervals: readonly IntervalSpec[];
}

/** The zone of the machine that the process runs on. */
export const LOCAL_ZONE = "Local";

/** Whether the lists of days fit a day of the zone's calendar, counted from 1970-01-01. Times are ignored. */
export function matchesDay({ weekdays, daysOfMonth, months, years }: IntervalSpec, day: number): boolean {
  const date = new Date(day * DAY_MS);
  const [year, month, dayOfMonth] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  return (
    isWithin(weekdays, date.getUTCDay()) &&
    isWithin(months, month + 1) &&
    isWithin(years, year) &&
    isDayOfMonth(daysOfMonth, dayOfMonth, year, month)
  );
}

/** Alertmanager clamps both ends to the month; for a day of that month it comes to the same without. */
function isDayOfMonth(
  ranges: readonly NumberRange[] | undefined,
  dayOfMonth: number,
  year: number,
  month: number,
): boolean {
  if (ranges === undefined) return true;
  const days = (Date.UTC(year, month + 1, 1) - Date.UTC(year, month, 1)) / DAY_MS;
  const fromStart = (value: number) => (value < 0 ? days + value + 1 : value);
  return ranges.some(({ begin, end }) => dayOfMonth >= fromStart(begin) && dayOfMonth <= fromStart(end));
}

const isWithin = (ranges: readonly NumberRange[] | undefined, value: number): boolean =>
  ranges === undefined || ranges.some(({ begin, end }) => value >= begin && value <= end);
