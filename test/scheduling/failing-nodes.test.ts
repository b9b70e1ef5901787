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

test("retries a failed read early once, and then skips 1, 3 and 7 turns", () => {
  const { priority, now } = prioritiesAfterWalk(100);
  const tries = triesOf(priority, 99, now, 3_000);
  const rounds = tries.slice(1).map((at, index) => Math.round((at - tries[index]!) / 100));
  expect(rounds.slice(0, 5)).toEqual([0, 2, 4, 8, 8]);
  expect(tries[1]! - tries[0]!).toBeGreaterThanOrEqual(12);
  expect(priority.failingNodes()).toBe(1);
});

test("stops skipping turns after a success, and when the node is removed", () => {
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

test("does not read a failing node more often because a policy waits for it", () => {
  const { priority, now } = prioritiesAfterWalk(100);
  triesOf(priority, 99, now, 1_000);
  const tries = range(now + 1_000, now + 2_000).filter((at) => {
    priority.setPolicyDeadlines(new Map([[99, at]]));
    return triesOf(priority, 99, at, 1).length > 0;
  });
  expect(tries.length).toBeLessThanOrEqual(11);
});

test("reads all nodes in turn if all of them fail", () => {
  const { priority, now } = prioritiesAfterWalk(10);
  const slots = range(now, now + 200).map((at) => {
    const { slot } = priority.takeNext(at, 10)!;
    priority.recordFailure(slot);
    return slot;
  });
  expect(new Set(slots.slice(-10)).size).toBe(10);
});

test("reads a failing node early rather than skip the turns of thousands for one choice", () => {
  const { priority, now } = prioritiesAfterWalk(10_000);
  for (const slot of range(0, 9_999)) for (let failures = 0; failures < 4; failures++) priority.recordFailure(slot);
  // The first choices after a walk may be suspects.
  const choices = range(now, now + 2_000).map((at) => priority.takeNext(at, 10_000)!);
  const inTurn = choices.filter(({ cause }) => cause === null).map(({ slot }) => slot);
  expect(inTurn.length).toBeGreaterThan(100);
  expect(inTurn[0]).toBeLessThan(5_000);
});

test("probes a node from anywhere, if possible one whose last read succeeded, and never a removed one", () => {
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
