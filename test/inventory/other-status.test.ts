import { describe, expect, test } from "vitest";
import { Inventory } from "../../src/inventory/inventory.ts";
import { detail, record } from "./inventory-fixtures.ts";

describe("when a record last stated another status", () => {
  const otherStatusAt = (inventory: Inventory) => inventory.currentFleet().otherStatusAt.at(0);

  test("is unknown while all records state one status", () => {
    const inventory = new Inventory("ratio");
    inventory.recordListed(record("a"), 10);
    inventory.recordListed(record("a"), 20);
    expect(otherStatusAt(inventory)).toBeNaN();
  });

  test("is the time of the last record before the change", () => {
    const inventory = new Inventory("ratio");
    inventory.recordListed(record("a"), 10);
    inventory.recordListed(record("a"), 20);
    inventory.recordListed(record("a", { status: "offline" }), 30);
    inventory.recordListed(record("a", { status: "offline" }), 40);
    expect(otherStatusAt(inventory)).toBe(20);
  });

  test("is the time of a record that is ignored because its last_seen is earlier", () => {
    const inventory = new Inventory("ratio");
    inventory.recordListed(record("a", { status: "offline", lastSeenMs: 60_000 }), 10);
    inventory.recordListed(record("a", { lastSeenMs: 10_000 }), 20);
    inventory.recordListed(record("a", { status: "offline", lastSeenMs: 10_000 }), 30);
    inventory.recordDetail(detail("a", 0.5), 15, 15);
    expect(otherStatusAt(inventory)).toBe(20);
  });

  test("stays that of an ignored record if the status changes after it", () => {
    const inventory = new Inventory("ratio");
    inventory.recordListed(record("a", { status: "offline", lastSeenMs: 60_000 }), 10);
    inventory.recordListed(record("a", { lastSeenMs: 10_000 }), 20);
    inventory.recordListed(record("a", { status: "rebooting", lastSeenMs: 60_000 }), 30);
    expect(otherStatusAt(inventory)).toBe(20);
  });

  test("is just after the last record if an earlier one arrives late", () => {
    const inventory = new Inventory("ratio");
    inventory.recordListed(record("a", { status: "offline" }), 30);
    inventory.recordListed(record("a"), 20);
    expect(otherStatusAt(inventory)).toBe(31);
  });

  test("is not that of a record of unknown status", () => {
    const inventory = new Inventory("ratio");
    inventory.recordListed(record("a", { status: "offline", lastSeenMs: 60_000 }), 10);
    inventory.recordListed(record("a", { status: "unknown", lastSeenMs: 10_000 }), 20);
    expect(otherStatusAt(inventory)).toBeNaN();
    inventory.recordListed(record("a", { status: "unknown", lastSeenMs: 60_000 }), 30);
    inventory.recordListed(record("a", { status: "offline", lastSeenMs: 60_000 }), 40);
    expect(otherStatusAt(inventory)).toBe(10);
  });
});
