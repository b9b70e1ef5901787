import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  addOnsets,
  findIncident,
  INCIDENT_MS_MAX,
  type Incident,
  mergeIncident,
  nodesToContinue,
  type Onset,
  recentOnsets,
  updateIncidents,
} from "../../../src/policy/guards/correlated-failure.ts";
import { incidentNodesMin } from "../../../src/policy/guards/safety-limits.ts";
import { defaultSafety } from "../../harness/policies.ts";
import { propertyRuns } from "../../harness/run-length.ts";

const PROPERTY_RUNS = propertyRuns(2_000);
const WITHIN_MS = 5;
const COOLDOWN_MS = 30;

const onset = (node: string, at: number, domain = "r"): Onset => ({ policy: "p", node, domain, at });

/** Different nodes, one for each instant. */
const onsetsAt = (...instants: number[]): Onset[] => instants.map((each, index) => onset(`node_${index}`, each));

const incidentsAfter = (onsets: readonly Onset[], size = 3, before: readonly Incident[] = []) =>
  addOnsets(before, onsets, WITHIN_MS, () => size);

const incident = (overrides: Partial<Omit<Incident, "nodes">> = {}, ...nodes: string[]): Incident => ({
  domain: "r",
  from: 100,
  to: 102,
  until: null,
  ...overrides,
  nodes: new Set(nodes),
});

describe("nodes of one region or country that fail together", () => {
  test("are one incident if safety.correlated is reached", () => {
    expect(incidentsAfter(onsetsAt(100, 103, 105))).toEqual([incident({ to: 105 }, "node_0", "node_1", "node_2")]);
    expect(incidentsAfter(onsetsAt(100, 103, 106))).toEqual([]);
    expect(incidentsAfter(onsetsAt(100, 105))).toEqual([]);
  });

  test("count once each, even under several policies", () => {
    const onsets = [...onsetsAt(100, 101), onset("node_0", 102), onset("node_1", 103)];
    expect(incidentsAfter(onsets)).toEqual([]);
    expect(incidentsAfter([...onsets, onset("node_2", 105)])).toMatchObject([{ from: 100, to: 105 }]);
  });

  test("are an incident from the smaller of nodes and percent on, but at least two", () => {
    const sizeOf = (nodes: number, share: number, ofDomain: number) =>
      incidentNodesMin({ ...defaultSafety, correlated: { by: "region", nodes, share, withinMs: WITHIN_MS } }, ofDomain);
    expect(sizeOf(5, 0.5, 4)).toBe(2);
    expect(sizeOf(5, 0.5, 6)).toBe(3);
    expect(sizeOf(5, 0, 100)).toBe(2);
    expect(sizeOf(2, 0.01, 1)).toBe(2);
    expect(sizeOf(50, 0.29, 100)).toBe(29);
    expect(sizeOf(5, 0.5, 138)).toBe(5);
  });

  test("in two regions are two incidents, or none if neither has enough", () => {
    const both = (count: number) => [
      ...onsetsAt(100, 101, 102).slice(0, count),
      ...["x", "y", "z"].map((node) => onset(node, 101, "s")),
    ];
    expect(incidentsAfter(both(3)).map(({ domain }) => domain)).toEqual(["r", "s"]);
    expect(incidentsAfter(both(2)).map(({ domain }) => domain)).toEqual(["s"]);
  });

  test("are found exactly where an exhaustive search finds them", () => {
    const onsets = fc.array(
      fc
        .record({ node: fc.constantFrom("a", "b", "c", "d", "e"), at: fc.nat({ max: 60 }) })
        .map((each) => onset(each.node, each.at)),
      { maxLength: 25, size: "max" },
    );
    fc.assert(
      fc.property(onsets, fc.integer({ min: 2, max: 5 }), (all, size) => {
        const found = incidentsAfter(all, size).map(({ from, to }) => ({ from, to }));
        expect(found).toEqual(referenceClusters(all, size));
      }),
      PROPERTY_RUNS,
    );
  });

  test("are remembered while another node could complete an incident", () => {
    const onsets = onsetsAt(100, 103, 105);
    expect(recentOnsets(onsets, 105, WITHIN_MS)).toBe(onsets);
    expect(recentOnsets(onsets, 106, WITHIN_MS)).toEqual(onsets.slice(1));
  });
});

