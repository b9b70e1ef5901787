import { z } from "zod";
import { fail, ok } from "../../base/result.ts";
import type { IntervalSpec, NumberRange, TimeInterval } from "../../model/policy/time-interval.ts";
import {
  camelKeys,
  list,
  parsedText,
  RUN_ALWAYS,
  rejectDuplicateNames,
  rejectValue,
  section,
  text,
  valueKinds,
} from "./value-types.ts";

/** Maximum number of ranges in one list. */
const RANGES_MAX = 100;
const INTERVALS_MAX = 100;
const HOUR_MINUTES = 60;

const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] as const;
const MONTHS = [
  ...["january", "february", "march", "april", "may", "june"],
  ...["july", "august", "september", "october", "november", "december"],
] as const;

const CLOCK_EXPECTED = "must be a time from 00:00 to 24:00, such as 08:30";
const CLOCK_PATTERN = /^(?:([01]\d|2[0-3]):([0-5]\d)|24:00)$/;

/** A time of day, read as minutes since midnight; 24:00 is the end of the day. */
const clockTime = () =>
  parsedText({ name: "HH:MM" }, CLOCK_EXPECTED, CLOCK_PATTERN.source, (text) => {
    const [match, hour = 24, minute = 0] = CLOCK_PATTERN.exec(text) ?? [];
    return match === undefined ? fail(CLOCK_EXPECTED) : ok(Number(hour) * HOUR_MINUTES + Number(minute));
  });

const timeRange = section({
  start_time: clockTime().describe("Start of the range."),
  end_time: clockTime().describe("End of the range, exclusive; `24:00` is the end of the day."),
}).transform((range, context) => {
  if (range.end_time <= range.start_time) {
    const expected = "must be later than start_time; split a range over midnight into one to 24:00 and one from 00:00";
    rejectValue(context, range.end_time, expected, ["end_time"]);
  }
  return { startMinute: range.start_time, endMinute: range.end_time };
});

/** How the ends of a range are parsed and checked. */
interface RangeEnds {
  readonly noun: string;
  /** Null if it is not a valid end. */
  numberOf(word: string): number | null;
  /** Returns why a range is invalid, or null if it is valid. */
  problem(range: NumberRange): string | null;
}

/** A list of ranges: `begin:end` or a single value, which may be a number. */
function rangeList({ noun, numberOf, problem: problemOf }: RangeEnds) {
  const expected = `must be ${noun}`;
  const written = z.union([text(noun, { name: noun }), z.int().register(valueKinds, { name: noun })], {
    error: expected,
  });
  const range = written.transform((value, context): NumberRange => {
    const [begin, end, ...rest] = String(value)
      .split(":")
      .map((word) => numberOf(word.toLowerCase()));
    if (typeof begin !== "number" || end === null || rest.length > 0) return rejectValue(context, value, expected);
    const read = { begin, end: end ?? begin };
    const problem = problemOf(read);
    return problem === null ? read : rejectValue(context, value, problem);
  });
  return list(range, "ranges", RANGES_MAX).nullable().exactOptional();
}

const indexIn =
  (names: readonly string[], first: number) =>
  (word: string): number | null =>
    names.includes(word) ? names.indexOf(word) + first : null;

/** Parses a whole number of at most 15 digits, with an optional sign, as Alertmanager does. */
const parseWholeNumber = (word: string): number | null => (/^[-+]?\d{1,15}$/.test(word) ? Number(word) : null);

/** Returns a check that rejects a range that ends before it begins. `advice` is the end of the message. */
const orderProblem =
  (advice = "") =>
  ({ begin, end }: NumberRange): string | null =>
    end >= begin ? null : `must not end before it begins${advice}`;

const weekdays = rangeList({
  noun: "a weekday, or a range of them such as monday:friday",
  numberOf: indexIn(WEEKDAYS, 0),
  problem: orderProblem(' (a week begins on sunday); write two ranges, such as "friday:saturday" and "sunday:monday"'),
});

const monthName = indexIn(MONTHS, 1);

const months = rangeList({
  noun: "a month by its name or number, or a range of them such as 3:6",
  numberOf: (word) => monthName(word) ?? parseWholeNumber(word),
  problem: orderProblem('; write two ranges, such as "november:december" and "january:february"'),
});

