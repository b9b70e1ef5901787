import { describe, expect, test } from "vitest";
import { Inventory } from "../../src/inventory/inventory.ts";
import type { UsageScale } from "../../src/inventory/usage-scale.ts";
import { NODE_STATUSES } from "../../src/model/node.ts";
import type { Fleet } from "../../src/model/snapshot.ts";
import { detail, record, walkOver, walkSummary } from "./inventory-fixtures.ts";

describe("a published fleet", () => {
  test("never changes", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    const before = inventory.currentFleet();
    const copy = structuredClone(before);
    inventory.recordListed(record("a", { status: "offline", uptimeHours: 99, region: "us" }), 5);
    inventory.recordDetail(detail("b", 0.9), 6, 7);
    walkOver(inventory, ["c"]);
    walkOver(inventory, ["c"]);
    inventory.currentFleet();
    expect(before).toEqual(copy);
  });

  test("shares unchanged columns with the previous one", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    const before = inventory.currentFleet();
    inventory.recordDetail(detail("b", 0.9), 6, 7);
    const after = inventory.currentFleet();
    expect(after.name).toBe(before.name);
    expect(after.cpuUsage).not.toBe(before.cpuUsage);
  });
});

describe("data that arrives late", () => {
  const read = (inventory: Inventory) => {
    const { status, listedAt, cpuUsage, detailedAt } = inventory.currentFleet();
    return [NODE_STATUSES[status[0]!], listedAt.at(0), cpuUsage.at(0), detailedAt.at(0)];
  };

  test("of a detail does not replace a later list record", () => {
    const inventory = new Inventory("ratio");
    inventory.recordListed(record("a", { status: "offline" }), 10);
    inventory.recordDetail(detail("a", 0.5), 9, 9);
    expect(read(inventory)).toEqual(["offline", 10, 0.5, 9]);
  });

  test("of a detail does not replace a later detail", () => {
    const inventory = new Inventory("ratio");
    inventory.recordListed(record("a"), 1);
    inventory.recordDetail(detail("a", 0.9, { status: "offline" }), 10, 10);
    inventory.recordDetail(detail("a", 0.5), 9, 9);
    expect(read(inventory)).toEqual(["offline", 10, 0.9, 10]);
  });

  test("of the list does not replace a later record, but shows the node", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a"]);
    inventory.recordDetail(detail("a", 0.9, { status: "offline" }), 10, 10);
    expect(inventory.recordListed(record("a"), 9)).toBe(true);
    expect(inventory.nodesToLookUp(1)).toEqual([]);
    expect(read(inventory)).toEqual(["offline", 10, 0.9, 10]);
  });

  test("whose last_seen is more than two seconds earlier does not replace the other one within two minutes", () => {
    const statusAfter = (lastSeenMs: number | null, at: number) => {
      const inventory = new Inventory("ratio");
      walkOver(inventory, ["a"]);
      inventory.recordDetail(detail("a", 0.9, { status: "offline", lastSeenMs: 60_000 }), 10, 10);
      expect(inventory.recordListed(record("a", { lastSeenMs }), at)).toBe(true);
      return read(inventory)[0];
    };
    expect([57_999, 58_000, 60_000, null].map((lastSeenMs) => statusAfter(lastSeenMs, 60_010))).toEqual([
      "offline",
      "online",
      "online",
      "online",
    ]);
    // The service's clock may have been set back.
    expect([120_010, 120_011].map((at) => statusAfter(10_000, at))).toEqual(["offline", "online"]);
  });
});

test("locations are those of current nodes, and renumbering keeps each node's location", () => {
  const inventory = new Inventory("ratio");
  const inRegion = (id: string, region: string) => inventory.recordListed(record(id, { region }), 0);
  const locationsByNode = (fleet: Fleet) =>
    Object.fromEntries(
      fleet.ids.flatMap((id, slot) => (id === "" ? [] : [[id, fleet.locations[fleet.locationIndex[slot]!]!.region]])),
    );
  inRegion("a", "eu");
  inRegion("b", "us");
  inRegion("c", "ap");
  inventory.endWalk(walkSummary(3), 0);
  for (let walk = 0; walk < 2; walk++) {
    inRegion("b", "us");
    inRegion("c", "ap");
    inventory.recordLookup("a", "gone", 0);
    inventory.endWalk(walkSummary(2), 0);
  }
  const fleet = inventory.currentFleet();
  expect(fleet.locations.map(({ region }) => region)).toEqual(["us", "ap"]);
  expect(locationsByNode(fleet)).toEqual({ b: "us", c: "ap" });
  expect(NODE_STATUSES[fleet.status[fleet.ids.indexOf("c")]!]).toBe("online");
});

