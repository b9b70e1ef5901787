import type { IntervalSpec, TimeInterval } from "../../../src/model/policy/time-interval.ts";

const minuteOf = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

/** Ranges of the day, such as `23:00-24:00`. */
export const times = (...ranges: string[]) =>
  ranges.map((range) => ({ startMinute: minuteOf(range.slice(0, 5)), endMinute: minuteOf(range.slice(6)) }));

/** A list of one range, both ends within it. */
export const range = (begin: number, end = begin) => [{ begin, end }];

/** Weekdays as time intervals number them. */
export const [FRIDAY, SATURDAY] = [5, 6];

/** A time interval. */
export const namedInterval = (name: string, ...intervals: IntervalSpec[]): TimeInterval => ({ name, intervals });

/** One night as two ranges. */
export const nights = times("23:00-24:00", "00:00-05:00");
export const paris = { location: "Europe/Paris" };
export const newYork = { location: "America/New_York" };
