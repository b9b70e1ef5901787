import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NodeRecord } from "../../src/model/node.ts";
import { type DetailChoice, DetailPriority, readsBetweenMax } from "../../src/scheduling/detail-priority.ts";
import { listRecord, prioritiesAfterWalk, range, usage } from "./node-fixtures.ts";

/** Takes the next reads, which all succeed. */
function reads(
  priority: DetailPriority,
  { from, count, round }: { from: number; count: number; round: number },
): DetailChoice[] {
  return Array.from({ length: count }, (_, index) => {
    const pick = priority.takeNext(from + index, round)!;
    priority.recordRead(pick.slot, usage(0.5), from + index);
    return pick;
  });
}

const changed = (priority: DetailPriority, slots: readonly number[], at: number) => {
  for (const slot of slots) priority.recordListed(slot, listRecord({ status: "maintenance" }), at);
};

test("chooses nothing without nodes", () => {
  expect(new DetailPriority().takeNext(0, 1_000)).toBeNull();
});

describe("routine reads", () => {
  test("choose nodes that were never tried first, then the one that was read longest ago", () => {
    const priority = new DetailPriority();
    for (const slot of [2, 0, 1]) priority.addNode(slot);
    expect(reads(priority, { from: 0, count: 4, round: 3 }).map(({ slot }) => slot)).toEqual([2, 0, 1, 2]);
    priority.addNode(3);
    expect(priority.hasUnreadNodes()).toBe(true);
    expect(reads(priority, { from: 4, count: 5, round: 4 }).map(({ slot }) => slot)).toEqual([3, 0, 1, 2, 3]);
    expect(priority.hasUnreadNodes()).toBe(false);
  });

  test("put a node that was read for another reason at the end", () => {
    const { priority, now } = prioritiesAfterWalk(3);
    priority.recordRead(0, usage(0.5), now);
    expect(reads(priority, { from: now, count: 3, round: 3 }).map(({ slot }) => slot)).toEqual([1, 2, 0]);
  });

  test("never make a node suspect that was never tried", () => {
    const priority = new DetailPriority();
    for (const slot of range(0, 20)) priority.addNode(slot);
    for (const status of ["online", "offline"] as const) priority.recordListed(19, listRecord({ status }), 0);
    expect(reads(priority, { from: 1, count: 20, round: 20 })).toEqual(
      range(0, 20).map((slot) => ({ slot, cause: null })),
    );
  });

  test("do not choose a removed node, even if a policy waits for it", () => {
    const { priority, now } = prioritiesAfterWalk(30);
    priority.setPolicyDeadlines(new Map([[7, now]]));
    priority.removeNode(7);
    priority.setPolicyDeadlines(new Map([[7, now]]));
    priority.recordRead(7, usage(0.5), now);
    expect(reads(priority, { from: now, count: 60, round: 30 }).some(({ slot }) => slot === 7)).toBe(false);
  });

  test("do not compare a node with the previous one in its slot", () => {
    const { priority, now } = prioritiesAfterWalk(30);
    priority.removeNode(7);
    priority.addNode(7);
    priority.recordRead(7, usage(0.7), now);
    priority.recordListed(7, listRecord({ status: "offline", version: "9" }), now);
    expect(reads(priority, { from: now, count: 29, round: 30 }).every(({ cause }) => cause === null)).toBe(true);
  });
});

