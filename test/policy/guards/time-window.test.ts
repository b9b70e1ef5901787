import { describe, expect, test } from "vitest";
import type { IntervalSpec } from "../../../src/model/policy/time-interval.ts";
import { isWithin } from "../../../src/policy/guards/time-window.ts";
import { FRIDAY, namedInterval, newYork, nights, paris, range, SATURDAY, times } from "./time-interval-fixtures.ts";

const isOpen = (spec: IntervalSpec, iso: string) => isWithin(namedInterval("window", spec), Date.parse(iso));

/** A description of the spec, the times at which it is open, and those at which it is closed. */
type Case = readonly [what: string, spec: IntervalSpec, open: readonly string[], closed: readonly string[]];

const cases: readonly Case[] = [
  ["without lists is always open", {}, ["2026-03-01T00:00Z", "1969-12-31T23:59Z"], []],
  ["with an empty list is never open", { weekdays: [] }, [], ["2026-03-01T00:00Z"]],
  [
    "is open from the start of its times, and no longer at their end",
    { times: times("09:00-17:00") },
    ["2026-03-02T09:00Z", "2026-03-02T16:59:59.999Z"],
    ["2026-03-02T08:59:59.999Z", "2026-03-02T17:00Z"],
  ],
  [
    "may have a range of weekdays, of which Sunday is the first",
    { weekdays: range(0, 1) },
    ["2026-03-01T00:00Z", "2026-03-02T23:59Z", "1969-12-22T12:00Z"],
    ["2026-02-28T23:59Z", "2026-03-03T00:00Z", "1969-12-23T12:00Z"],
  ],
  [
    "is open only if all of its lists match",
    { weekdays: range(FRIDAY), daysOfMonth: range(13), months: range(2, 3), years: range(2026) },
    ["2026-02-13T12:00Z", "2026-03-13T12:00Z"],
    ["2026-11-13T12:00Z", "2026-02-20T12:00Z", "2026-02-12T12:00Z", "2015-02-13T12:00Z"],
  ],
  [
    "is open if any range of a list matches",
    { months: [...range(1), ...range(12)], times: times("01:00-02:00", "03:00-04:00") },
    ["2026-01-01T01:30Z", "2026-12-31T03:30Z"],
    ["2026-01-01T02:30Z", "2026-11-30T03:30Z"],
  ],
  [
    "with the day -1 is open on the last day of each month, also of February, and in leap years",
    { daysOfMonth: range(-1) },
    ["2026-01-31T12:00Z", "2026-02-28T12:00Z", "2028-02-29T12:00Z", "2100-02-28T12:00Z", "2000-02-29T12:00Z"],
    ["2026-01-30T12:00Z", "2028-02-28T12:00Z", "2026-03-01T00:00Z"],
  ],
  [
    "with the day -1 is open on 31 March, although that month is an hour shorter",
    { ...paris, daysOfMonth: range(-1) },
    ["2026-03-31T12:00+02:00"],
    ["2026-03-30T12:00+02:00", "2026-04-01T00:00+02:00"],
  ],
  [
    "on 29 February is open in leap years only",
    { daysOfMonth: range(29), months: range(2) },
    ["2028-02-29T00:00Z", "2028-02-29T23:59Z"],
    ["2028-02-28T23:59Z", "2028-03-01T00:00Z", "2026-03-01T00:00Z", "2026-02-28T12:00Z"],
  ],
  [
    "ignores days that a month does not have",
    { daysOfMonth: [...range(-31, -30), ...range(30, 31)] },
    ["2026-01-01T12:00Z", "2026-01-02T12:00Z", "2026-04-01T12:00Z", "2026-04-30T12:00Z"],
    ["2026-02-01T12:00Z", "2026-02-28T12:00Z", "2026-03-03T12:00Z", "2026-04-02T12:00Z"],
  ],
  [
    "may have a range of days that begins from the start of the month and ends from its end",
    { daysOfMonth: range(15, -2) },
    ["2026-02-15T00:00Z", "2026-02-27T23:59Z"],
    ["2026-02-14T23:59Z", "2026-02-28T00:00Z"],
  ],
  [
    "has the days, months and years of its zone",
    { location: "Pacific/Auckland", years: range(2027) },
    ["2026-12-31T11:00Z", "2027-12-31T10:59Z"],
    ["2026-12-31T10:59Z", "2027-12-31T11:00Z"],
  ],
];

/** The morning of a night belongs to the next day. */
const nightCases: readonly Case[] = [
  [
    "on Friday is the morning and the evening of Friday",
    { ...paris, times: nights, weekdays: range(FRIDAY) },
    ["2026-03-06T00:00+01:00", "2026-03-06T04:59+01:00", "2026-03-06T23:00+01:00", "2026-03-06T23:59:59.999+01:00"],
    ["2026-03-06T05:00+01:00", "2026-03-06T22:59+01:00", "2026-03-07T00:00+01:00", "2026-03-07T04:59+01:00"],
  ],
  [
    "on Saturday and Sunday is closed on Monday morning, and open on Saturday morning",
    { times: times("00:00-09:00", "17:00-24:00"), weekdays: [...range(6), ...range(0)] },
    ["2026-03-07T03:00Z", "2026-03-07T17:00Z", "2026-03-08T03:00Z", "2026-03-08T23:59Z"],
    ["2026-03-09T00:00Z", "2026-03-09T03:00Z", "2026-03-06T23:59Z", "2026-03-07T09:00Z"],
  ],
  [
    "of the last day of a month does not go on into the next month",
    { times: nights, daysOfMonth: range(-1) },
    ["2026-02-28T23:00Z", "2026-02-28T04:59Z", "2026-03-31T04:00Z"],
    ["2026-03-01T00:00Z", "2026-03-01T04:59Z", "2026-05-01T00:00Z"],
  ],
  [
    "of a year's last month does not go on into the next year",
    { times: nights, years: range(2026), months: range(12) },
    ["2026-12-31T04:30Z", "2026-12-31T23:30Z", "2026-12-01T00:00Z"],
    ["2027-01-01T00:00Z", "2025-12-31T23:30Z", "2026-11-30T23:59Z"],
  ],
];

