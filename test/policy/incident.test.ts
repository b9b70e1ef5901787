import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Safety } from "../../src/model/safety.ts";
import { type BadNodes, type Incident, incidentOf, incidentsNow, type Onset } from "../../src/policy/alarm.ts";
import { usualSafety } from "../engine/rules.ts";

const RUNS = { numRuns: 2_000 };
const WITHIN = 5;
const COOLDOWN = 30;

const safetyOf = (nodes: number, share = 1): Safety => ({
  ...usualSafety,
  stormCooldownMs: COOLDOWN,
  correlated: { by: "region", nodes, share, withinMs: WITHIN },
});

/** Nodes of one place that went bad, each at some instants. */
const badOf = (onsets: readonly Onset[], placeNodes = 100, place = "r"): BadNodes => ({
  onsets: new Map([[place, onsets]]),
  nodes: new Map([[place, placeNodes]]),
});

/** Different nodes, one for each instant. */
const at = (...instants: number[]): Onset[] => instants.map((each, index) => ({ node: `node_${index}`, at: each }));

const seen = (onsets: readonly Onset[], safety = safetyOf(3), placeNodes = 100) =>
  incidentsNow([], badOf(onsets, placeNodes), safety, { now: 1_000, withinMs: WITHIN });

describe("nodes of one place that go bad together", () => {
  test("are one incident where they are as many as safety says, within its time", () => {
    expect(seen(at(100, 103, 105))).toEqual([{ place: "r", from: 100, to: 105, nodes: 3, until: 1_030 }]);
    expect(seen(at(100, 103, 106))).toEqual([]);
    expect(seen(at(100, 105))).toEqual([]);
  });

  test("are counted once each, whatever number of policies says so", () => {
    const onsets = [...at(100, 101), { node: "node_0", at: 102 }, { node: "node_1", at: 103 }];
    expect(seen(onsets)).toEqual([]);
    expect(seen([...onsets, { node: "node_2", at: 105 }])).toMatchObject([{ from: 100, to: 105, nodes: 3 }]);
  });

  test("need not be the first that a policy says of them: an old ailment hides no new one", () => {
    const old = at(1, 21, 41);
    const dark = old.map(({ node }) => ({ node, at: 100 }));
    expect(seen([...old, ...dark])).toMatchObject([{ from: 100, to: 100, nodes: 3 }]);
  });

  test("are as many as the smaller of number and share, and two at least", () => {
    expect(seen(at(100, 100), safetyOf(5, 0.5), 4)).toHaveLength(1);
    expect(seen(at(100, 100), safetyOf(5, 0.5), 6)).toEqual([]);
    expect(seen(at(100, 100), safetyOf(5, 0), 100)).toHaveLength(1);
    expect(seen(at(100), safetyOf(2, 0.01), 1)).toEqual([]);
    expect(seen(at(...Array<number>(28).fill(100)), safetyOf(50, 0.29), 100)).toEqual([]);
    expect(seen(at(...Array<number>(29).fill(100)), safetyOf(50, 0.29), 100)).toHaveLength(1);
  });

  test("of two places are two incidents, and none where neither place has enough", () => {
    const both = (count: number): BadNodes => ({
      onsets: new Map([
        ["r", at(100, 101, 102).slice(0, count)],
        ["s", at(100, 101, 102)],
      ]),
      nodes: new Map([
        ["r", 100],
        ["s", 100],
      ]),
    });
    const now = { now: 1_000, withinMs: WITHIN };
    expect(incidentsNow([], both(3), safetyOf(3), now).map(({ place }) => place)).toEqual(["r", "s"]);
    expect(incidentsNow([], both(2), safetyOf(3), now).map(({ place }) => place)).toEqual(["s"]);
  });

  test("are found exactly where a look at every instant finds them", () => {
    const onsets = fc.array(fc.record({ node: fc.constantFrom("a", "b", "c", "d", "e"), at: fc.nat({ max: 60 }) }), {
      maxLength: 25,
      size: "max",
    });
    fc.assert(
      fc.property(onsets, fc.integer({ min: 2, max: 5 }), (all, size) => {
        const found = seen(all, safetyOf(size)).map(({ from, to, nodes }) => ({ from, to, nodes }));
        expect(found).toEqual(plainClusters(all, size));
      }),
      RUNS,
    );
  });
});

