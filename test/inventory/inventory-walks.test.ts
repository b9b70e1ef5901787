import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Inventory } from "../../src/inventory/inventory.ts";
import type { WalkSummary } from "../../src/inventory/walk-completeness.ts";
import { detail, idsOf, record, walkOver, walkSummary } from "./inventory-fixtures.ts";

describe("the nodes of the fleet", () => {
  test("lose a node after two exact walks in a row without it, not after one", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.currentFleet())).toEqual(["a"]);
  });

  test("lose no node through cut walks", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    for (let walk = 0; walk < 10; walk++) walkOver(inventory, ["a"], { end: "cut", total: 2 });
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
  });

  test("lose no node soon if records are unreadable: each may be that of a missing node", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    const namelessWalk = () => walkOver(inventory, ["a"], { total: 2, seen: 2, rejected: 1 });
    for (let walk = 0; walk < 9; walk++) namelessWalk();
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
    namelessWalk();
    expect(idsOf(inventory.currentFleet())).toEqual(["a"]);
  });

  test("lose a node only after consecutive absences", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b"]);
    walkOver(inventory, ["a"]);
    walkOver(inventory, ["b"], { end: "cut", total: 2 });
    walkOver(inventory, ["a"]);
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
  });

  test("match a simple model over random walks", () => {
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
            if (id !== "") expect(fleet.uptimeHours.at(slot)).toBe(id.charCodeAt(0));
          });
        }
      }),
    );
  });
});

