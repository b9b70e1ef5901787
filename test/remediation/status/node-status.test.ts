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
const records = new RemediationRecords({
  timers,
  holds,
  episodes: [],
  actions: [],
  facts: new Map(),
  lastNumber: 0,
});
const lastDecisions = timers.map(
  ({ node }): LastDecision => ({ policy: POLICY, node, dryRun: false, text: "enforce hold storm", reasons: ["storm"] }),
);

/** A context with what held nodes are read from. */
const context = {
  remediationState: { records, now: () => 2_000_000 },
  policies: { find: () => null },
  observed: { nameOf: (node: string) => node, ipAddressOf: () => "", locationOf: () => ({ country: "", region: "" }) },
} as unknown as Parameters<typeof heldNodesOf>[0];

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
