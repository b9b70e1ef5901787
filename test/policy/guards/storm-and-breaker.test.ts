import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Breaker,
  CLOSED_BREAKER,
  evaluateStorm,
  recordFirings,
  type Storm,
} from "../../../src/policy/guards/storm-and-breaker.ts";
import { propertyRuns } from "../../harness/run-length.ts";

const PROPERTY_RUNS = propertyRuns(1_000);

describe("a storm", () => {
  const COOLDOWN = 30;
  const over = { unhealthy: 21, nodes: 100, limit: 20 };
  const calm = { unhealthy: 20, nodes: 100, limit: 20 };

  test("begins above the limit, not at it", () => {
    expect(evaluateStorm(null, calm, 100, COOLDOWN)).toBeNull();
    expect(evaluateStorm(null, over, 100, COOLDOWN)).toEqual({ since: 100, until: 130, isActive: true, onset: over });
    expect(evaluateStorm(null, { unhealthy: 1, nodes: 1, limit: 0 }, 100, COOLDOWN)).not.toBeNull();
  });

  test("extends its end while it lasts, and then cools down", () => {
    const first = evaluateStorm(null, over, 100, COOLDOWN);
    const second = evaluateStorm(first, over, 110, COOLDOWN);
    expect(second).toEqual({ since: 100, until: 140, isActive: true, onset: over });
    const cooling = evaluateStorm(second, calm, 120, COOLDOWN);
    expect(cooling).toEqual({ since: 100, until: 140, isActive: false, onset: over });
    expect(evaluateStorm(cooling, calm, 139, COOLDOWN)).toEqual(cooling);
    expect(evaluateStorm(cooling, calm, 140, COOLDOWN)).toBeNull();
  });

  test("that returns during the cooldown is followed by another cooldown", () => {
    const cooling: Storm = { since: 100, until: 140, isActive: false };
    const again = evaluateStorm(cooling, over, 139, COOLDOWN);
    expect(again).toEqual({ since: 100, until: 169, isActive: true });
    expect(evaluateStorm(again, calm, 168, COOLDOWN)).not.toBeNull();
  });

  test("cools down no longer than a cooldown that is shortened in the meantime", () => {
    const cooling: Storm = { since: 100, until: 140, isActive: false };
    expect(evaluateStorm(cooling, calm, 120, 5)).toEqual({ ...cooling, until: 125 });
    expect(evaluateStorm(cooling, calm, 120, 0)).toBeNull();
  });

  test("without a cooldown ends with the first evaluation below the limit", () => {
    expect(evaluateStorm(evaluateStorm(null, over, 100, 0), calm, 101, 0)).toBeNull();
  });

  test("is over only if every evaluation during the last cooldown was below the limit", () => {
    const observations = fc.array(fc.record({ step: fc.nat({ max: 40 }), nodes: fc.integer({ min: 18, max: 23 }) }), {
      maxLength: 40,
      size: "max",
    });
    fc.assert(
      fc.property(observations, (all) => {
        let storm: Storm | null = null;
        let [now, lastBreach] = [0, Number.NEGATIVE_INFINITY];
        for (const { step, nodes } of all) {
          now += step;
          if (nodes > 20) lastBreach = now;
          storm = evaluateStorm(storm, { unhealthy: nodes, nodes: 100, limit: 20 }, now, COOLDOWN);
          expect(storm !== null).toBe(now - lastBreach < COOLDOWN);
          expect(storm?.isActive ?? false).toBe(lastBreach === now && nodes > 20);
        }
      }),
      PROPERTY_RUNS,
    );
  });
});

