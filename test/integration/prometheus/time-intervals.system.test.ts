import { expect, test } from "vitest";
import { configErrors, withService } from "../../config/config-fixtures.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { requireProgram, startProcess } from "../process.ts";

/** Values of one time interval, in flow style. */
const SPECS = [
  "{}",
  "null",
  ...["null", "[]"].flatMap((list) =>
    ["times", "weekdays", "days_of_month", "months", "years"].map((key) => `{${key}: ${list}}`),
  ),
  ...[
    "00:00-24:00",
    "23:00-24:00",
    "24:00-24:00",
    "23:00-05:00",
    "09:00-09:00",
    "9:00-17:00",
    "09:00-24:01",
    "-09:00",
  ].map((range) => `{times: [{start_time: "${range.split("-")[0]}", end_time: "${range.split("-")[1]}"}]}`),
  "{times: [{start_time: 09:00, end_time: 17:00}]}",
  '{times: [{start_time: "09:00"}]}',
  '{times: [{start_time: "09:00", end_time: null}]}',
  "{times: [{}]}",
  '{times: {start_time: "09:00", end_time: "10:00"}}',
  ...[
    "monday",
    "Monday",
    "monday:FRIDAY",
    "sunday:sunday",
    "saturday:monday",
    " monday",
    "monday: friday",
    "monday:",
  ].map((range) => `{weekdays: ["${range}"]}`),
  ...['""', "mon", "1", "true"].map((range) => `{weekdays: [${range}]}`),
  "{weekdays: monday}",
  ...["1", "01", "+1:2", "31", "-31", "-31:-1", "27:-1", "1:-27", "10:-5", "5:5"].map(
    (range) => `{days_of_month: ["${range}"]}`,
  ),
  ...["28:-1", "30:-1", "1:-28", "-31:31", "-1:-3", "5:1", "0", "32", "-32", "1: 2", "1:2:3", ":", "x"].map(
    (range) => `{days_of_month: ["${range}"]}`,
  ),
  ...["january", "January:3", "3:6", "01", "+1", "0", "13", "-1", "november:december"].map(
    (range) => `{months: ["${range}"]}`,
  ),
  ...["12:1", "november:february", "jan", "", "1.5", "january:"].map((range) => `{months: ["${range}"]}`),
  ...["2026", "2026:2027", "0", "-1", "20261", "1"].map((range) => `{years: ["${range}"]}`),
  ...["2027:2026", "2_026", "0x7ea", "99999999999999999999", "1:2:3", "y"].map((range) => `{years: ["${range}"]}`),
  "{months: [1, 12], years: [2026], days_of_month: [1, -1]}",
  ...["Local", '""', "null", "UTC", "Europe/Paris", "US/Pacific", "EST5EDT", "UCT", "Etc/GMT+1"].map(
    (zone) => `{location: ${zone}}`,
  ),
  ...["local", "utc", "europe/paris", '"+02:00"', "Europe/Pariss", '" "', "[UTC]"].map((zone) => `{location: ${zone}}`),
  "{Times: []}",
  "{holidays: []}",
] as const;

/** Values of the section `time_intervals`. */
const INTERVALS = [
  "[]",
  "\n  - {name: n}",
  "\n  - {name: n, time_intervals: []}",
  "\n  - {name: n, time_intervals: null}",
  "\n  - {name: '', time_intervals: []}",
  "\n  - {time_intervals: []}",
  "\n  - {name: n, time_intervals: [{}]}\n  - {name: n, time_intervals: [{}]}",
  "\n  - {name: n, time_intervals: {weekdays: [monday]}}",
  "\n  - {name: n, location: UTC, time_intervals: [{}]}",
] as const;

test("accepts exactly the time intervals that amtool accepts", async () => {
  const sections = [...INTERVALS, ...SPECS.map((spec) => `\n  - {name: n, time_intervals: [${spec}]}`)];
  const folder = createTempFolder();
  const files = sections.map((section, index) =>
    folder.write(`${index}.yml`, `route: {receiver: a}\nreceivers: [{name: a}]\ntime_intervals: ${section}\n`),
  );
  const amtool = requireProgram("/usr/bin/amtool", "prometheus-alertmanager");
  const { out } = await startProcess(amtool, ["check-config", ...files]).ended;
  const verdicts = [...out.matchAll(/^Checking '.*\/(\d+)\.yml'\s+(SUCCESS|FAILED)/gm)];
  expect(verdicts).toHaveLength(sections.length);
  const expected = verdicts.map(([, index, verdict]) => `${verdict}: ${sections[Number(index)]!.trim()}`);
  const ours = sections.map((section) => {
    const isValid = configErrors(withService(`time_intervals: ${section}\n`)).length === 0;
    return `${isValid ? "SUCCESS" : "FAILED"}: ${section.trim()}`;
  });
  expect(ours).toEqual(expected);
  expect(expected.filter((line) => line.startsWith("FAILED")).length).toBeGreaterThan(40);
});
