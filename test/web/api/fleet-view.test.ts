import { expect, test } from "vitest";
import { runAtOnce } from "../../../src/base/steps.ts";
import type { Fleet } from "../../../src/model/snapshot.ts";
import { slotsById } from "../../../src/policy/cel/field-readers.ts";
import type { NodeMark } from "../../../src/remediation/status/views.ts";
import { createFleetGrid, type FleetGrid } from "../../../src/web/api/fleet-view.ts";
import { applyChange, type FleetModel, markOf, readFleet, statusOf } from "../../../src/web/ui/page/fleet/fleet.ts";
import { buildFleet, marksInSteps, withStatus } from "../fleet-fixture.ts";

/** A fleet grid over a fleet that a test replaces. */
function gridOver(fleet: Fleet | null, marks: ReadonlyMap<string, NodeMark> = new Map()) {
  const now = { fleet, marks };
  return {
    now,
    fleetGrid: createFleetGrid({ fleet: () => now.fleet, marks: (mark) => marksInSteps(now.marks, mark) }),
  };
}

const refresh = (fleetGrid: FleetGrid) => runAtOnce(fleetGrid.refresh());
const read = (fleetGrid: FleetGrid) => JSON.parse(runAtOnce(fleetGrid.document()).toString());

const threeNodes = buildFleet([
  { id: "a" },
  { id: "", region: "nowhere" },
  { id: "b", status: "offline", region: "us-east" },
]);

test("before the first walk the document is empty", () => {
  const { fleetGrid } = gridOver(null);
  expect(refresh(fleetGrid)).toBeNull();
  expect(read(fleetGrid)).toMatchObject({ revision: 0, ids: [], locations: [], status: "", mark: "" });
});

test("the document has columns by slot, a digit for each status and mark", () => {
  const { fleetGrid } = gridOver(threeNodes, new Map([["b", "acting"]]));
  expect(refresh(fleetGrid)).toEqual({ from: 0, revision: 1, cells: null });
  expect(read(fleetGrid)).toEqual({
    revision: 1,
    statuses: ["online", "offline", "quarantined", "rebooting", "maintenance", "unknown"],
    marks: [
      ...["none", "pending", "dry_run", "firing", "episode", "acting"],
      ...["in_flight", "canary", "given_up", "held", "awaiting"],
    ],
    locations: [
      { country: "DE", region: "eu-west" },
      { country: "DE", region: "nowhere" },
      { country: "DE", region: "us-east" },
    ],
    ids: ["a", "", "b"],
    names: ["name of a", "", "name of b"],
    location: [0, 1, 2],
    status: "001",
    mark: "005",
  });
});

test("the document is empty again once the fleet is not observed any more", () => {
  const { fleetGrid, now } = gridOver(threeNodes);
  refresh(fleetGrid);
  now.fleet = null;
  expect(refresh(fleetGrid)).toEqual({ from: 1, revision: 2, cells: null });
  expect(read(fleetGrid)).toMatchObject({ revision: 2, ids: [] });
  expect(refresh(fleetGrid)).toBeNull();
});

test("a document shows the fleet as of its first step, even if the fleet changes before the last one", () => {
  const { fleetGrid, now } = gridOver({ ...threeNodes, ids: ["c", "", "d"] });
  refresh(fleetGrid);
  const steps = fleetGrid.document();
  steps.next();
  now.fleet = withStatus(now.fleet!, { 0: "rebooting" });
  refresh(fleetGrid);
  expect(read(fleetGrid)).toMatchObject({ revision: 2, status: "301" });
  expect(JSON.parse(runAtOnce(steps).toString())).toMatchObject({ revision: 1, status: "001" });
  expect(read(fleetGrid)).toMatchObject({ revision: 2, status: "301" });
});

test("marks belong to the fleet of the first step, even if another fleet is looked at before the last one", () => {
  const swapped = buildFleet([{ id: "b" }, { id: "c" }, { id: "a" }]);
  const { fleetGrid, now } = gridOver(threeNodes, new Map([["b", "held"]]));
  const steps = fleetGrid.refresh();
  steps.next();
  now.fleet = swapped;
  expect(slotsById(swapped).get("b")).toBe(0);
  expect(runAtOnce(steps)).toEqual({ from: 0, revision: 1, cells: null });
  expect(read(fleetGrid)).toMatchObject({ ids: ["a", "", "b"], mark: "009" });
});

