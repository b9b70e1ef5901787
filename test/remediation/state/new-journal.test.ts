import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite.ts";
import { nodesActedOn } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { onePerRegion, startQuietNetwork } from "../../harness/quiet-network.ts";

const rules = remediationRules([rebootOffline({ forMs: MINUTE_MS })], {
  maxActions: { amount: 2, perMs: HOUR_MS },
  canary: false,
});

test("a new state folder takes the hour before for used up evenly: max_actions is not refilled by losing the journal", async () => {
  const context = await startQuietNetwork({ rules, isNewJournal: true });
  const [first, second, third] = onePerRegion(context, 3);
  for (const node of [first!, second!, third!]) context.failedNodes(node);
  await context.advance(20 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([]);
  const { blockers } = context.controller().view.explain(first!).policies[0]!;
  expect(blockers).toMatchObject([
    {
      reason: "max_actions",
      detail: expect.stringMatching(/^2 actions within 1h; the limit is 2; .* 2 of them are assumed/),
    },
  ]);
  await context.advance(15 * MINUTE_MS);
  expect(nodesActedOn(context)).toHaveLength(1);
  // A restart goes on with the same hour.
  await context.restart({ isNewJournal: true });
  await context.advance(12 * MINUTE_MS);
  expect(nodesActedOn(context)).toHaveLength(1);
  await context.advance(20 * MINUTE_MS);
  expect(nodesActedOn(context)).toHaveLength(2);
  await context.stop();
});

test("a limit over a day warms up within an hour", async () => {
  const safety = { maxActions: { amount: 1, perMs: 24 * HOUR_MS } };
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ forMs: MINUTE_MS })], safety),
    isNewJournal: true,
  });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(50 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("a dry run does not wait for a new journal", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ mode: "dry_run", forMs: MINUTE_MS })]),
    isNewJournal: true,
    store: createMemoryStateStore(),
  });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(8 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ shadow: true }]);
  await context.stop();
});