const years = rangeList({
  noun: "a year, or a range of them such as 2026:2027",
  numberOf: parseWholeNumber,
  problem: orderProblem(),
});

const MONTH_DAYS_MAX = 31;
/**
 * Length of the shortest month, in which ranges must be valid: days counted from the end are earliest there. As in
 * Alertmanager, the check takes -1 as the 27th.
 */
const MONTH_DAYS_MIN = 28;

const daysOfMonth = rangeList({
  noun: "a day of the month from 1 to 31, or from -1 (the last) to -31, or a range of them such as 1:5 or -3:-1",
  numberOf(word) {
    const day = parseWholeNumber(word);
    return day === null || day === 0 || Math.abs(day) > MONTH_DAYS_MAX ? null : day;
  },
  problem({ begin, end }) {
    if (begin < 0 && end > 0) return "must not begin with a negative day and end with a positive one";
    const fromStart = (day: number) => (day < 0 ? MONTH_DAYS_MIN + day : day);
    const advice =
      ' in a month of 28 days; write two ranges, such as "25:31" and "1:5", or begin earlier, such as "27:-1"';
    return orderProblem(advice)({ begin: fromStart(begin), end: fromStart(end) });
  },
});

const LOCATION_EXPECTED = "must be the name of a time zone, such as Europe/Paris";

const specShape = {
  times: list(timeRange, "mappings with start_time and end_time", RANGES_MAX)
    .nullable()
    .exactOptional()
    .describe("Times of day. Defaults to all. Here and below, an empty list matches nothing."),
  weekdays: weekdays.describe("Days of the week, by name; the week begins on Sunday. Defaults to all."),
  days_of_month: daysOfMonth.describe(
    "Days of the month; negative days count from the end: `-1` is the last. Defaults to all.",
  ),
  months: months.describe("Months, by name or number. Defaults to all."),
  years: years.describe("Years. Defaults to all."),
  location: z
    .string({ error: LOCATION_EXPECTED })
    .regex(/^$|\S/, LOCATION_EXPECTED)
    .register(valueKinds, { name: "time zone", check: "timezone" })
    .nullable()
    .exactOptional()
    .describe("IANA time zone, or `Local` for that of the machine. Defaults to UTC."),
};

const spec = section(specShape)
  .nullable()
  .transform((value) => toIntervalSpec(value ?? {}));

type IntervalSpecConfig = z.output<ReturnType<typeof section<typeof specShape>>>;

/** Leaves out keys whose value is null or an empty string. */
const toIntervalSpec = (written: IntervalSpecConfig): IntervalSpec =>
  Object.fromEntries(Object.entries(camelKeys(written)).filter(([, value]) => value !== null && value !== ""));

const NESTED_KEY = "time_intervals";

const interval = section({
  name: text("a name").describe("Name, for the `windows` of policies."),
  ...specShape,
  [NESTED_KEY]: list(spec, "time intervals", INTERVALS_MAX)
    .nullable()
    .exactOptional()
    .describe(
      "Alternative intervals with the keys above, as in Alertmanager. Mutually exclusive with those keys, which are shorthand for a list with one entry.",
    ),
})
  .refine(
    (value) => !(NESTED_KEY in value) || Object.keys(value).every((key) => key === NESTED_KEY || key === "name"),
    {
      ...RUN_ALWAYS,
      error: `must have no keys except name and ${NESTED_KEY}; move the others into ${NESTED_KEY}`,
    },
  )
  .transform(({ name, time_intervals, ...own }): TimeInterval => {
    const isShort = Object.keys(own).length > 0;
    return { name, intervals: time_intervals ?? (isShort ? [toIntervalSpec(own)] : []) };
  });

/** The section `time_intervals`, in Alertmanager's format. */
export const intervalsSchema = list(interval, "time intervals", INTERVALS_MAX)
  .superRefine(rejectDuplicateNames)
  .default([])
  .describe(
    `Named time intervals for the \`windows\` of policies, in Alertmanager's format, at most ${INTERVALS_MAX}. A time is within an interval if it matches every list that is set; it matches a list if it is within any of its ranges.`,
  );