describe("usage", () => {
  const usageOf = (scale: UsageScale, cpu: number) => {
    const inventory = new Inventory(scale);
    inventory.recordListed(record("a"), 0);
    inventory.recordListed(record("b"), 0);
    const agrees = [inventory.recordDetail(detail("b", 0.5), 1, 1), inventory.recordDetail(detail("a", cpu), 1, 1)];
    return { inventory, agrees, fleet: inventory.currentFleet() };
  };

  test("is stored unchanged if declared as a ratio, and divided by 100 if declared as percent", () => {
    expect(usageOf("ratio", 0.75).fleet).toMatchObject({ usageKnown: true });
    expect(usageOf("ratio", 0.75).fleet.cpuUsage.at(0)).toBe(0.75);
    expect(usageOf("percent", 75).fleet.cpuUsage.at(0)).toBe(0.75);
  });

  test("that contradicts the scale makes the usage of every node unknown permanently", () => {
    const { inventory, agrees, fleet } = usageOf("ratio", 75);
    expect(agrees).toEqual(["taken", "bad_scale"]);
    expect(fleet.usageKnown).toBe(false);
    expect([...fleet.cpuUsage, ...fleet.memoryUsage, ...fleet.diskUsage].every(Number.isNaN)).toBe(true);
    expect(inventory.recordDetail(detail("a", 0.5), 2, 2)).toBe("taken");
    expect(Number.isNaN(inventory.currentFleet().cpuUsage.at(0))).toBe(true);
  });

  test("without a declared scale is missing, unlike the rest of the detail", () => {
    const { fleet } = usageOf(null, 0.5);
    expect(fleet.usageKnown).toBe(false);
    expect(Number.isNaN(fleet.cpuUsage.at(0))).toBe(true);
    expect(fleet.createdAtMs.at(0)).toBe(1);
  });

  test("is known again once it is read under a newly declared scale", () => {
    const { inventory } = usageOf("ratio", 75);
    inventory.declareScale("percent");
    expect(inventory.recordDetail(detail("a", 75), 3, 3)).toBe("taken");
    expect(inventory.currentFleet().cpuUsage.at(0)).toBe(0.75);
    expect(Number.isNaN(inventory.currentFleet().cpuUsage.at(1))).toBe(true);
  });
});

test("the details of all nodes have been read, also after a node has left", () => {
  const inventory = new Inventory("ratio");
  walkOver(inventory, ["a", "b"]);
  inventory.recordDetail(detail("a", 0.5), 0, 0);
  expect(inventory.hasDetail()).toBe(false);
  inventory.recordDetail(detail("b", 0.5), 0, 0);
  expect(inventory.hasDetail()).toBe(true);
  walkOver(inventory, ["a"], { lookup: "gone" });
  expect(inventory.hasDetail()).toBe(true);
});

test("details of nodes that were never read come first, then the oldest", () => {
  const inventory = new Inventory("ratio");
  walkOver(inventory, ["a", "b"]);
  const order: string[] = [];
  const next = () => {
    order.push(inventory.takeNextDetail(0, 1_000)!.id);
  };
  next();
  next();
  next();
  inventory.recordListed(record("new"), 1);
  expect(inventory.details.hasUnreadNodes()).toBe(true);
  next();
  next();
  next();
  expect(order).toEqual(["a", "b", "a", "new", "b", "a"]);
});

test("the detail of a node whose record changed abruptly is read out of turn", () => {
  const inventory = new Inventory("ratio");
  const ids = Array.from({ length: 20 }, (_, node) => `node_${node}`);
  walkOver(inventory, ids);
  for (const id of ids) {
    expect(inventory.takeNextDetail(0, 1_000)).toEqual({ id, cause: null });
    inventory.recordDetail(detail(id, 0.5), 0, 0);
  }
  inventory.recordListed(record("node_13", { status: "maintenance" }), 100);
  expect(inventory.details.suspectAt()).toBe(100);
  expect(inventory.takeNextDetail(100, 1_000)).toEqual({ id: "node_13", cause: "changed" });
});
