import { expect, test } from "vitest";
import { applyChange, countNodes, readFleet } from "../../../../../src/web/ui/page/fleet/fleet.ts";
import { compileFilter, type NodeFilter, searchNodes } from "../../../../../src/web/ui/page/fleet/node-filter.ts";
import { type NodeOrder, sortNodes } from "../../../../../src/web/ui/page/fleet/node-order.ts";
import { document } from "./fleet-document.ts";

test("nodes are sorted by region, country and name, with numbers in names as numbers", () => {
  const fleet = readFleet(document);
  expect(fleet.groups.map(({ region, online, cells }) => [region, online, cells.map(({ name }) => name)])).toEqual([
    ["eu-central", 0, ["fra-1"]],
    ["no region", 1, ["n4"]],
    ["us-east", 1, ["iad-9", "iad-10", "iad-11"]],
  ]);
  expect(fleet.cells.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
});

test("regions that differ only in leading zeros are separate groups, each with all of its countries", () => {
  const locations = ["DE", "FR"].flatMap((country) => ["eu-1", "eu-01"].map((region) => ({ country, region })));
  const ids = ["n1", "n2", "n3", "n4"];
  const fleet = readFleet({
    ...document,
    locations,
    ids,
    names: ids,
    location: [0, 1, 2, 3],
    status: "0000",
    mark: "0000",
  });
  expect(fleet.groups.map(({ region, cells }) => [region, cells.map(({ country }) => country)])).toEqual([
    ["eu-01", ["DE", "FR"]],
    ["eu-1", ["DE", "FR"]],
  ]);
});

test("counts follow changes", () => {
  const fleet = readFleet(document);
  const counts = () =>
    ["online", "offline", "maintenance"].map((status) => countNodes(fleet, (each) => each === status));
  expect(counts()).toEqual([2, 2, 1]);
  expect(applyChange(fleet, { from: 7, revision: 8, cells: [[1, 0, 9]] })).toEqual([1]);
  expect(counts()).toEqual([3, 1, 1]);
  expect(fleet.groups.map(({ online }) => online)).toEqual([0, 1, 2]);
  expect(countNodes(fleet, (_, mark) => mark === "held")).toBe(1);
});

const found = (filter: Partial<NodeFilter>) => {
  const fleet = readFleet(document);
  const passes = compileFilter(fleet, { status: null, remediation: null, search: "", ...filter });
  return passes === null ? null : fleet.cells.filter(passes).map(({ id }) => id);
};

test.each([
  [" IAD-1 ", ["n1", "n5"]],
  ["n3", ["n3"]],
  ["us-east", ["n2", "n1", "n5"]],
  // A country code means the country, not a part of a name.
  ["DE", ["n3"]],
  ["us", ["n2", "n1", "n5"]],
  ["us iad-9", ["n2"]],
  ["DE iad", []],
  ["  ", null],
])("the search %j finds nodes by name, id, region and country code", (search, ids) => {
  expect(found({ search })).toEqual(ids);
});

test("a country code that the service writes in lower and in upper case finds the nodes of both", () => {
  const locations = document.locations.map((location, index) =>
    index === 2 ? { ...location, country: "us" } : location,
  );
  const fleet = readFleet({ ...document, locations });
  expect(searchNodes(fleet, "US")?.map(({ id }) => id)).toEqual(["n4", "n2", "n1", "n5"]);
});

test("nodes are filtered by status and state of remediation", () => {
  expect(found({})).toBeNull();
  expect(found({ status: "offline" })).toEqual(["n3", "n2"]);
  expect(found({ remediation: "treated" })).toEqual(["n4"]);
  expect(found({ remediation: "awaiting", status: "maintenance", search: "us" })).toEqual(["n5"]);
  expect(found({ remediation: "awaiting", status: "online" })).toEqual([]);
  // A node in maintenance needs attention only because an action waits for approval.
  expect(found({ remediation: "attention" })).toEqual(["n3", "n4", "n2", "n5"]);
  expect(found({ remediation: "no such state" })).toEqual([]);
});

test.each<[NodeOrder["column"], boolean, string[]]>([
  ["urgency", false, ["n5", "n3", "n2", "n1", "n4"]],
  ["name", false, ["n3", "n2", "n1", "n5", "n4"]],
  ["name", true, ["n4", "n5", "n1", "n2", "n3"]],
  ["status", false, ["n4", "n1", "n3", "n2", "n5"]],
  ["remediation", true, ["n5", "n4", "n3", "n2", "n1"]],
  ["region", true, ["n2", "n1", "n5", "n4", "n3"]],
  ["country", false, ["n4", "n3", "n2", "n1", "n5"]],
  ["id", true, ["n5", "n4", "n3", "n2", "n1"]],
])("nodes sorted by %s (reversed: %s) keep their order within equal values", (column, isDescending, ids) => {
  const fleet = readFleet(document);
  expect(sortNodes(fleet, fleet.cells, { column, isDescending }).map(({ id }) => id)).toEqual(ids);
});

test("nodes with a mark that this page does not know are last by urgency", () => {
  const marks = document.marks.map((mark) => (mark === "held" ? "a mark of a later version" : mark));
  const fleet = readFleet({ ...document, marks, mark: "90005a" });
  expect(sortNodes(fleet, fleet.cells, { column: "urgency", isDescending: false }).at(-1)?.id).toBe("n1");
  expect(sortNodes(fleet, fleet.cells, { column: "urgency", isDescending: true })[0]?.id).toBe("n1");
});
