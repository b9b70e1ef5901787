import { expect, test } from "vitest";
import {
  countNoun,
  formatAge,
  formatCount,
  formatDuration,
  formatPercent,
  humanize,
  withName,
} from "../../../../src/web/ui/page/format.ts";

test.each([
  [0, "0.0s"],
  [0.26, "0.3s"],
  [9.4, "9s"],
  [59, "59s"],
  [59.6, "1m"],
  [60, "1m"],
  [250, "4m 10s"],
  [3_599.6, "1h"],
  [3_600, "1h"],
  [3_605, "1h"],
  [90_061, "1d 1h"],
  [17_500_000, "202d 13h"],
  [null, "–"],
  [undefined, "–"],
])("%s seconds are written %s", (seconds, text) => {
  expect(formatDuration(seconds)).toBe(text);
});

test("a share below 100 % is never rounded up to it", () => {
  expect([1, 0.99999, 0.981, 0, null, Number.NaN].map(formatPercent)).toEqual([
    "100.0 %",
    "99.9 %",
    "98.1 %",
    "0.0 %",
    "–",
    "–",
  ]);
});

test("formats unknown values as a dash and separates thousands", () => {
  expect([formatCount(null), formatCount(0), formatCount(1_234_567)]).toEqual(["–", "0", "1,234,567"]);
  expect([countNoun(1, "node"), countNoun(2_000, "node")]).toEqual(["1 node", "2,000 nodes"]);
  expect(humanize("last_seen_stale")).toBe("last seen stale");
  expect(formatAge("2026-11-21T03:00:00.000Z", Date.UTC(2026, 10, 21, 3, 4, 10))).toBe("4m 10s ago");
});

test.each([
  [
    "node_4",
    "fra-0004",
    "node_4 is held; it is not touched until release",
    "fra-0004 is held; it is not touched until release",
  ],
  [
    "node_4",
    "fra-0004",
    "act-1 is approved: reboot of node_4, once nothing else holds it",
    "act-1 is approved: reboot of fra-0004, once nothing else holds it",
  ],
  // The id is not a part of another word.
  ["node_4", "fra-0004", "act-1 is rejected: node_42 first", "fra-0004: act-1 is rejected: node_42 first"],
  ["a.b", "fra-0004", "axb and a.b are held", "axb and fra-0004 are held"],
  ["node_4", "node_4", "node_4 is released", "node_4 is released"],
])("a message about %s (%s) shows the name: %s", (id, name, message, shown) => {
  expect(withName(message, { id, name })).toBe(shown);
});

test("a message about no node is unchanged", () => {
  expect(withName("resumed", undefined)).toBe("resumed");
});
