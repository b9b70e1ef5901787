import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createInventory, type EndedWalk, type UsageScale } from "../../src/engine/inventory.ts";
import { NODE_STATUSES, type NodeDetail, type NodeRecord } from "../../src/model/node.ts";
import type { Fleet } from "../../src/model/snapshot.ts";

const record = (id: string, parts: Partial<NodeRecord> = {}): NodeRecord => ({
  id,
  name: `name of ${id}`,
  status: "online",
  country: "DE",
  region: "eu",
  ipAddress: null,
  version: "1.0",
  lastSeenMs: 1_000,
  uptimeHours: 5,
  activeSessions: 2,
  bandwidthGb: 0.5,
  ...parts,
});

const detail = (id: string, cpuUsage: number | null, parts: Partial<NodeDetail> = {}): NodeDetail => ({
  ...record(id),
  cpuUsage,
  memoryUsage: 0.5,
  diskUsage: 0.25,
  createdAtMs: 1,
  updatedAtMs: 2,
  ...parts,
});

const idsOf = (fleet: Fleet): string[] => fleet.ids.filter((id) => id !== "").toSorted();

const ended = (seen: number, parts: Partial<EndedWalk> = {}): EndedWalk => ({
  end: "exact",
  total: seen,
  seen,
  nameless: 0,
  rejected: 0,
  maxMissing: 0.02,
  ...parts,
});

function walkOver(
  inventory: ReturnType<typeof createInventory>,
  ids: readonly string[],
  parts: Partial<EndedWalk> = {},
  at = 0,
) {
  for (const id of ids) inventory.list(record(id), at);
  return inventory.endWalk(ended(ids.length, parts), at);
}

describe("who is in the fleet", () => {
  test("a node is gone after two exact walks in a row without it, not after one", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ["a", "b"]);
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.fleet())).toEqual(["a", "b"]);
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.fleet())).toEqual(["a"]);
  });

  test("walks that were cut off take no node away, however many there are", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ["a", "b"]);
    for (let walk = 0; walk < 10; walk++) walkOver(inventory, ["a"], { end: "cut", total: 2 });
    expect(idsOf(inventory.fleet())).toEqual(["a", "b"]);
  });

  test("a walk with records that name no node takes nobody away soon, for it can't say who is missing", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ["a", "b"]);
    const namelessWalk = () => {
      inventory.list(record("a"), 0);
      inventory.endWalk(ended(2, { nameless: 1, rejected: 1 }), 0);
    };
    for (let walk = 0; walk < 9; walk++) namelessWalk();
    expect(idsOf(inventory.fleet())).toEqual(["a", "b"]);
    namelessWalk();
    expect(idsOf(inventory.fleet())).toEqual(["a"]);
  });

  test("a node that comes back in between begins its absences anew", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ["a", "b"]);
    walkOver(inventory, ["a"]);
    walkOver(inventory, ["b"], { end: "cut", total: 2 });
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.fleet())).toEqual(["a", "b"]);
  });

  test("a node whose record can't be read keeps its last record and stays", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ["a"]);
    for (let walk = 0; walk < 3; walk++) {
      expect(inventory.meet("a")).toBe(true);
      expect(inventory.meet("a")).toBe(false);
      inventory.endWalk(ended(1, { rejected: 1 }), 0);
    }
    expect(inventory.fleet().uptimeHours[0]).toBe(5);
  });

  test("random walks give what a plain set of counts gives, and slots never mix nodes up", () => {
    const walks = fc.array(
      fc.record({ ids: fc.uniqueArray(fc.constantFrom(..."abcdefghij")), complete: fc.boolean() }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(walks, (steps) => {
        const inventory = createInventory("ratio");
        const missed = new Map<string, number>();
        for (const [at, { ids, complete }] of steps.entries()) {
          for (const id of ids) inventory.list(record(id, { uptimeHours: id.charCodeAt(0) }), at);
          inventory.endWalk(ended(ids.length, { end: complete ? "exact" : "cut" }), at);
          for (const id of ids) missed.set(id, 0);
          if (complete) {
            for (const [id, count] of missed) {
              if (ids.includes(id)) continue;
              if (count + 1 >= 2) missed.delete(id);
              else missed.set(id, count + 1);
            }
          }
          const fleet = inventory.fleet();
          expect(idsOf(fleet)).toEqual([...missed.keys()].toSorted());
          expect(fleet.count).toBe(missed.size);
          fleet.ids.forEach((id, slot) => {
            if (id !== "") expect(fleet.uptimeHours[slot]).toBe(id.charCodeAt(0));
          });
        }
      }),
    );
  });
});

