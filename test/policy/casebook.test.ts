import { expect, test } from "vitest";
import type { NodeHold } from "../../src/model/episode.ts";
import { createCasebook } from "../../src/policy/casebook.ts";

const hold = (node: string, until: number | null): NodeHold => {
  return { node, policy: null, kind: "ownership", at: 1, until, reason: "it was rebooted by another" };
};

test("pruning forgets the holds that ended before, and keeps those that last", () => {
  const contents = {
    timers: [],
    episodes: [],
    actions: [],
    holds: [hold("node_1", 9)],
    facts: new Map(),
    lastNumber: 0,
  };
  const casebook = createCasebook(contents);
  const lasting = [hold("node_2", 10), hold("node_3", null)];
  casebook.apply(lasting.map((row) => ({ kind: "hold", row })));
  casebook.prune(10);
  expect(casebook.allHolds()).toEqual(lasting);
});
