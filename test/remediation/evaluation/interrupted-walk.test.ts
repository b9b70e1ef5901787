import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { nodesActedOn } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { listsOnlySettings, startQuietNetwork } from "../../harness/quiet-network.ts";

test("a page that shows the node online resets its pending timer, although the walk of that page fails", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ forMs: 150_000 })]),
    // The second page, which fails, has 10 of 60 nodes. With more nodes missing the data would be untrusted.
    settings: { ...listsOnlySettings, pageLimit: 50 },
  });
  const node = context.nodes().find((id) => context.status(id) === "online")!;
  const timer = () => context.controller().view.explain(node).policies[0]!.timer;
  // The next two walks show it offline, and the third one online.
  const recoverAt = context.daemon.clock.now() + 2 * MINUTE_MS;
  context.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt });
  await context.advanceUntil(() => (timer()?.trueMs ?? 0) >= MINUTE_MS - SECOND_MS);
  context.setFault({ kind: "reset" }, "/v1/nodes?page=2");
  await context.advanceUntil(() => !context.daemon.snapshots.last!.fleet.lastWalk!.complete);
  expect(context.status(node)).toBe("online");
  expect(timer()).toBeNull();
  context.setFault(null);
  context.failedNodes(node, "person");
  await context.advance(2 * MINUTE_MS);
  expect(timer()).toMatchObject({ state: "pending" });
  expect(nodesActedOn(context)).toEqual([]);
  await context.advance(3 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});
