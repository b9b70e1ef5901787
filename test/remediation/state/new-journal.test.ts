import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createMemoryStore } from "../../../src/journal/sqlite.ts";
import { touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf } from "../../harness/policies.ts";
import { oneOfEach, startWard } from "../../harness/quiet-network.ts";

const rules = rulesOf([rebootOffline({ forMs: MINUTE_MS })], {
  maxActions: { amount: 2, perMs: HOUR_MS },
  canary: false,
});

test("a new state folder takes the hour before for used up evenly: max_actions is not refilled by losing the journal", async () => {
  const ward = await startWard({ rules, isNewJournal: true });
  const [first, second, third] = oneOfEach(ward, 3);
  for (const node of [first!, second!, third!]) ward.fell(node);
  await ward.pass(20 * MINUTE_MS);
  expect(touched(ward)).toEqual([]);
  const { blockers } = ward.warden().view.explain(first!).policies[0]!;
  expect(blockers).toMatchObject([
    {
      reason: "max_actions",
      detail: expect.stringMatching(/^2 actions within 1h, of 2 at most; .* 2 of them are assumed/),
    },
  ]);
  await ward.pass(15 * MINUTE_MS);
  expect(touched(ward)).toHaveLength(1);
  // A restart goes on with the same hour.
  await ward.restart({ isNewJournal: true });
  await ward.pass(12 * MINUTE_MS);
  expect(touched(ward)).toHaveLength(1);
  await ward.pass(20 * MINUTE_MS);
  expect(touched(ward)).toHaveLength(2);
  await ward.stop();
});

test("a limit over a day warms up within an hour", async () => {
  const safety = { maxActions: { amount: 1, perMs: 24 * HOUR_MS } };
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: MINUTE_MS })], safety), isNewJournal: true });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(50 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("a dry run does not wait for a new journal", async () => {
  const ward = await startWard({
    rules: rulesOf([rebootOffline({ mode: "dry_run", forMs: MINUTE_MS })]),
    isNewJournal: true,
    store: createMemoryStore(),
  });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(8 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ shadow: true }]);
  await ward.stop();
});
