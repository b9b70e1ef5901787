import { describe, expect, test } from "vitest";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import { configErrors, loadConfigText, withService } from "../config-fixtures.ts";

const intervals = (text: string): readonly TimeInterval[] =>
  loadConfigText(withService(`time_intervals:\n${text}`)).time_intervals;

test("a night is two ranges of times, in a time zone", () => {
  const text =
    '  - {name: nights, times: [{start_time: "23:00", end_time: "24:00"}, {start_time: "00:00", end_time: "05:00"}], location: Europe/Paris}';
  expect(intervals(text)).toEqual([
    {
      name: "nights",
      intervals: [
        {
          times: [
            { startMinute: 1380, endMinute: 1440 },
            { startMinute: 0, endMinute: 300 },
          ],
          location: "Europe/Paris",
        },
      ],
    },
  ]);
});

test("Alertmanager's nested intervals are read as Alertmanager reads them", () => {
  const text = `
  - name: offhours
    time_intervals:
      - times: [{ start_time: 09:00, end_time: 17:30 }]
        weekdays: ["monday:friday", Sunday]
        days_of_month: ["1:5", "-3:-1", 15, -7, "20:-1"]
        months: [january, "3:6", "july:september", 12]
        years: ["2026:2027", 2030]
      - weekdays: ["saturday"]
`;
  expect(intervals(text)).toEqual([
    {
      name: "offhours",
      intervals: [
        {
          times: [{ startMinute: 540, endMinute: 1050 }],
          weekdays: [
            { begin: 1, end: 5 },
            { begin: 0, end: 0 },
          ],
          daysOfMonth: [
            { begin: 1, end: 5 },
            { begin: -3, end: -1 },
            { begin: 15, end: 15 },
            { begin: -7, end: -7 },
            { begin: 20, end: -1 },
          ],
          months: [
            { begin: 1, end: 1 },
            { begin: 3, end: 6 },
            { begin: 7, end: 9 },
            { begin: 12, end: 12 },
          ],
          years: [
            { begin: 2026, end: 2027 },
            { begin: 2030, end: 2030 },
          ],
        },
        { weekdays: [{ begin: 6, end: 6 }] },
      ],
    },
  ]);
});

test("null restricts nothing, an empty list matches nothing, and an interval without specs is never open", () => {
  const text = `
  - { name: a, weekdays: null, location: "" }
  - { name: b, time_intervals: [{ weekdays: [], location: Local }, null] }
  - { name: c }
  - { name: d, time_intervals: null }
  - { name: e, location: UTC }
`;
  expect(intervals(text)).toEqual([
    { name: "a", intervals: [{}] },
    { name: "b", intervals: [{ weekdays: [], location: "Local" }, {}] },
    { name: "c", intervals: [] },
    { name: "d", intervals: [] },
    { name: "e", intervals: [{ location: "UTC" }] },
  ]);
});

describe("is rejected with the expected value:", () => {
  test.each([
    [
      "times: [{ start_time: '23:00', end_time: '05:00' }]",
      '4:46: time_intervals[0].times[0].end_time: found "05:00"; must be later than start_time; split a range over midnight into one to 24:00 and one from 00:00',
    ],
    [
      "times: [{ start_time: '08:00', end_time: '08:00' }]",
      '4:46: time_intervals[0].times[0].end_time: found "08:00"; must be later than start_time; split a range over midnight into one to 24:00 and one from 00:00',
    ],
    [
      "times: [{ start_time: '9:00', end_time: '10:00' }]",
      '4:27: time_intervals[0].times[0].start_time: found "9:00"; must be a time from 00:00 to 24:00, such as 08:30',
    ],
    [
      "times: [{ start_time: '08:00', end_time: '24:01' }]",
      '4:46: time_intervals[0].times[0].end_time: found "24:01"; must be a time from 00:00 to 24:00, such as 08:30',
    ],
    [
      "weekdays: ['saturday:monday']",
      '4:16: time_intervals[0].weekdays[0]: found "saturday:monday"; must not end before it begins (a week begins on sunday); write two ranges, such as "friday:saturday" and "sunday:monday"',
    ],
    [
      "weekdays: [mon]",
      '4:16: time_intervals[0].weekdays[0]: found "mon"; must be a weekday, or a range of them such as monday:friday',
    ],
    [
      "weekdays: [1]",
      "4:16: time_intervals[0].weekdays[0]: found 1; must be a weekday, or a range of them such as monday:friday",
    ],
    [
      "months: ['november:february']",
      '4:14: time_intervals[0].months[0]: found "november:february"; must not end before it begins; write two ranges, such as "november:december" and "january:february"',
    ],
    [
      "days_of_month: ['-3:2']",
      '4:21: time_intervals[0].days_of_month[0]: found "-3:2"; must not begin with a negative day and end with a positive one',
    ],
    [
      "days_of_month: ['-1:-3']",
      '4:21: time_intervals[0].days_of_month[0]: found "-1:-3"; must not end before it begins in a month of 28 days; write two ranges, such as "25:31" and "1:5", or begin earlier, such as "27:-1"',
    ],
    [
      "days_of_month: [0]",
      "4:21: time_intervals[0].days_of_month[0]: found 0; must be a day of the month from 1 to 31, or from -1 (the last) to -31, or a range of them such as 1:5 or -3:-1",
    ],
    ["years: ['2027:2026']", '4:13: time_intervals[0].years[0]: found "2027:2026"; must not end before it begins'],
    [
      "time_intervals: [{ weekdays: [monday] }]\nlocation: UTC",
      "3:5: time_intervals[0]: found the keys name, time_intervals, location; must have no keys except name and time_intervals; move the others into time_intervals",
    ],
    [
      "weekdays: [monday]\nlocation: Europe/Pariss",
      '5:15: time_intervals[0].location: found "Europe/Pariss"; must be the name of an IANA time zone, such as Europe/Paris or UTC; did you mean "Europe/Paris"?',
    ],
    [
      "weekdays: [monday]\nlocation: europe/paris",
      '5:15: time_intervals[0].location: found "europe/paris"; must be the name of an IANA time zone, such as Europe/Paris or UTC; did you mean "Europe/Paris"?',
    ],
    [
      "weekdays: [monday]\nlocation: '+02:00'",
      '5:15: time_intervals[0].location: found "+02:00"; must be the name of an IANA time zone, such as Europe/Paris or UTC',
    ],
  ])("%s", (keys, expected) => {
    const text = `time_intervals:\n  - name: n\n${keys.replace(/^/gm, "    ")}\n`;
    expect(configErrors(withService(text))).toEqual([expected]);
  });
});

test("two intervals can't have the same name", () => {
  const text = "time_intervals:\n  - { name: n, months: [1] }\n  - { name: n, months: [2] }\n";
  expect(configErrors(withService(text))).toEqual([
    '4:13: time_intervals[1].name: found "n"; must be unique, but an earlier entry has the same name',
  ]);
});