describe("a suspect", () => {
  test("is read when a policy needs it, and not before", () => {
    const { priority, now } = prioritiesAfterWalk(100);
    priority.setPolicyDeadlines(new Map([[99, now + 40]]));
    const picks = reads(priority, { from: now, count: 50, round: 100 });
    expect(picks.findIndex(({ slot }) => slot === 99)).toBe(40);
    expect(picks[40]).toEqual({ slot: 99, cause: "awaited" });
  });

  test("is forgotten when the policy no longer waits", () => {
    const { priority, now } = prioritiesAfterWalk(100);
    priority.setPolicyDeadlines(new Map([[99, now + 40]]));
    priority.setPolicyDeadlines(new Map());
    expect(reads(priority, { from: now, count: 90, round: 100 }).every(({ cause }) => cause === null)).toBe(true);
  });

  test("is read once if its record changed abruptly", () => {
    const { priority, now } = prioritiesAfterWalk(100);
    changed(priority, [70], now);
    const picks = reads(priority, { from: now, count: 60, round: 100 });
    expect(picks[0]).toEqual({ slot: 70, cause: "changed" });
    expect(picks.filter(({ slot }) => slot === 70)).toHaveLength(1);
  });

  test("is read several times per round near a threshold, until the threshold is removed", () => {
    const { priority, now } = prioritiesAfterWalk(100);
    priority.recordRead(50, usage(0.88), now);
    const readsOf = (from: number) => {
      const slots: (string | null)[] = [];
      for (let at = from; at < from + 100; at++) {
        const pick = priority.takeNext(at, 100)!;
        priority.recordRead(pick.slot, usage(pick.slot === 50 ? 0.88 : 0.5), at);
        if (pick.slot === 50) slots.push(pick.cause);
      }
      return slots;
    };
    expect(readsOf(now)).toEqual(["rising", "near", "near", "near"]);
    priority.setThresholds([]);
    expect(readsOf(now + 100)).toEqual([null]);
    priority.setThresholds([{ usage: "diskUsage", value: 0.9, side: "above" }]);
    expect(readsOf(now + 200).length).toBeGreaterThan(2);
    priority.forgetUsage();
    expect(readsOf(now + 300).length).toBeLessThan(5);
  });

  test("is tried again after a failed read, but not constantly", () => {
    const { priority, now } = prioritiesAfterWalk(200);
    let tries = 0;
    for (let at = now; at < now + 200; at++) {
      priority.setPolicyDeadlines(new Map([[199, now]]));
      const { slot } = priority.takeNext(at, 200)!;
      if (slot === 199) tries++;
      else priority.recordRead(slot, usage(0.5), at);
    }
    expect(tries).toBeGreaterThan(4);
    expect(tries).toBeLessThanOrEqual(9);
  });

  test("has the earlier of two deadlines, whichever was set first", () => {
    const { priority, now } = prioritiesAfterWalk(100);
    changed(priority, [70], now);
    priority.setPolicyDeadlines(
      new Map([
        [70, now + 40],
        [80, now + 40],
      ]),
    );
    changed(priority, [80], now);
    const picks = reads(priority, { from: now, count: 10, round: 100 }).filter(({ cause }) => cause !== null);
    expect(picks).toEqual([
      { slot: 70, cause: "changed" },
      { slot: 80, cause: "changed" },
    ]);
  });

  test("is read immediately even if five hundred nodes have another cause", () => {
    const manyChanged = prioritiesAfterWalk(1_000);
    changed(manyChanged.priority, range(0, 500), manyChanged.now);
    manyChanged.priority.setPolicyDeadlines(new Map([[900, manyChanged.now + 10]]));
    const manyAwaited = prioritiesAfterWalk(1_000);
    manyAwaited.priority.setPolicyDeadlines(new Map(range(0, 500).map((slot) => [slot, manyAwaited.now])));
    changed(manyAwaited.priority, [900], manyAwaited.now + 10);
    for (const { priority, now } of [manyChanged, manyAwaited]) {
      const picks = reads(priority, { from: now, count: 20, round: 1_000 });
      expect(picks.slice(0, 10).filter(({ cause }) => cause !== null)).toHaveLength(5);
      expect(picks.slice(10, 14).map(({ slot }) => slot)).toContain(900);
    }
  });
});

