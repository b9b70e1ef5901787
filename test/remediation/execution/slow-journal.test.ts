import { expect, test } from "vitest";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { startQuietNetwork } from "../../harness/quiet-network.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";

/** A network whose journal takes some time to write that an action is being sent. */
async function startWithSlowPosting(delayMs: DurationMs) {
  const clock = createVirtualClock(START_MS);
  const store = createMemoryStateStore();
  const slow = { postings: 0 };
  const journal: typeof store.journal = {
    ...store.journal,
    async commit(changes) {
      const isPosting = changes.some((change) => change.kind === "action" && change.row.state === "posting");
      if (isPosting) {
        slow.postings++;
        await clock.sleep(delayMs);
      }
      await store.journal.commit(changes);
    },
  };
  const config = remediationConfig([rebootOffline()]);
  const network = await startQuietNetwork({ config, clock, store: { ...store, journal } });
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => slow.postings === 1);
  return network;
}

test("a POST follows a slow journal, and collectors continue in the meantime", async () => {
  const network = await startWithSlowPosting(20 * SECOND_MS);
  expect([network.postCount(), network.actions()[0]!.state]).toEqual([0, "intended"]);
  await network.advance(MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("a stop while `posting` is journaled prevents the POST, and the action is withdrawn", async () => {
  const network = await startWithSlowPosting(5 * SECOND_MS);
  await network.stop();
  expect(network.postCount()).toBe(0);
  expect(network.actions()).toMatchObject([{ state: "withdrawn", detail: "the daemon stopped before it was sent" }]);
});

test("an action whose node was read before a slow commit is not sent on old data", async () => {
  const network = await startWithSlowPosting(40 * SECOND_MS);
  await network.advance(45 * SECOND_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()[0]).toMatchObject({
    state: "ended",
    detail: "the node was read too long ago",
    sentAt: null,
  });
});