test("a node with several marks has the most important one, whichever comes last", () => {
  const fleetGrid = createFleetGrid({
    fleet: () => threeNodes,
    *marks(mark) {
      for (const each of ["pending", "held", "firing"] as const) {
        mark("b", each);
        yield;
      }
    },
  });
  refresh(fleetGrid);
  expect(read(fleetGrid)).toMatchObject({ mark: "009" });
});

test("a change lists only the cells that changed", () => {
  const { fleetGrid, now } = gridOver(threeNodes);
  refresh(fleetGrid);
  expect(refresh(fleetGrid)).toBeNull();
  now.fleet = withStatus(threeNodes, { 0: "rebooting" });
  expect(refresh(fleetGrid)).toEqual({ from: 1, revision: 2, cells: [[0, 3, 0]] });
  now.marks = new Map([["b", "held"]]);
  expect(refresh(fleetGrid)).toEqual({ from: 2, revision: 3, cells: [[2, 1, 9]] });
  // An operator's hold may outlast its node.
  now.marks = new Map([
    ["b", "held"],
    ["gone", "held"],
  ]);
  expect(refresh(fleetGrid)).toBeNull();
});

test("added nodes, or too many changes, invalidate the document", () => {
  const { fleetGrid, now } = gridOver(threeNodes);
  refresh(fleetGrid);
  now.fleet = buildFleet([{ id: "a" }, { id: "c" }, { id: "b" }]);
  expect(refresh(fleetGrid)).toEqual({ from: 1, revision: 2, cells: null });
  const many = buildFleet(Array.from({ length: 3_000 }, (_, index) => ({ id: `n${index}` })));
  now.fleet = many;
  refresh(fleetGrid);
  const slots = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, slot) => [slot, "offline"] as const));
  now.fleet = withStatus(many, slots(2_000));
  expect(refresh(fleetGrid)!.cells).toHaveLength(2_000);
  now.fleet = withStatus(many, {});
  now.fleet = withStatus(now.fleet, slots(3_000));
  refresh(fleetGrid);
  now.fleet = many;
  expect(refresh(fleetGrid)).toEqual({ from: 5, revision: 6, cells: null });
});

test("applying the changes gives the same as reading the document again", () => {
  const ids = Array.from({ length: 50 }, (_, index) => ({ id: `node_${index}`, region: `r${index % 4}` }));
  const first = buildFleet(ids);
  const { fleetGrid, now } = gridOver(first);
  refresh(fleetGrid);
  const readModel = (): FleetModel => readFleet(read(fleetGrid));
  const cellsOf = (model: FleetModel) =>
    model.cells.map((cell) => [cell.id, statusOf(model, cell), markOf(model, cell)]);
  const followed = readModel();
  for (let step = 0; step < 40; step++) {
    now.fleet = withStatus(now.fleet!, { [(step * 7) % 50]: step % 3 === 0 ? "offline" : "online" });
    now.marks = new Map([[`node_${(step * 11) % 50}`, step % 2 === 0 ? "pending" : "acting"]]);
    const change = refresh(fleetGrid);
    if (change !== null) expect(applyChange(followed, change)).not.toBeNull();
    expect(cellsOf(followed)).toEqual(cellsOf(readModel()));
  }
  // Known changes are ignored; changes that do not continue the known revision are rejected.
  expect(applyChange(followed, { from: 3, revision: 4, cells: [[0, 5, 0]] })).toEqual([]);
  expect(applyChange(followed, { from: 90, revision: 91, cells: [[0, 5, 0]] })).toBeNull();
  expect(cellsOf(followed)).toEqual(cellsOf(readModel()));
});

test("a document that is read during an update shows the last revision", () => {
  const { now, fleetGrid } = gridOver(threeNodes);
  refresh(fleetGrid);
  now.fleet = withStatus(threeNodes, { 0: "offline" });
  const steps = fleetGrid.refresh();
  let documents = 0;
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    expect(read(fleetGrid)).toMatchObject({ revision: 1, status: "001" });
    documents++;
  }
  expect(documents).toBeGreaterThan(1);
  expect(read(fleetGrid)).toMatchObject({ revision: 2, status: "101" });
});
