import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { onePerRegion, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { nodesActedOn } from "../../harness/remediation-results.ts";

const config = remediationConfig([rebootOffline({ forMs: MINUTE_MS })], {
  maxActions: { amount: 2, perMs: HOUR_MS },
  canary: false,
});

test("with a new journal max_actions counts as used up evenly over the last hour, so losing the journal does not refill it", async () => {
  const network = await startQuietNetwork({ config, isNewJournal: true });
  const [first, second, third] = onePerRegion(network, 3);
  for (const node of [first!, second!, third!]) network.failNode(node);
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([]);
  const { blockers } = network.explain(first!).policies[0]!;
  expect(blockers).toMatchObject([
    {
      reason: "max_actions",
      detail: expect.stringMatching(/^2 actions within 1h; the limit is 2; .* 2 of them assumed/),
    },
  ]);
  await network.advance(15 * MINUTE_MS);
  expect(nodesActedOn(network)).toHaveLength(1);
  // After a restart the same hour continues.
  await network.restart({ isNewJournal: true });
  await network.advance(12 * MINUTE_MS);
  expect(nodesActedOn(network)).toHaveLength(1);
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toHaveLength(2);
});

test("a limit over a day warms up within an hour", async () => {
  const safety = { maxActions: { amount: 1, perMs: 24 * HOUR_MS } };
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ forMs: MINUTE_MS })], safety),
    isNewJournal: true,
  });
  await network.advance(50 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("a dry run does not wait for a new journal", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ mode: "dry_run", forMs: MINUTE_MS })]),
    isNewJournal: true,
    store: createMemoryStateStore(),
  });
  await network.advance(8 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ dryRun: true }]);
});
