import { expect, test } from "vitest";
import type { NodeHold } from "../../src/model/remediation/episode.ts";
import { RemediationRecords } from "../../src/policy/remediation-records.ts";

const hold = (node: string, until: number | null): NodeHold => {
  return { node, policy: null, kind: "ownership", at: 1, until, reason: "it was rebooted by another" };
};

test("pruning drops holds that ended before the given time and keeps the others", () => {
  const contents = {
    timers: [],
    episodes: [],
    actions: [],
    holds: [hold("node_1", 9)],
    facts: new Map(),
    lastNumber: 0,
  };
  const records = new RemediationRecords(contents);
  const lasting = [hold("node_2", 10), hold("node_3", null)];
  records.apply(lasting.map((row) => ({ kind: "hold", row })));
  records.prune(10);
  expect(records.allHolds()).toEqual(lasting);
});
