import { expect, test } from "vitest";
import {
  countStatuses,
  needsAttention,
  nodesNeedingAttention,
  readFleet,
  searchNodes,
} from "../../../../../src/web/ui/page/fleet/fleet.ts";

const document = {
  revision: 7,
  statuses: ["online", "offline", "quarantined", "rebooting", "maintenance", "unknown"],
  marks: ["none", "pending", "firing", "shadow", "episode", "acting", "held", "awaiting"],
  places: [
    { country: "US", region: "us-east" },
    { country: "DE", region: "eu-central" },
    { country: "", region: "" },
  ],
  ids: ["n1", "n2", "", "n3", "n4", "n5"],
  names: ["iad-10", "iad-9", "", "fra-1", "", "iad-11"],
  place: [0, 0, 0, 1, 2, 0],
  status: "010104",
  mark: "000057",
};

test("nodes are sorted by region, country and name, with numbers in names as numbers", () => {
  const fleet = readFleet(document);
  expect(fleet.groups.map(({ region, cells }) => [region, cells.map(({ name }) => name)])).toEqual([
    ["eu-central", ["fra-1"]],
    ["no region", ["n4"]],
    ["us-east", ["iad-9", "iad-10", "iad-11"]],
  ]);
  expect(countStatuses(fleet)).toEqual([2, 2, 0, 0, 1, 0]);
});

test("nodes that need attention come in the order of urgency", () => {
  const fleet = readFleet(document);
  expect(nodesNeedingAttention(fleet).map(({ id }) => id)).toEqual(["n5", "n4", "n3", "n2"]);
  expect(needsAttention(fleet, fleet.byId.get("n1")!)).toBe(false);
  // A node in maintenance needs attention only while an action waits for approval.
  fleet.mark[5] = 0;
  expect(needsAttention(fleet, fleet.byId.get("n5")!)).toBe(false);
});

test("a search matches names and ids in any case", () => {
  const fleet = readFleet(document);
  const found = (text: string) => searchNodes(fleet, text).map(({ id }) => id);
  expect(found(" IAD-1 ")).toEqual(["n1", "n5"]);
  expect(found("n3")).toEqual(["n3"]);
  expect(found("  ")).toEqual([]);
});
