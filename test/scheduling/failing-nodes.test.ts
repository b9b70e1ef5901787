import { expect, test } from "vitest";
import { DetailPriority } from "../../src/scheduling/detail-priority.ts";
import { prioritiesAfterWalk, range, usage } from "./node-fixtures.ts";

/** Steps at which a node is read out of rounds of a hundred, while each of its reads fails. */
function triesOf(priority: DetailPriority, failing: number, from: number, count: number): number[] {
  return range(from, from + count).filter((at) => {
    const { slot } = priority.takeNext(at, 100)!;
    if (slot === failing) priority.recordFailure(slot);
    else priority.recordRead(slot, usage(0.5), at);
    return slot === failing;
  });
}

test("a node is tried again soon, once, and then in every second, fourth and eighth of its turns", () => {
  const { priority, now } = prioritiesAfterWalk(100);
  const tries = triesOf(priority, 99, now, 3_000);
  const rounds = tries.slice(1).map((at, index) => Math.round((at - tries[index]!) / 100));
  expect(rounds.slice(0, 5)).toEqual([0, 2, 4, 8, 8]);
  expect(tries[1]! - tries[0]!).toBeGreaterThanOrEqual(12);
  expect(priority.failingNodes()).toBe(1);
});

test("one success ends that, and so does leaving", () => {
  const { priority, now } = prioritiesAfterWalk(100);
  triesOf(priority, 99, now, 1_000);
  priority.recordRead(99, usage(0.5), now + 1_000);
  expect(priority.failingNodes()).toBe(0);
  expect(triesOf(priority, 98, now + 1_000, 300).length).toBeGreaterThan(1);
  expect(priority.failingNodes()).toBe(1);
  priority.removeNode(98);
  expect(priority.failingNodes()).toBe(0);
  priority.addNode(98);
  expect(priority.takeNext(now + 1_300, 100)).toEqual({ slot: 98, cause: null });
});

test("a policy that waits for a failing node does not have it read more often than it may fail", () => {
  const { priority, now } = prioritiesAfterWalk(100);
  triesOf(priority, 99, now, 1_000);
  const tries = range(now + 1_000, now + 2_000).filter((at) => {
    priority.setPolicyDeadlines(new Map([[99, at]]));
    return triesOf(priority, 99, at, 1).length > 0;
  });
  expect(tries.length).toBeLessThanOrEqual(11);
});

test("all nodes are read, turn by turn, where all of them fail", () => {
  const { priority, now } = prioritiesAfterWalk(10);
  const slots = range(now, now + 200).map((at) => {
    const { slot } = priority.takeNext(at, 10)!;
    priority.recordFailure(slot);
    return slot;
  });
  expect(new Set(slots.slice(-10)).size).toBe(10);
});

test("a probe is a node from anywhere, whose last read succeeded if there are some, and never one that left", () => {
  const { priority, now } = prioritiesAfterWalk(100);
  for (const slot of range(0, 50)) {
    priority.takeNext(now, 100);
    priority.recordFailure(slot);
  }
  priority.removeNode(99);
  const probes = range(0, 20).map(() => {
    const { slot } = priority.takeProbe(now)!;
    priority.recordRead(slot, usage(0.5), now);
    return slot;
  });
  expect(probes.every((slot) => slot >= 50 && slot < 99)).toBe(true);
  expect(new Set(probes).size).toBeGreaterThan(15);
  expect(new DetailPriority().takeProbe(now)).toBeNull();
});