describe("a walk that is not exact", () => {
  const ids = Array.from({ length: 100 }, (_, index) => `node_${index}`);

  test("is complete if it misses no more than the allowed share, or one node of a small fleet", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ids);
    const missing = (count: number, parts: Partial<WalkSummary> = {}) =>
      walkOver(inventory, ids.slice(count), { end: "inexact", total: 100, ...parts });
    expect(missing(2)).toMatchObject({ complete: true, missing: 2, seenNodes: 98 });
    expect(missing(3)).toMatchObject({ complete: false, missing: 3 });
    expect(missing(1, { maxMissing: 0.001 })).toMatchObject({ complete: true });
    expect(missing(1, { maxMissing: 0 })).toMatchObject({ complete: false });
  });

  test("is not complete if the list shows more records than its total", () => {
    expect(walkOver(new Inventory("ratio"), ids, { end: "inexact", total: 50 })).toMatchObject({ complete: false });
  });

  test("keeps the record and the age of nodes that it missed", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ids, {}, 1_000);
    walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 }, 2_000);
    const { ids: slots, listedAt, count } = inventory.currentFleet();
    expect(count).toBe(100);
    expect(listedAt.at(slots.indexOf("node_0"))).toBe(1_000);
    expect(listedAt.at(slots.indexOf("node_1"))).toBe(2_000);
  });

  test("removes a node after ten such walks in a row, which bounds the fleet", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ids);
    for (let walk = 0; walk < 9; walk++) walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 });
    expect(inventory.has("node_0")).toBe(true);
    walkOver(inventory, ids.slice(1), { end: "inexact", total: 100 });
    expect(inventory.has("node_0")).toBe(false);
  });

  test("is complete if an operator accepted the number of missing nodes", () => {
    const inventory = new Inventory("ratio");
    inventory.acceptance.acceptMissing(20);
    expect(walkOver(inventory, ids, { end: "inexact", total: 121 })).toMatchObject({ complete: false });
    expect(walkOver(inventory, ids, { end: "inexact", total: 120 })).toMatchObject({ complete: true });
    // Fewer may be missing. After ten walks within the allowed share, the accepted number no longer applies.
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

  test("is looked up, up to a maximum number", () => {
    expect(startWalk(["a"]).nodesToLookUp(10)).toEqual(["b", "c"]);
    expect(startWalk(["a"]).nodesToLookUp(1)).toEqual(["b"]);
  });

  test("is gone immediately if the lookup returns 404", () => {
    const inventory = startWalk(["a", "b"]);
    inventory.recordLookup("c", "gone", 1);
    expect(inventory.has("c")).toBe(false);
  });

  test("is not removed by a lookup if the walk has shown it since", () => {
    const inventory = startWalk(["a", "b", "c"]);
    inventory.recordLookup("c", "gone", 1);
    expect(inventory.has("c")).toBe(true);
  });

  test("is not gone if a lookup finds it", () => {
    const inventory = startWalk(["a", "b"]);
    for (let walk = 0; walk < 20; walk++) {
      if (inventory.nodesToLookUp(1).length > 0) inventory.recordLookup("c", "alive", 1);
      expect(inventory.endWalk(walkSummary(2), 1)).toMatchObject({ complete: true, missing: 0 });
      for (const id of ["a", "b"]) inventory.recordListed(record(id), 1);
    }
    expect(inventory.has("c")).toBe(true);
  });

  test("is not gone because single lookups fail between those that find it", () => {
    const inventory = startWalk(["a", "b"]);
    let lookups = 0;
    for (let walk = 0; walk < 20; walk++) {
      if (inventory.nodesToLookUp(1).length > 0)
        inventory.recordLookup("c", lookups++ % 2 === 0 ? "alive" : "unknown", 1);
      inventory.endWalk(walkSummary(2), 1);
      for (const id of ["a", "b"]) inventory.recordListed(record(id), 1);
    }
    expect(lookups).toBeGreaterThan(6);
    expect(inventory.has("c")).toBe(true);
  });

  test("is gone after ten walks whose lookups are delayed, unless an earlier lookup found it", () => {
    const inventory = startWalk(["a"]);
    inventory.recordLookup("b", "alive", 1);
    inventory.endWalk(walkSummary(1), 1);
    const delayedWalk = () => {
      inventory.recordListed(record("a"), 1);
      inventory.lookups.recordDelay();
      inventory.endWalk(walkSummary(1), 1);
    };
    for (let walk = 0; walk < 9; walk++) delayedWalk();
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b", "c"]);
    delayedWalk();
    expect(idsOf(inventory.currentFleet())).toEqual(["a", "b"]);
  });

  test("is gone once its last_seen has not changed for a day, even if lookups find it", () => {
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

  test("is not gone if the list has shown it since, however old its last_seen is", () => {
    const inventory = startWalk(["a", "b"]);
    const days = (count: number) => count * 86_400_000;
    inventory.recordLookup("c", "alive", 0);
    walkOver(inventory, ["a", "b", "c"], {}, days(1));
    inventory.recordListed(record("a"), days(2));
    inventory.recordLookup("c", "alive", days(2));
    expect(inventory.has("c")).toBe(true);
  });

  test("is not gone before its own lookup, however many walks do not show it", () => {
    const inventory = startWalk(["a", "b"]);
    for (let walk = 0; walk < 20; walk++) walkOver(inventory, ["a", "b"], { lookup: null });
    expect(inventory.has("c")).toBe(true);
  });

  test("is gone after two exact walks in which every lookup of other nodes returned 404", () => {
    const inventory = new Inventory("ratio");
    walkOver(inventory, ["a", "b", "c", "d", "e"]);
    for (const gone of ["b", "c"]) {
      inventory.recordListed(record("a"), 1);
      inventory.recordLookup(gone, "gone", 1);
      inventory.endWalk(walkSummary(1), 1);
    }
    expect(idsOf(inventory.currentFleet())).toEqual(["a"]);
  });

  test("is looked up in the end, however many others the list hides", () => {
    const inventory = new Inventory("ratio");
    const hidden = Array.from({ length: 300 }, (_, index) => `hidden_${index}`);
    const listed = Array.from({ length: 1_700 }, (_, index) => `listed_${index}`);
    walkOver(inventory, [...hidden, ...listed]);
    const lookedUp = new Set<string>();
    for (let walk = 0; walk < 75; walk++) {
      for (const id of listed) inventory.recordListed(record(id), 0);
      for (const id of inventory.nodesToLookUp(4)) {
        lookedUp.add(id);
        inventory.recordLookup(id, "alive", 0);
      }
      inventory.endWalk(walkSummary(listed.length), 0);
    }
    expect(lookedUp.size).toBe(hidden.length);
  });

  test("is looked up less and less often while lookups find it", () => {
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