describe("with many suspects", () => {
  test("at least every second read is routine, and five of six in the long run", () => {
    const { priority, now } = prioritiesAfterWalk(300);
    const causes = range(now, now + 1_200).map((at) => {
      priority.setPolicyDeadlines(new Map(range(0, 300).map((slot) => [slot, at])));
      return reads(priority, { from: at, count: 1, round: 300 })[0]!.cause;
    });
    expect(causes.some((cause, index) => cause !== null && causes[index + 1] != null)).toBe(false);
    const suspects = causes.filter((cause) => cause !== null).length;
    // A twentieth of the nodes was saved up before.
    expect(suspects).toBeLessThanOrEqual(1_200 / 6 + 15 + 1);
    expect(suspects).toBeGreaterThan(1_200 / 6);
  });

  test("no readable node waits for more than readsBetweenMax reads, regardless of changes to the fleet", () => {
    const NODES = 40;
    const slot = fc.nat(NODES - 1);
    const event = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          kind: fc.constantFrom("take", "take_and_fail"),
          slot,
          level: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
      },
      { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom("change", "wait"), slot, level: fc.constant(0) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("leave", "join"), slot, level: fc.constant(0) }) },
    );
    let suspects = 0;
    fc.assert(
      fc.property(fc.array(event, { minLength: 100, maxLength: 600 }), (events) => {
        const { priority, now } = prioritiesAfterWalk(NODES);
        /** Number of reads of other nodes and of joined nodes since the node's own read, by slot. */
        const waits = new Map(range(0, NODES).map((each) => [each, { reads: 0, joined: 0 }]));
        let versions = 0;
        let longest = Number.NEGATIVE_INFINITY;
        for (const [step, { kind, slot, level }] of events.entries()) {
          const at = now + step / 2;
          if (kind === "leave" && waits.delete(slot)) priority.removeNode(slot);
          else if (kind === "join" && !waits.has(slot)) {
            priority.addNode(slot);
            for (const wait of waits.values()) wait.joined++;
            waits.set(slot, { reads: 0, joined: 0 });
          } else if (kind === "change") {
            versions++;
            priority.recordListed(slot, listRecord({ version: String(versions) } satisfies Partial<NodeRecord>), at);
          } else if (kind === "wait") priority.setPolicyDeadlines(new Map(range(0, slot).map((each) => [each, at])));
          else if (kind.startsWith("take")) {
            const pick = priority.takeNext(at, NODES);
            if (pick === null) continue;
            if (pick.cause !== null) suspects++;
            if (kind === "take") priority.recordRead(pick.slot, usage(level), at);
            else priority.recordFailure(pick.slot);
            for (const [other, wait] of waits) {
              if (other !== pick.slot) wait.reads++;
              longest = Math.max(longest, wait.reads - readsBetweenMax(NODES + wait.joined));
            }
            // One that failed is left out of turns.
            waits.set(pick.slot, { reads: kind === "take" ? 0 : Number.NEGATIVE_INFINITY, joined: 0 });
          }
        }
        expect(longest).toBeLessThanOrEqual(0);
      }),
    );
    expect(suspects).toBeGreaterThan(500);
  });
});

test("is deterministic", () => {
  const choices = () => {
    const { priority, now } = prioritiesAfterWalk(50);
    changed(priority, [3, 30, 17], now);
    priority.setPolicyDeadlines(new Map([[9, now + 5]]));
    return reads(priority, { from: now, count: 200, round: 50 });
  };
  expect(choices()).toEqual(choices());
});

test("forgetUsage removes the suspects of usages", () => {
  const { priority, now } = prioritiesAfterWalk(30);
  priority.setThresholds([{ usage: "diskUsage", value: 0.9, side: "above" }]);
  priority.recordRead(5, usage(0.89), now);
  expect(priority.suspectAt()).toBeLessThan(now + 30);
  priority.forgetUsage();
  expect(priority.suspectAt()).toBe(Number.POSITIVE_INFINITY);
  // New deadlines of policies do not bring them back either.
  priority.setPolicyDeadlines(new Map([[5, now]]));
  priority.setPolicyDeadlines(new Map());
  expect(priority.suspectAt()).toBe(Number.POSITIVE_INFINITY);
});

test("readsBetweenMax adds a fifth for suspects, and the saved suspect reads", () => {
  expect(readsBetweenMax(100)).toBeCloseTo(120 + 8 + 2);
  expect(readsBetweenMax(1_000)).toBeCloseTo(1_200 + 50 + 2);
});
