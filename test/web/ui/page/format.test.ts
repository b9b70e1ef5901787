import { expect, test } from "vitest";
import {
  actionState,
  countNoun,
  formatAge,
  formatCount,
  formatDuration,
  formatFields,
  formatGigabytes,
  formatPercent,
  formatUptime,
  humanize,
  timeOfDay,
  withLocalTimes,
  withNodeName,
} from "../../../../src/web/ui/page/format.ts";

test.each([
  [0, "0s"],
  [0.26, "0.3s"],
  [7.5, "7.5s"],
  [9.96, "10s"],
  [59, "59s"],
  [59.6, "1m"],
  [60, "1m"],
  [250, "4m10s"],
  [3_599.6, "1h"],
  [3_600, "1h"],
  [35_510, "9h52m"],
  [86_399, "1d"],
  [3_605, "1h"],
  [90_061, "1d1h"],
  [17_500_000, "202d13h"],
  [null, "–"],
  [undefined, "–"],
])("%s seconds are written %s", (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

test("states of actions are shown in the words of the CLI", () => {
  const states = ["awaiting", "lapsed", "posting", "in_doubt", "verified"];
  expect(states.map(actionState)).toEqual(["waiting for approval", "lapsed", "being sent", "in doubt", "verified"]);
});

test("gigabytes have thousands separators and at most one decimal", () => {
  expect([2_142, 740.93, 0, null, undefined].map(formatGigabytes)).toEqual(["2,142 GB", "740.9 GB", "0 GB", "–", "–"]);
});

test("a share below 100% is never rounded up to it", () => {
  expect([1, 0.99999, 0.981, 0, null, Number.NaN].map(formatPercent)).toEqual([
    "100%",
    "99.9%",
    "98.1%",
    "0%",
    "–",
    "–",
  ]);
});

test("formats unknown values as a dash and separates thousands", () => {
  expect([formatCount(null), formatCount(0), formatCount(1_234_567)]).toEqual(["–", "0", "1,234,567"]);
  expect([countNoun(1, "node"), countNoun(2_000, "node")]).toEqual(["1 node", "2,000 nodes"]);
  expect(humanize("last_seen_stale")).toBe("last seen stale");
  expect(formatAge("2026-11-21T03:00:00.000Z", Date.UTC(2026, 10, 21, 3, 4, 10))).toBe("4m10s ago");
});

test("a time of another day or year has its date", () => {
  const now = new Date(2026, 10, 21, 3, 10).getTime();
  const at = (year: number, day: number) => new Date(year, 10, day, 3).toISOString();
  expect(timeOfDay(at(2026, 21), now)).toBe("03:00:00");
  expect(timeOfDay(at(2026, 20), now)).toBe("20 Nov 03:00:00");
  expect(timeOfDay(at(2027, 21), now)).toBe("21 Nov 2027 03:00:00");
});

test("times in UTC in a text become local ones, and what only looks like a time stays", () => {
  const local = new Date(2026, 10, 21, 3, 5);
  const now = local.getTime() + 60_000;
  const iso = local.toISOString();
  const message = `${iso.slice(0, 19).replace("T", " ")} UTC`;
  expect(withLocalTimes(`from ${iso} to ${message} or release`, now)).toBe("from 03:05:00 to 03:05:00 or release");
  const other = "version 2026-11-21, 2026-99-99 99:99:99 UTC";
  expect(withLocalTimes(other, now)).toBe(other);
});

test("the uptime of a node is a duration", () => {
  expect([0, 2, 4_876, null].map(formatUptime)).toEqual(["under 1h", "2h", "203d4h", "–"]);
});

test("a time that an expression read is shown as its age when it was read", () => {
  const fields = { "node.status": "offline", "node.last_seen": "2026-11-21T03:00:00.000Z", ratio: 0.96052631 };
  const shown = [
    ["node.status", "offline"],
    ["node.last_seen", "12m4s old"],
    ["ratio", "0.961"],
  ];
  expect(formatFields({ ...fields, now: "2026-11-21T03:12:04.000Z" }, "2026-11-21T03:30:00.000Z")).toEqual(shown);
  expect(formatFields(fields, "2026-11-21T03:12:04.000Z")).toEqual(shown);
  expect(formatFields(fields, null)[1]).toEqual(["node.last_seen", "2026-11-21T03:00:00.000Z"]);
});

test("the id of a node in a text becomes its name, but an id that only begins or ends with it stays", () => {
  expect(withNodeName("reboot of node_1: node_12 and old-node_1 stay.", "node_1", "ams-1")).toBe(
    "reboot of ams-1: node_12 and old-node_1 stay.",
  );
  expect(withNodeName('hold "a.b:1", please', "a.b:1", "$&")).toBe('hold "$&", please');
  expect(withNodeName("node_1", "node_1", null)).toBe("node_1");
});