describe("a walk that is not exact", () => {
  const ids = Array.from({ length: 100 }, (_, index) => `node_${index}`);

  test("is complete while it misses no more than the share allowed, and one node on a small fleet", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ids);
    const missing = (count: number, parts: Partial<EndedWalk> = {}) =>
      walkOver(inventory, ids.slice(count), { end: "inexact", total: 100, ...parts });
    expect(missing(2)).toMatchObject({ complete: true, missing: 2, met: 98 });
    expect(missing(3)).toMatchObject({ complete: false, missing: 3 });
    expect(missing(1, { maxMissing: 0.001 })).toMatchObject({ complete: true });
    expect(missing(1, { maxMissing: 0 })).toMatchObject({ complete: false });
  });

  test("of a list that shows more than it counts is not complete: the two contradict each other", () => {
    expect(walkOver(createInventory("ratio"), ids, { end: "inexact", total: 50 })).toMatchObject({ complete: false });
  });

  test("keeps the record and the age of the nodes that it missed", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ids, {}, 1_000);
    walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 }, 2_000);
    const { ids: slots, listedAt, count } = inventory.fleet();
    expect(count).toBe(100);
    expect(listedAt[slots.indexOf("node_0")]).toBe(1_000);
    expect(listedAt[slots.indexOf("node_1")]).toBe(2_000);
  });

  test("forgets a node after ten of them in a row, so that what is remembered stays bounded", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ids);
    for (let walk = 0; walk < 9; walk++) walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 });
    expect(inventory.has("node_0")).toBe(true);
    walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 });
    expect(inventory.has("node_0")).toBe(false);
  });

  test("is complete where an operator accepted that so many are missing", () => {
    const inventory = createInventory("ratio");
    inventory.acceptMissing(20);
    expect(walkOver(inventory, ids, { end: "inexact", total: 121 })).toMatchObject({ complete: false });
    expect(walkOver(inventory, ids, { end: "inexact", total: 120 })).toMatchObject({ complete: true });
    // Once the list has recovered, the old measure holds again.
    walkOver(inventory, ids);
    expect(walkOver(inventory, ids, { end: "inexact", total: 120 })).toMatchObject({ complete: false });
  });
});

describe("a node that the walk has not shown", () => {
  const startWalk = (listed: readonly string[]) => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ["a", "b", "c"]);
    for (const id of listed) inventory.list(record(id), 1);
    return inventory;
  };

  test("is to be looked up, up to a bound", () => {
    expect(startWalk(["a"]).unlisted(10)).toEqual(["b", "c"]);
    expect(startWalk(["a"]).unlisted(1)).toEqual(["b"]);
  });

  test("is gone at once where the lookup finds no such node", () => {
    const inventory = startWalk(["a", "b"]);
    inventory.lookedUp("c", "gone");
    expect(inventory.has("c")).toBe(false);
  });

  test("is never taken away by the lookup of a node that the walk has shown", () => {
    const inventory = startWalk(["a", "b", "c"]);
    inventory.lookedUp("c", "gone");
    expect(inventory.has("c")).toBe(true);
  });

  test("and that a lookup finds is not gone: the list contradicts the service's own record", () => {
    const inventory = startWalk(["a", "b"]);
    for (let walk = 0; walk < 20; walk++) {
      if (inventory.unlisted(1).length > 0) inventory.lookedUp("c", "alive");
      expect(inventory.endWalk(ended(2), 1)).toMatchObject({ missing: 1 });
      for (const id of ["a", "b"]) inventory.list(record(id), 1);
    }
    expect(inventory.has("c")).toBe(true);
  });

  test("and that a lookup finds is looked up ever more seldom", () => {
    const inventory = startWalk(["a", "b"]);
    const lookups: number[] = [];
    for (let walk = 0; walk < 40; walk++) {
      if (inventory.unlisted(1).length > 0) {
        lookups.push(walk);
        inventory.lookedUp("c", "alive");
      }
      inventory.endWalk(ended(2), 1);
      for (const id of ["a", "b"]) inventory.list(record(id), 1);
    }
    expect(lookups).toEqual([0, 1, 3, 7, 15, 31]);
  });
});

describe("a fleet that was handed out", () => {
  test("never changes afterwards", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ["a", "b"]);
    const before = inventory.fleet();
    const copy = structuredClone(before);
    inventory.list(record("a", { status: "offline", uptimeHours: 99, region: "us" }), 5);
    inventory.detail(detail("b", 0.9), 6, 7);
    walkOver(inventory, ["c"]);
    walkOver(inventory, ["c"]);
    inventory.fleet();
    expect(before).toEqual(copy);
  });

  test("shares the columns that did not change with the one before", () => {
    const inventory = createInventory("ratio");
    walkOver(inventory, ["a", "b"]);
    const before = inventory.fleet();
    inventory.detail(detail("b", 0.9), 6, 7);
    const after = inventory.fleet();
    expect(after.names).toBe(before.names);
    expect(after.cpuUsage).not.toBe(before.cpuUsage);
  });
});

