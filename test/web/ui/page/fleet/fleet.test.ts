import { expect, test } from "vitest";
import {
  applyChange,
  countNodes,
  type FleetModel,
  findNode,
  readFleet,
  selectNodes,
} from "../../../../../src/web/ui/page/fleet/fleet.ts";
import { compileFilter, type NodeFilter, searchNodes } from "../../../../../src/web/ui/page/fleet/node-filter.ts";
import { type NodeOrder, sortNodes } from "../../../../../src/web/ui/page/fleet/node-order.ts";
import { document } from "./fleet-document.ts";

test("nodes are sorted by region, country and name, with numbers in names as numbers", () => {
  const fleet = readFleet(document);
  expect(fleet.groups).toEqual([
    { region: "eu-central", count: 1, online: 0 },
    { region: "no region", count: 1, online: 1 },
    { region: "us-east", count: 3, online: 1 },
  ]);
  expect(fleet.cells.map(({ name }) => name)).toEqual(["fra-1", "n4", "iad-9", "iad-10", "iad-11"]);
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
  expect(fleet.groups.map(({ region, count }) => [region, count])).toEqual([
    ["eu-01", 2],
    ["eu-1", 2],
  ]);
  expect(fleet.cells.map(({ country }) => country)).toEqual(["DE", "FR", "DE", "FR"]);
});

test("counts follow changes", () => {
  const fleet = readFleet(document);
  const counts = () =>
    ["online", "offline", "maintenance"].map((status) => countNodes(fleet, (each) => each === status));
  expect(counts()).toEqual([2, 2, 1]);
  expect(applyChange(fleet, { from: 7, revision: 8, cells: [[1, 0, 9]] })).toEqual([findNode(fleet, "n2")!.index]);
  expect(counts()).toEqual([3, 1, 1]);
  expect(fleet.groups.map(({ online }) => online)).toEqual([0, 1, 2]);
  expect(countNodes(fleet, (_, mark) => mark === "held")).toBe(1);
});

test("nodes are found by their id, status and mark", () => {
  const fleet = readFleet(document);
  expect(["n4", "n6", ""].map((id) => findNode(fleet, id)?.name)).toEqual(["n4", undefined, undefined]);
  const offline = selectNodes(fleet, fleet.indexes, (status) => status === "offline");
  expect(Array.from(offline, (index) => fleet.cells[index]!.name)).toEqual(["fra-1", "iad-9"]);
  const awaiting = selectNodes(fleet, offline, (_, mark) => mark === "awaiting");
  expect(awaiting).toHaveLength(0);
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

test("a change of the fleet does not repeat a search", () => {
  const fleet = readFleet(document);
  const nodes = searchNodes(fleet, "us");
  expect(applyChange(fleet, { from: 7, revision: 8, cells: [[0, 1, 0]] })).toHaveLength(1);
  expect(searchNodes(fleet, " US")).toBe(nodes);
  expect(searchNodes(fleet, "DE")).not.toBe(nodes);
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

const sortedIds = (fleet: FleetModel, order: NodeOrder) =>
  Array.from(sortNodes(fleet, fleet.indexes, order), (index) => fleet.cells[index]!.id);

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
  expect(sortedIds(readFleet(document), { column, isDescending })).toEqual(ids);
});

test("nodes with a mark that this page does not know are last by urgency", () => {
  const marks = document.marks.map((mark) => (mark === "held" ? "a mark of a later version" : mark));
  const fleet = readFleet({ ...document, marks, mark: "90005a" });
  expect(sortedIds(fleet, { column: "urgency", isDescending: false }).at(-1)).toBe("n1");
  expect(sortedIds(fleet, { column: "urgency", isDescending: true })[0]).toBe("n1");
});