/** Checks every window that begins with an onset, and merges overlapping ones with enough nodes. */
function referenceClusters(onsets: readonly Onset[], size: number) {
  const windows = [...new Set(onsets.map((each) => each.at))]
    .sort((a, b) => a - b)
    .map((from) => onsets.filter((each) => each.at >= from && each.at <= from + WITHIN_MS))
    .map((inside) => ({
      from: Math.min(...inside.map((each) => each.at)),
      to: Math.max(...inside.map((each) => each.at)),
      nodes: new Set(inside.map(({ node }) => node)).size,
    }))
    .filter(({ nodes }) => nodes >= size)
    .map(({ from, to }) => ({ from, to }));
  const joined: typeof windows = [];
  for (const window of windows) {
    const last = joined.at(-1);
    if (last === undefined || window.from > last.to) joined.push({ ...window });
    else last.to = Math.max(last.to, window.to);
  }
  return joined;
}

describe("an incident over time", () => {
  test("grows with nodes that fail during it or soon after, and lasts longer only with enough of them", () => {
    const first = incidentsAfter(onsetsAt(100, 101, 102));
    const stray = incidentsAfter([onset("late", 107)], 3, first);
    expect(stray).toEqual([incident({}, "node_0", "node_1", "node_2", "late")]);
    expect(incidentsAfter([onset("later", 108)], 3, stray)).toEqual(stray);
    const more = [onset("node_2", 102), onset("x", 104), onset("y", 106)];
    expect(incidentsAfter(more, 3, first)).toEqual([incident({ to: 106 }, "node_0", "node_1", "node_2", "x", "y")]);
  });

  test("that continues in two clusters is one incident and becomes active again", () => {
    const long = incident({ to: 140, until: 200 }, "old");
    const onsets = onsetsAt(100, 101, 102, 138, 139, 141);
    expect(incidentsAfter(onsets, 3, [long])).toMatchObject([{ from: 100, to: 141, until: null }]);
  });

  test("is limited to its region, and a later one is separate", () => {
    const others = [incident({ domain: "s", from: 90, to: 110 }, "a"), incident({ from: 10, to: 12 }, "b")];
    const now = incidentsAfter(onsetsAt(100, 101, 102), 3, others);
    expect(now).toEqual([...others, incident({}, "node_0", "node_1", "node_2")]);
  });

  test("is merged with another one that it overlaps", () => {
    const more = incident({ from: 101, to: 110 }, "b");
    expect(mergeIncident([incident({ until: 130 }, "a")], more)).toEqual([incident({ to: 110 }, "a", "b")]);
  });

  const tenNodes = incident({}, ..."abcdefghij");
  const as = (bad: string, now: number, before = tenNodes, size = 5) =>
    updateIncidents(
      [before],
      (node) => bad.includes(node),
      now,
      COOLDOWN_MS,
      () => size,
    );

  test("lasts while enough of its nodes are unhealthy, at least half of them, and then cools down", () => {
    expect(as("abcde", 500)).toEqual([tenNodes]);
    expect(as("abcd", 500)).toEqual([{ ...tenNodes, until: 530 }]);
    expect(as("abcd", 500, tenNodes, 2)).toEqual([{ ...tenNodes, until: 530 }]);
    const cooling = { ...tenNodes, until: 530 };
    expect(as("abcd", 529, cooling)).toEqual([cooling]);
    expect(as("abcde", 529, cooling)).toEqual([tenNodes]);
    expect(as("abcd", 530, cooling)).toEqual([]);
    expect(nodesToContinue(incident({}, ...Array.from({ length: 138 }, (_, index) => `n${index}`)), 5)).toBe(69);
  });

  test("cools down no longer than a cooldown that is shortened in the meantime", () => {
    const cooling = { ...tenNodes, until: 500 + 2 * COOLDOWN_MS };
    expect(as("abcd", 500, cooling)).toEqual([{ ...tenNodes, until: 500 + COOLDOWN_MS }]);
  });

  test("ends six hours after its last onset, even if nodes are still unhealthy", () => {
    const end = 102 + INCIDENT_MS_MAX;
    expect(as("abcdefghij", end - 1)).toEqual([tenNodes]);
    expect(as("abcdefghij", end)).toEqual([]);
  });
});

test("a node belongs to the incident that it failed in", () => {
  const all = [incident({}, "a", "b"), incident({ domain: "s" }, "c")];
  expect(["a", "c", "d"].map((node) => findIncident(all, node))).toEqual([all[0], all[1], null]);
});
