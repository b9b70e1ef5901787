import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { IntervalSpec, NumberRange } from "../../../src/model/policy/time-interval.ts";
import { isWithin, nextOpening } from "../../../src/policy/guards/time-window.ts";

// The reference asks the platform for every field, reckons with no calendar of its own, and finds the month's length by
// walking through instants.
const fieldsOf = (zone: string, at: number) => {
  const formatter = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    weekday: "short",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const parts = Object.fromEntries(formatter.formatToParts(at).map(({ type, value }) => [type, value]));
  return {
    weekday: ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].indexOf(parts.weekday!),
    year: Number(parts.year),
    month: Number(parts.month),
    day: Number(parts.day),
    minute: Number(parts.hour) * 60 + Number(parts.minute),
  };
};

function lastDay(zone: string, at: number): number {
  const { month } = fieldsOf(zone, at);
  let last = at;
  while (fieldsOf(zone, last + DAY_MS).month === month) last += DAY_MS;
  // Where the clocks go forward on the way, a step may leap the month's last day.
  const beyond = fieldsOf(zone, last + 12 * HOUR_MS);
  return beyond.month === month ? beyond.day : fieldsOf(zone, last).day;
}

function isOpen(spec: IntervalSpec, at: number): boolean {
  const zone = spec.location ?? "UTC";
  const { minute, weekday, year, month, day } = fieldsOf(zone, at);
  const among = (ranges: readonly NumberRange[] | undefined, value: number) =>
    ranges === undefined || ranges.some(({ begin, end }) => begin <= value && value <= end);
  const fromEnd = (value: number) => (value > 0 ? value : lastDay(zone, at) + 1 + value);
  const days = spec.daysOfMonth?.map(({ begin, end }) => ({ begin: fromEnd(begin), end: fromEnd(end) }));
  const minutes = spec.times?.map(({ startMinute, endMinute }) => ({ begin: startMinute, end: endMinute - 1 }));
  return (
    among(minutes, minute) &&
    among(spec.weekdays, weekday) &&
    among(spec.months, month) &&
    among(spec.years, year) &&
    among(days, day)
  );
}

const rangeOf = (min: number, max: number): fc.Arbitrary<NumberRange> =>
  fc
    .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
    .map(([one, other]) => ({ begin: Math.min(one, other), end: Math.max(one, other) }));

const maybe = <T>(ranges: fc.Arbitrary<T>) =>
  fc.option(fc.array(ranges, { minLength: 1, maxLength: 2 }), { freq: 1, nil: undefined });

const timeRange = fc.oneof(
  fc
    .tuple(fc.nat(1439), fc.nat(1440))
    .filter(([start, end]) => start < end)
    .map(([startMinute, endMinute]) => ({ startMinute, endMinute })),
  fc.integer({ min: 1, max: 1440 }).map((endMinute) => ({ startMinute: 0, endMinute })),
  fc.nat(1439).map((startMinute) => ({ startMinute, endMinute: 1440 })),
);

const day = fc.oneof(fc.integer({ min: 1, max: 31 }), fc.integer({ min: -31, max: -1 }));

const specs: fc.Arbitrary<IntervalSpec> = fc
  .record({
    times: fc.option(fc.array(timeRange, { minLength: 1, maxLength: 3 }), { freq: 3, nil: undefined }),
    weekdays: maybe(rangeOf(0, 6)),
    daysOfMonth: maybe(fc.record({ begin: day, end: day })),
    months: maybe(rangeOf(1, 12)),
    years: maybe(rangeOf(2025, 2028)),
    location: fc.constantFrom(
      undefined,
      "Europe/Paris",
      "America/New_York",
      "Africa/Cairo",
      "Australia/Lord_Howe",
      "Asia/Kathmandu",
      "Pacific/Kiritimati",
    ),
  })
  .map((spec): IntervalSpec => Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined)));

/** Around the changes of the clocks, the turns of months and years, and anywhere. */
const instants = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(
        ...["2026-03-29T01:00Z", "2026-10-25T01:00Z", "2026-03-08T07:00Z", "2026-11-01T06:00Z", "2026-04-23T22:00Z"],
        ...["2026-10-29T21:00Z", "2026-04-04T15:00Z", "2026-10-03T15:30Z", "2028-02-29T00:00Z", "2027-01-01T00:00Z"],
      ),
      fc
        .integer({ min: Date.UTC(2025, 0) / MINUTE_MS, max: Date.UTC(2029, 0) / MINUTE_MS })
        .map((minute) => new Date(minute * MINUTE_MS).toISOString()),
    ),
    fc.integer({ min: -30 * 60, max: 30 * 60 }),
  )
  .map(([iso, minutes]) => Date.parse(iso) + minutes * MINUTE_MS);

test("a window is open exactly when Intl's date fields match it", () => {
  let open = 0;
  fc.assert(
    fc.property(specs, instants, (spec, at) => {
      const expected = isOpen(spec, at);
      if (expected) open++;
      expect(isWithin({ name: "window", intervals: [spec] }, at)).toBe(expected);
    }),
    { numRuns: 3_000 },
  );
  expect(open).toBeGreaterThan(300);
});

test("the next opening is the first open minute", () => {
  const horizonMs = 2 * DAY_MS;
  let later = 0;
  fc.assert(
    fc.property(fc.array(specs, { minLength: 1, maxLength: 2 }), instants, (intervals, at) => {
      const interval = { name: "window", intervals };
      let minute = at;
      while (minute <= at + horizonMs && !isWithin(interval, minute)) minute += MINUTE_MS;
      const opening = nextOpening([interval], at)?.at ?? Number.POSITIVE_INFINITY;
      if (minute > at + horizonMs) expect(opening).toBeGreaterThan(at + horizonMs);
      else expect(opening).toBe(minute);
      if (opening === minute && minute > at) later++;
    }),
    { numRuns: 400 },
  );
  expect(later).toBeGreaterThan(20);
});
