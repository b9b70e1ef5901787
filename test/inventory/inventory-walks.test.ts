import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Inventory } from "../../src/inventory/inventory.ts";
import type { WalkSummary } from "../../src/inventory/walk-completeness.ts";
import { detail, idsOf, record, walkOver, walkSummary } from "./inventory-fixtures.ts";

describe("who is in the fleet", () => {
  test("a node is gone after two exact walks in a row without it, not after one", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.currentFleet())).toEqual(["a"]);
  });

  test("walks that were cut off take no node away, however many there are", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    for (let walk = 0; walk < 10; walk++) walkOver(inventory, ["a"], { end: "cut", total: 2 });
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
  });

  test("a walk with records that can't be read takes no node away soon: each may be of one that is missing", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    const namelessWalk = () => walkOver(inventory, ["a"], { total: 2, seen: 2, rejected: 1 });
    for (let walk = 0; walk < 9; walk++) namelessWalk();
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
    namelessWalk();
    expect(idsOf(inventory.currentFleet())).toEqual(["a"]);
  });

  test("a node that comes back in between begins its absences anew", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    walkOver(inventory, ["a"]);
    walkOver(inventory, ["b"], { end: "cut", total: 2 });
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
  });

  test("random walks give what a plain set of counts gives, and slots never mix nodes up", () => {
    const walks = fc.array(
      fc.record({ ids: fc.uniqueArray(fc.constantFrom(..."abcdefghij")), complete: fc.boolean() }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(walks, (steps) => {
        const inventory = new Inventory("ratio");
        const missed = new Map<string, number>();
        for (const [at, { ids, complete }] of steps.entries()) {
          for (const id of ids) inventory.recordListed(record(id, { uptimeHours: id.charCodeAt(0) }), at);
          for (const id of inventory.nodesToLookUp(100)) inventory.recordLookup(id, "unknown", at);
          inventory.endWalk(walkSummary(ids.length, { end: complete ? "exact" : "cut" }), at);
          for (const id of ids) missed.set(id, 0);
          if (complete) {
            for (const [id, count] of missed) {
              if (ids.includes(id)) continue;
              if (count + 1 >= 2) missed.delete(id);
              else missed.set(id, count + 1);
            }
          }
          const fleet = inventory.currentFleet();
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
    const inventory = new Inventory("ratio");
    walkOver(inventory, ids);
    const missing = (count: number, parts: Partial<WalkSummary> = {}) =>
      walkOver(inventory, ids.slice(count), { end: "inexact", total: 100, ...parts });
    expect(missing(2)).toMatchObject({ complete: true, missing: 2, seenNodes: 98 });
    expect(missing(3)).toMatchObject({ complete: false, missing: 3 });
    expect(missing(1, { maxMissing: 0.001 })).toMatchObject({ complete: true });
    expect(missing(1, { maxMissing: 0 })).toMatchObject({ complete: false });
  });

  test("of a list that shows more than it counts is not complete: the two contradict each other", () => {
    expect(walkOver(new Inventory("ratio"), ids, { end: "inexact", total: 50 })).toMatchObject({ complete: false });
  });

  test("keeps the record and the age of the nodes that it missed", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ids, {}, 1_000);
    walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 }, 2_000);
    const { ids: slots, listedAt, count } = inventory.currentFleet();
    expect(count).toBe(100);
    expect(listedAt[slots.indexOf("node_0")]).toBe(1_000);
    expect(listedAt[slots.indexOf("node_1")]).toBe(2_000);
  });

  test("forgets a node after ten of them in a row, so that what is remembered stays bounded", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ids);
    for (let walk = 0; walk < 9; walk++) walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 });
    expect(inventory.has("node_0")).toBe(true);
    walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 });
    expect(inventory.has("node_0")).toBe(false);
  });

  test("is complete where an operator accepted that so many are missing", () => {
    const inventory = new Inventory("ratio");
    inventory.acceptMissing(20);
    expect(walkOver(inventory, ids, { end: "inexact", total: 121 })).toMatchObject({ complete: false });
    expect(walkOver(inventory, ids, { end: "inexact", total: 120 })).toMatchObject({ complete: true });
    // The number may vary below that. Once the list has recovered for ten walks, the old measure holds again.
    walkOver(inventory, ids, { end: "inexact", total: 105 });
    expect(walkOver(inventory, ids, { end: "inexact", total: 120 })).toMatchObject({ complete: true });
    for (let walk = 0; walk < 10; walk++) walkOver(inventory, ids);
    expect(walkOver(inventory, ids, { end: "inexact", total: 120 })).toMatchObject({ complete: false });
  });
});