test("places are those of the nodes that are there, and renumbering moves no node", () => {
  const inventory = createInventory("ratio");
  const inRegion = (id: string, region: string) => inventory.list(record(id, { region }), 0);
  const placesByNode = (fleet: Fleet) =>
    Object.fromEntries(
      fleet.ids.flatMap((id, slot) => (id === "" ? [] : [[id, fleet.places[fleet.place[slot]!]!.region]])),
    );
  inRegion("a", "eu");
  inRegion("b", "us");
  inRegion("c", "ap");
  inventory.endWalk(ended(3), 0);
  for (let walk = 0; walk < 2; walk++) {
    inRegion("b", "us");
    inRegion("c", "ap");
    inventory.endWalk(ended(2), 0);
  }
  const fleet = inventory.fleet();
  expect(fleet.places.map(({ region }) => region)).toEqual(["us", "ap"]);
  expect(placesByNode(fleet)).toEqual({ b: "us", c: "ap" });
  expect(NODE_STATUSES[fleet.status[fleet.ids.indexOf("c")]!]).toBe("online");
});

test("a service that gives each node a region of its own is told in two thousand places, and one for the rest", () => {
  const inventory = createInventory("ratio");
  for (let node = 0; node < 5_000; node++) inventory.list(record(`node_${node}`, { region: `region_${node}` }), 0);
  inventory.endWalk(ended(5_000), 0);
  const { places, place, ids } = inventory.fleet();
  expect(places).toHaveLength(2_001);
  expect(places[place[ids.indexOf("node_7")]!]).toEqual({ country: "DE", region: "region_7" });
  expect(places[place[ids.indexOf("node_4999")]!]).toEqual({ country: "other", region: "other" });
});

describe("usage", () => {
  const usageOf = (scale: UsageScale, cpu: number) => {
    const inventory = createInventory(scale);
    inventory.list(record("a"), 0);
    inventory.list(record("b"), 0);
    const agrees = [inventory.detail(detail("b", 0.5), 1, 1), inventory.detail(detail("a", cpu), 1, 1)];
    return { inventory, agrees, fleet: inventory.fleet() };
  };

  test("declared as a ratio is taken as it is, as percent is divided by a hundred", () => {
    expect(usageOf("ratio", 0.75).fleet).toMatchObject({ usageKnown: true });
    expect(usageOf("ratio", 0.75).fleet.cpuUsage[0]).toBe(0.75);
    expect(usageOf("percent", 75).fleet.cpuUsage[0]).toBe(0.75);
  });

  test("that contradicts its scale makes all usage unknown, of every node, and for good", () => {
    const { inventory, agrees, fleet } = usageOf("ratio", 75);
    expect(agrees).toEqual(["taken", "contradicts"]);
    expect(fleet.usageKnown).toBe(false);
    expect([...fleet.cpuUsage, ...fleet.memoryUsage, ...fleet.diskUsage].every(Number.isNaN)).toBe(true);
    expect(inventory.detail(detail("a", 0.5), 2, 2)).toBe("taken");
    expect(Number.isNaN(inventory.fleet().cpuUsage[0])).toBe(true);
  });

  test("of no declared scale is not shown at all, while the rest of the detail is", () => {
    const { fleet } = usageOf(null, 0.5);
    expect(fleet.usageKnown).toBe(false);
    expect(Number.isNaN(fleet.cpuUsage[0])).toBe(true);
    expect(fleet.createdAtMs[0]).toBe(1);
  });

  test("is read anew under a newly declared scale", () => {
    const { inventory } = usageOf("ratio", 75);
    inventory.declareScale("percent");
    expect(inventory.detail(detail("a", 75), 3, 3)).toBe("taken");
    expect(inventory.fleet().cpuUsage[0]).toBe(0.75);
    expect(Number.isNaN(inventory.fleet().cpuUsage[1])).toBe(true);
  });
});

test("details go round: nodes never tried first, then whoever waited longest", () => {
  const inventory = createInventory("ratio");
  walkOver(inventory, ["a", "b"]);
  const order: string[] = [];
  const next = () => {
    order.push(inventory.takeDetail(0, 1_000)!.id);
  };
  next();
  next();
  next();
  inventory.list(record("new"), 1);
  expect(inventory.hasUntried()).toBe(true);
  next();
  next();
  next();
  expect(order).toEqual(["a", "b", "a", "new", "b", "a"]);
});

test("a node whose record changed abruptly has its detail read before its turn", () => {
  const inventory = createInventory("ratio");
  const ids = Array.from({ length: 20 }, (_, node) => `node_${node}`);
  walkOver(inventory, ids);
  for (const id of ids) {
    expect(inventory.takeDetail(0, 1_000)).toEqual({ id, cause: null });
    inventory.detail(detail(id, 0.5), 0, 0);
  }
  inventory.list(record("node_13", { status: "maintenance" }), 100);
  expect(inventory.suspectAt()).toBe(100);
  expect(inventory.takeDetail(100, 1_000)).toEqual({ id: "node_13", cause: "changed" });
});