test("a night from Friday to Saturday needs two specs, the morning with the next day", () => {
  const night = namedInterval(
    "friday-night",
    { times: times("23:00-24:00"), weekdays: range(FRIDAY) },
    { times: times("00:00-05:00"), weekdays: range(SATURDAY) },
  );
  const open = ["2026-03-06T23:00Z", "2026-03-07T00:00Z", "2026-03-07T04:59Z"];
  const closed = ["2026-03-06T00:00Z", "2026-03-06T22:59Z", "2026-03-07T05:00Z", "2026-03-07T23:00Z"];
  expect(open.filter((iso) => !isWithin(night, Date.parse(iso)))).toEqual([]);
  expect(closed.filter((iso) => isWithin(night, Date.parse(iso)))).toEqual([]);
});

/** The clocks go forward at 01:00 UTC on 2026-03-29 in Paris, at 07:00 UTC on 2026-03-08 in New York; back likewise. */
const clockCases: readonly Case[] = [
  [
    "a window within the hour that Paris skips is closed all day",
    { ...paris, times: times("02:00-03:00") },
    ["2026-03-28T02:30+01:00", "2026-03-30T02:30+02:00"],
    ["2026-03-29T01:59:59+01:00", "2026-03-29T03:00+02:00"],
  ],
  [
    "a window that contains the hour that Paris skips is open for the rest",
    { ...paris, times: times("01:30-03:30"), weekdays: range(0) },
    ["2026-03-29T01:59:59+01:00", "2026-03-29T03:00+02:00", "2026-03-29T03:29+02:00"],
    ["2026-03-29T01:29+01:00", "2026-03-29T03:30+02:00"],
  ],
  [
    "a window within the hour that Paris repeats is open twice",
    { ...paris, times: times("02:15-02:45") },
    ["2026-10-25T02:15+02:00", "2026-10-25T02:44+02:00", "2026-10-25T02:15+01:00", "2026-10-25T02:44+01:00"],
    ["2026-10-25T02:45+02:00", "2026-10-25T02:00+01:00", "2026-10-25T02:45+01:00"],
  ],
  [
    "a window within the hour that New York skips is closed all day",
    { ...newYork, times: times("02:00-03:00") },
    ["2026-03-07T02:30-05:00", "2026-03-09T02:30-04:00"],
    ["2026-03-08T01:59:59-05:00", "2026-03-08T03:00-04:00"],
  ],
  [
    "a window within the hour that New York repeats is open twice",
    { ...newYork, times: times("01:00-02:00") },
    ["2026-11-01T01:30-04:00", "2026-11-01T01:30-05:00"],
    ["2026-11-01T00:59-04:00", "2026-11-01T02:00-05:00"],
  ],
  [
    "the morning and the evening of that Sunday are in a window on Sundays",
    { ...paris, times: nights, weekdays: range(0) },
    ["2026-03-29T00:00+01:00", "2026-03-29T04:59+02:00", "2026-03-29T23:59+02:00", "2026-10-25T04:59+01:00"],
    ["2026-03-28T23:59+01:00", "2026-03-29T05:00+02:00", "2026-03-30T00:00+02:00", "2026-10-25T05:00+01:00"],
  ],
  [
    "a window that begins at midnight begins an hour later where midnight is skipped",
    { location: "Africa/Cairo", times: times("00:00-02:00"), weekdays: range(FRIDAY) },
    ["2026-04-24T01:00+03:00", "2026-04-24T01:59+03:00"],
    ["2026-04-23T23:59+02:00", "2026-04-24T02:00+03:00"],
  ],
];

const check = (_: string, spec: IntervalSpec, open: readonly string[], closed: readonly string[]) => {
  for (const iso of open) expect(isOpen(spec, iso), `open at ${iso}`).toBe(true);
  for (const iso of closed) expect(isOpen(spec, iso), `closed at ${iso}`).toBe(false);
};

describe("a window", () => test.each(cases)("%s", check));
describe("a night", () => test.each(nightCases)("%s", check));
describe("when the clocks change", () => test.each(clockCases)("%s", check));

test("an interval is open with any of its specs, and never without specs", () => {
  const interval = namedInterval("window", { weekdays: range(FRIDAY) }, { ...paris, times: times("01:00-02:00") });
  expect(isWithin(interval, Date.parse("2026-03-06T12:00Z"))).toBe(true);
  expect(isWithin(interval, Date.parse("2026-03-07T00:30Z"))).toBe(true);
  expect(isWithin(interval, Date.parse("2026-03-07T12:00Z"))).toBe(false);
  expect(isWithin(namedInterval("window"), 0)).toBe(false);
});

test("Local is the time zone of the machine", () => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (let hour = 0; hour < 24; hour++) {
    const at = Date.UTC(2026, 2, 6, hour);
    const spec = { times: times("08:00-17:00") };
    expect(isWithin(namedInterval("w", { ...spec, location: "Local" }), at)).toBe(
      isWithin(namedInterval("w", { ...spec, location: zone }), at),
    );
  }
});