describe("the breaker", () => {
  const count = (breaker: Breaker, nodes: readonly string[], now: number, limit = 2) =>
    recordFirings(
      breaker,
      nodes.map((node) => ({ node, policy: "p" })),
      { now, withinMs: 60, limit },
    );

  test("opens when more nodes than its limit begin to fire within its period", () => {
    const two = count(count(CLOSED_BREAKER, ["a"], 100), ["b"], 110);
    expect(two).toEqual({
      firings: [
        { node: "a", policy: "p", at: 100 },
        { node: "b", policy: "p", at: 110 },
      ],
      open: null,
    });
    expect(count(two, ["c"], 159)).toEqual({ firings: [], open: { openedAt: 159, nodes: 3, causes: "3 under p" } });
    expect(count(two, ["c"], 160).open).toBeNull();
  });

  test("says under which policies most nodes fired, and how many were lost", () => {
    const firing = (policy: string | null, count: number) =>
      Array.from({ length: count }, (_, index) => ({ node: `${policy}-${index}`, policy }));
    const earlier = { firings: [{ node: "x", at: 90 }], open: null };
    const nodes = [...firing("a", 2), ...firing("b", 9), ...firing(null, 4), ...firing("c", 1)];
    expect(recordFirings(earlier, nodes, { now: 100, withinMs: 60, limit: 16 }).open).toEqual({
      openedAt: 100,
      nodes: 17,
      causes: "9 under b, 4 lost, 2 under a, 2 for other reasons",
    });
  });

  test("counts a flapping node once", () => {
    let breaker = CLOSED_BREAKER;
    for (let now = 0; now < 50; now++) breaker = count(breaker, ["a", "b", "a"], now);
    expect(breaker.open).toBeNull();
    expect(breaker.firings).toEqual([
      { node: "a", policy: "p", at: 49 },
      { node: "b", policy: "p", at: 49 },
    ]);
  });

  test("with a limit of 0 opens at the first node", () => {
    expect(count(CLOSED_BREAKER, ["a"], 1, 0).open).toEqual({ openedAt: 1, nodes: 1, causes: "1 under p" });
    expect(count(CLOSED_BREAKER, [], 1, 0)).toBe(CLOSED_BREAKER);
  });

  test("stays open until it is reset, and then counts from zero", () => {
    const open = count(CLOSED_BREAKER, ["a", "b", "c"], 100);
    expect(open.open).toEqual({ openedAt: 100, nodes: 3, causes: "3 under p" });
    expect(count(open, [], 1e12)).toEqual(open);
    expect(count(open, ["d", "e", "f", "g"], 1e12)).toEqual(open);
    expect(count(CLOSED_BREAKER, ["a", "b"], 101).open).toBeNull();
  });

  test("does not open because of a temporarily lower limit while no node begins to fire", () => {
    const two = count(CLOSED_BREAKER, ["a", "b"], 100);
    const three = count(two, ["c"], 110, 9);
    expect(count(three, [], 120, 1).open).toBeNull();
    expect(count(three, [], 165, 0)).toEqual({ firings: [{ node: "c", policy: "p", at: 110 }], open: null });
  });

  test("is unchanged after serialization", () => {
    const breaker = count(CLOSED_BREAKER, ["a", "b"], 100);
    const loaded = JSON.parse(JSON.stringify(breaker)) as Breaker;
    expect(count(loaded, ["c"], 101)).toEqual(count(breaker, ["c"], 101));
    const open = count(breaker, ["c"], 101);
    expect(JSON.parse(JSON.stringify(open))).toEqual(open);
  });

  test("is open from the first time at which that many different nodes fired within its period", () => {
    const observations = fc.array(
      fc.record({
        step: fc.integer({ min: 1, max: 25 }),
        nodes: fc.array(fc.constantFrom("a", "b", "c", "d", "e"), { maxLength: 3 }),
      }),
      { maxLength: 25, size: "max" },
    );
    fc.assert(
      fc.property(observations, fc.nat({ max: 4 }), (all, limit) => {
        let breaker = CLOSED_BREAKER;
        const fired: { node: string; at: number }[] = [];
        let [now, isOpen] = [0, false];
        for (const { step, nodes } of all) {
          now += step;
          for (const node of nodes) fired.push({ node, at: now });
          const counted = new Set(fired.filter(({ at }) => at > now - 60).map(({ node }) => node));
          isOpen ||= counted.size > limit;
          breaker = count(breaker, nodes, now, limit);
          expect(breaker.open !== null).toBe(isOpen);
        }
      }),
      PROPERTY_RUNS,
    );
  });
});
