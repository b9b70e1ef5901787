import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/base/duration.ts";
import { CreatedAtChanges } from "../../../src/remediation/state/created-at-changes.ts";

/** Records a change of these nodes of 20 at each of these hours. Returns those that changed too often by the last. */
const recordAt = (changes: CreatedAtChanges, nodes: readonly string[], hours: readonly number[]) =>
  hours.map((hour) => changes.record(nodes, 20, hour * HOUR_MS)).at(-1);

const three = ["node_1", "node_2", "node_3"];

test("the third change of an id within a day is too often", () => {
  expect(recordAt(new CreatedAtChanges(), ["node_1"], [0, 1])).toEqual([]);
  expect(recordAt(new CreatedAtChanges(), ["node_1"], [0, 1, 25])).toEqual(["node_1"]);
  expect(recordAt(new CreatedAtChanges(), ["node_1"], [0, 1, 26, 27])).toEqual([]);
});

test("ids that change often are not identified once they are more than a tenth of the nodes", () => {
  const changes = new CreatedAtChanges();
  recordAt(changes, three.slice(1), [0, 1, 2]);
  expect(three.map((node) => changes.identifies(node, 0))).toEqual([true, true, true]);
  recordAt(changes, three.slice(0, 1), [3, 4]);
  expect(three.map((node) => changes.identifies(node, 0))).toEqual([true, true, true]);
  recordAt(changes, three.slice(0, 1), [5]);
  expect(three.map((node) => changes.identifies(node, 0))).toEqual([false, false, false]);
  expect(changes.identifies("node_4", 0)).toBe(true);
});

test("ids are identified again a day after their last change", () => {
  const changes = new CreatedAtChanges();
  recordAt(changes, three, [0, 1, 2]);
  changes.record([], 20, DAY_MS + 2 * HOUR_MS);
  expect(changes.identifies("node_1", DAY_MS)).toBe(false);
  changes.record([], 20, DAY_MS + 2 * HOUR_MS + 1);
  expect(changes.identifies("node_1", DAY_MS)).toBe(true);
});

test("no id is identified until a day after an earlier process found that too many change", () => {
  const changes = new CreatedAtChanges(-HOUR_MS);
  expect(changes.identifies("node_1", DAY_MS - HOUR_MS)).toBe(false);
  expect(changes.identifies("node_1", DAY_MS - HOUR_MS + 1)).toBe(true);
});

test("what an earlier process found is confirmed by one change of more than a tenth of the nodes", () => {
  const changes = new CreatedAtChanges(-HOUR_MS);
  recordAt(changes, three.slice(1), [0]);
  expect(changes.areTooMany(0)).toBe(false);
  recordAt(changes, three, [1]);
  expect(changes.areTooMany(HOUR_MS)).toBe(true);
  const unaware = new CreatedAtChanges();
  recordAt(unaware, three, [0, 1]);
  expect(unaware.areTooMany(HOUR_MS)).toBe(false);
});

test("created_at no longer counts as changing a day after its last change in any node", () => {
  const changes = new CreatedAtChanges();
  recordAt(changes, three, [0, 1, 2]);
  expect(changes.areTooMany(DAY_MS + 2 * HOUR_MS)).toBe(true);
  expect(changes.areTooMany(DAY_MS + 2 * HOUR_MS + 1)).toBe(false);
});
