import { describe, expect, test } from "vitest";
import { Inventory } from "../../src/inventory/inventory.ts";
import { record, walkSummary } from "./inventory-fixtures.ts";

describe("a list that shows less than the expected share of the known nodes", () => {
  const ids = Array.from({ length: 10 }, (_, index) => `node_${index}`);
  const DAY = 86_400_000;
  /** Walks over a list with these nodes; lookups of all others answer 404. */
  const walk = (inventory: Inventory, shown: readonly string[], at: number) => {
    for (const id of shown) inventory.recordListed(record(id), at);
    inventory.endList(0.8, at);
    for (const id of inventory.nodesToLookUp(1_000)) inventory.recordLookup(id, "gone", at);
    return inventory.endWalk(walkSummary(shown.length), at);
  };

  test("proves that no node is gone, until it has shown too few for seven days", () => {
    const inventory = new Inventory("ratio");
    walk(inventory, ids, 0);
    for (let at = 1; at < 7 * DAY; at += DAY / 4) expect(walk(inventory, ids.slice(0, 7), at).complete).toBe(false);
    expect(inventory.count()).toBe(10);
    // Lookups have become rare.
    for (let walks = 0; walks < 32; walks++) walk(inventory, ids.slice(0, 7), 7 * DAY + walks);
    expect(inventory.count()).toBe(7);
  });

  test("counts the days again after a list that showed enough", () => {
    const inventory = new Inventory("ratio");
    walk(inventory, ids, 0);
    walk(inventory, [], 1);
    walk(inventory, ids, 6 * DAY);
    walk(inventory, [], 8 * DAY);
    expect(inventory.count()).toBe(10);
  });

  test("loses the others if as many new nodes took their place, which bounds the fleet", () => {
    const inventory = new Inventory("ratio");
    for (let at = 0; at < 100; at++) {
      const replaced = ids.map((id) => `${id}_${at}`);
      walk(inventory, replaced, at);
      expect(inventory.count()).toBe(10);
    }
  });

  test("loses none if new nodes take the place of a few of the missing ones", () => {
    const inventory = new Inventory("ratio");
    walk(inventory, ids, 0);
    walk(inventory, ids.slice(0, 2), 1);
    walk(inventory, ["new_1", "new_2", "new_3"], 2);
    expect(inventory.count()).toBe(13);
  });

  test("proves it of none if only a walk that was cut has shown them", () => {
    const inventory = new Inventory("ratio");
    for (const id of ids) inventory.recordListed(record(id), 0);
    inventory.endWalk(walkSummary(ids.length, { end: "cut" }), 0);
    walk(inventory, [], 1);
    expect(inventory.count()).toBe(10);
  });

  test("proves it if the others were accepted as missing", () => {
    const inventory = new Inventory("ratio");
    walk(inventory, ids, 0);
    inventory.acceptance.acceptMissing(walk(inventory, [], 1).missing);
    walk(inventory, [], 2);
    expect(inventory.count()).toBe(0);
  });

  test("proves it of none if the list has shown the accepted ones again since", () => {
    const inventory = new Inventory("ratio");
    walk(inventory, ids, 0);
    inventory.acceptance.acceptMissing(walk(inventory, [], 1).missing);
    walk(inventory, ids, 2);
    walk(inventory, ids, 3);
    walk(inventory, ids.slice(0, 2), 4);
    walk(inventory, ids.slice(0, 2), 5);
    expect(inventory.count()).toBe(10);
  });
});
