import { expect, test } from "vitest";
import { runAtOnce } from "../../../src/base/steps.ts";
import type { NodeHold } from "../../../src/model/remediation/episode.ts";
import { RemediationRecords } from "../../../src/policy/remediation-records.ts";
import type { LastDecision } from "../../../src/remediation/evaluation/action-planner.ts";
import { heldNodeCountOf, heldNodesOf } from "../../../src/remediation/status/node-status.ts";

const NODES = 3_000;
const POLICY = "reboot-offline";
const id = (index: number) => `node_${index}`;

/** When the timer of a node fired; several fired at the same time. */
const firedAt = (index: number) => 1_000 * ((index * 7_919) % 1_000);

const timers = Array.from({ length: NODES }, (_, index) => ({
  policy: POLICY,
  node: id(index),
  state: "firing" as const,
  since: firedAt(index),
  trueMs: 0,
  clearMs: 0,
}));
const holds = Array.from({ length: 20 }, (_, index): NodeHold => {
  return { node: id(NODES + index), policy: null, kind: "held", reason: "a repair", at: 50_000 * index, until: null };
});
const empty = { episodes: [], actions: [], facts: new Map(), lastNumber: 0 };
const lastDecisions = timers.map(
  ({ node }): LastDecision => ({ policy: POLICY, node, dryRun: false, text: "enforce hold storm", reasons: ["storm"] }),
);

/** Returns a context with what held nodes are read from. */
const contextWith = (held: readonly NodeHold[]) =>
  ({
    remediationState: { records: new RemediationRecords({ ...empty, timers, holds: held }), now: () => 2_000_000 },
    policies: { find: () => null },
    observed: {
      nameOf: (node: string) => node,
      ipAddressOf: () => "",
      locationOf: () => ({ country: "", region: "" }),
    },
  }) as unknown as Parameters<typeof heldNodesOf>[0];

const context = contextWith(holds);

test("a limited list of held nodes begins as the whole list does", () => {
  const all = runAtOnce(heldNodesOf(context, lastDecisions, {}));
  expect(all).toHaveLength(NODES + holds.length);
  expect(all.map(({ policy, heldMs }) => [policy === null, heldMs])).toEqual(
    [...timers.map(({ since }) => [false, 2_000_000 - since]), ...holds.map(({ at }) => [true, 2_000_000 - at])].sort(
      ([isOperators, one], [isOther, other]) => Number(isOperators) - Number(isOther) || Number(other) - Number(one),
    ),
  );
  for (const limit of [1, 2, 3, 100, 1_000, NODES, NODES + 5, 2 * NODES])
    expect(runAtOnce(heldNodesOf(context, lastDecisions, { limit }))).toEqual(all.slice(0, limit));
});

test("the nodes of a mass event are listed and counted in many steps", () => {
  expect(runAtOnce(heldNodeCountOf(context, lastDecisions))).toBe(NODES + holds.length);
  expect([...heldNodeCountOf(context, lastDecisions)].length).toBeGreaterThan(10);
  expect([...heldNodesOf(context, lastDecisions, { limit: 10 })].length).toBeGreaterThan(10);
});

test("a held node has the latest end of the holds that apply to its policy, and none if one of them has none", () => {
  const base = { at: 0, reason: "" };
  const ownershipUntil = (until: number) => ({ ...base, until });
  const several: NodeHold[] = [
    { ...base, node: id(1), policy: null, kind: "held", until: null },
    { ...base, node: id(1), policy: POLICY, kind: "vetoed", until: 3_000_000 },
    { ...base, node: id(2), policy: null, kind: "held", until: 5_000_000 },
    { ...base, node: id(2), policy: POLICY, kind: "vetoed", until: 3_000_000 },
    { ...base, node: id(3), policy: "another", kind: "vetoed", until: 3_000_000 },
    { ...base, node: id(4), policy: null, kind: "held", until: 3_000_000, ownership: ownershipUntil(4_000_000) },
    { ...base, node: id(NODES), policy: null, kind: "held", until: 1_000_000, ownership: ownershipUntil(4_000_000) },
    {
      ...base,
      node: id(NODES + 1),
      policy: null,
      kind: "held",
      until: 3_000_000,
      ownership: ownershipUntil(4_000_000),
    },
    { ...base, node: id(NODES + 2), policy: POLICY, kind: "vetoed", until: 3_000_000 },
  ];
  const endsOf = (node: string) =>
    runAtOnce(heldNodesOf(contextWith(several), lastDecisions, { node })).map(({ until }) => until);
  expect([1, 2, 3, 4].map((index) => endsOf(id(index)))).toEqual([[null], [5_000_000], [null], [4_000_000]]);
  expect([0, 1, 2].map((index) => endsOf(id(NODES + index)))).toEqual([[4_000_000], [4_000_000], [3_000_000]]);
});

test("a node that an operator holds and on which others acted has both reasons, as far as they are in force", () => {
  const base = { at: 0, reason: "", node: id(NODES), policy: null, kind: "held" } as const;
  const reasonsOf = (until: number, ownershipUntil: number) => {
    const hold: NodeHold = { ...base, until, ownership: { at: 0, reason: "", until: ownershipUntil } };
    return runAtOnce(heldNodesOf(contextWith([hold]), [], {})).map(({ reasons }) => reasons);
  };
  expect([reasonsOf(3_000_000, 4_000_000), reasonsOf(3_000_000, 1_000_000), reasonsOf(1_000_000, 4_000_000)]).toEqual([
    [["held", "ownership"]],
    [["held"]],
    [["ownership"]],
  ]);
});