describe("a node that the walk has not shown", () => {
  const startWalk = (listed: readonly string[]) => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b", "c"]);
    for (const id of listed) inventory.recordListed(record(id), 1);
    return inventory;
  };

  test("is to be looked up, up to a bound", () => {
    expect(startWalk(["a"]).nodesToLookUp(10)).toEqual(["b", "c"]);
    expect(startWalk(["a"]).nodesToLookUp(1)).toEqual(["b"]);
  });

  test("is gone at once where the lookup finds no such node", () => {
    const inventory = startWalk(["a", "b"]);
    inventory.recordLookup("c", "gone", 1);
    expect(inventory.has("c")).toBe(false);
  });

  test("is never taken away by the lookup of a node that the walk has shown", () => {
    const inventory = startWalk(["a", "b", "c"]);
    inventory.recordLookup("c", "gone", 1);
    expect(inventory.has("c")).toBe(true);
  });

  test("and that a lookup finds is not gone: the list contradicts the service's own record", () => {
    const inventory = startWalk(["a", "b"]);
    for (let walk = 0; walk < 20; walk++) {
      if (inventory.nodesToLookUp(1).length > 0) inventory.recordLookup("c", "alive", 1);
      expect(inventory.endWalk(walkSummary(2), 1)).toMatchObject({ complete: true, missing: 0 });
      for (const id of ["a", "b"]) inventory.recordListed(record(id), 1);
    }
    expect(inventory.has("c")).toBe(true);
  });

  test("and that lookups go on finding is gone once its last_seen has not moved for a day", () => {
    const inventory = startWalk(["a", "b"]);
    const hours = (count: number) => count * 3_600_000;
    inventory.recordLookup("c", "alive", hours(1));
    inventory.recordLookup("c", "alive", hours(24));
    expect(inventory.has("c")).toBe(true);
    inventory.recordDetail(detail("c", 0.5, { lastSeenMs: 9_000 }), hours(24), 0);
    inventory.recordLookup("c", "alive", hours(25));
    inventory.recordLookup("c", "alive", hours(48));
    expect(inventory.has("c")).toBe(true);
    inventory.recordLookup("c", "alive", hours(49));
    expect(inventory.has("c")).toBe(false);
  });

  test("is not gone while its own lookup is still to come, however many walks leave it out", () => {
    const inventory = startWalk(["a", "b"]);
    for (let walk = 0; walk < 20; walk++) walkOver(inventory, ["a", "b"], { lookup: null });
    expect(inventory.has("c")).toBe(true);
  });

  test("is gone after two exact walks in which every lookup of others found them gone", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b", "c", "d", "e"]);
    for (const gone of ["b", "c"]) {
      inventory.recordListed(record("a"), 1);
      inventory.recordLookup(gone, "gone", 1);
      inventory.endWalk(walkSummary(1), 1);
    }
    expect(idsOf(inventory.currentFleet())).toEqual(["a"]);
  });

  test("and that a lookup finds is looked up ever more seldom", () => {
    const inventory = startWalk(["a", "b"]);
    const lookups: number[] = [];
    for (let walk = 0; walk < 40; walk++) {
      if (inventory.nodesToLookUp(1).length > 0) {
        lookups.push(walk);
        inventory.recordLookup("c", "alive", 1);
      }
      inventory.endWalk(walkSummary(2), 1);
      for (const id of ["a", "b"]) inventory.recordListed(record(id), 1);
    }
    expect(lookups).toEqual([0, 1, 3, 7, 15, 31]);
  });
});