/** Every window that begins with an onset is looked at; those with enough nodes are joined where they overlap. */
function plainClusters(onsets: readonly Onset[], size: number) {
  const windows = [...new Set(onsets.map((each) => each.at))]
    .sort((a, b) => a - b)
    .map((from) => onsets.filter((each) => each.at >= from && each.at <= from + WITHIN))
    .map((inside) => ({
      from: Math.min(...inside.map((each) => each.at)),
      to: Math.max(...inside.map((each) => each.at)),
      nodes: new Set(inside.map(({ node }) => node)).size,
    }))
    .filter(({ nodes }) => nodes >= size);
  const joined: typeof windows = [];
  for (const window of windows) {
    const last = joined.at(-1);
    if (last === undefined || window.from > last.to) joined.push({ ...window });
    else {
      last.to = Math.max(last.to, window.to);
      last.nodes = Math.max(last.nodes, window.nodes);
    }
  }
  return joined;
}

describe("an incident over time", () => {
  const step = (before: readonly Incident[], onsets: readonly Onset[], now: number) =>
    incidentsNow(before, badOf(onsets), safetyOf(3), { now, withinMs: WITHIN });

  test("lasts while it is seen, and cools down after", () => {
    const first = step([], at(100, 101, 102), 103);
    const second = step(first, at(100, 101, 102), 120);
    expect(second).toEqual([{ place: "r", from: 100, to: 102, nodes: 3, until: 150 }]);
    const cooling = step(second, at(100, 101), 149);
    expect(cooling).toEqual(second);
    expect(step(cooling, at(100, 101), 150)).toEqual([]);
  });

  test("grows with the nodes that join it, and keeps those that left", () => {
    const first = step([], at(100, 101, 102), 103);
    const grown = step(first, at(101, 102, 104, 105, 106), 107);
    expect(grown).toEqual([{ place: "r", from: 100, to: 106, nodes: 5, until: 137 }]);
    expect(step(grown, at(104, 105, 106), 108)).toEqual([{ place: "r", from: 100, to: 106, nodes: 5, until: 138 }]);
  });

  test("that continues in two clusters is one", () => {
    const long: Incident = { place: "r", from: 100, to: 140, nodes: 9, until: 200 };
    expect(step([long], at(100, 101, 102, 138, 139, 140), 150)).toEqual([{ ...long, until: 180 }]);
  });

  test("is no other place's, and a later one is another", () => {
    const elsewhere: Incident = { place: "s", from: 90, to: 110, nodes: 9, until: 500 };
    const earlier: Incident = { place: "r", from: 10, to: 12, nodes: 3, until: 500 };
    const now = step([elsewhere, earlier], at(100, 101, 102), 103);
    expect(now).toEqual([{ place: "r", from: 100, to: 102, nodes: 3, until: 133 }, elsewhere, earlier]);
  });

  test("is never forgotten before its time, and every node that was in it stays in it", () => {
    const looks = fc.array(
      fc.record({
        step: fc.nat({ max: 20 }),
        onsets: fc.array(fc.record({ node: fc.constantFrom("a", "b", "c", "d"), at: fc.nat({ max: 80 }) }), {
          maxLength: 12,
        }),
      }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(looks, (all) => {
        let incidents: readonly Incident[] = [];
        let now = 100;
        for (const { step: passed, onsets } of all) {
          now += passed;
          const before = incidents;
          incidents = step(before, onsets, now);
          for (const { from, to, until, nodes } of before.filter((each) => each.until > now)) {
            const kept = incidents.find((each) => each.from <= from && each.to >= to);
            expect(kept).toBeDefined();
            expect(kept!.nodes).toBeGreaterThanOrEqual(nodes);
            expect(kept!.until).toBeGreaterThanOrEqual(Math.min(until, now + COOLDOWN));
          }
          for (const one of incidents) {
            expect(one.until).toBeGreaterThan(now);
            const others = incidents.filter((each) => each !== one && each.from <= one.to && one.from <= each.to);
            expect(others).toEqual([]);
          }
        }
      }),
      RUNS,
    );
  });
});

test("a node is of the incident of its place within whose time it went bad", () => {
  const first: Incident = { place: "r", from: 100, to: 110, nodes: 3, until: 500 };
  const other: Incident = { ...first, place: "s", from: 0, to: 1_000 };
  const of = (since: number, place = "r") => incidentOf([other, first], place, since, WITHIN);
  expect([94, 95, 100, 110, 115, 116].map((since) => of(since))).toEqual([null, first, first, first, first, null]);
  expect(of(100, "t")).toBeNull();
  expect(of(100, "s")).toBe(other);
});
