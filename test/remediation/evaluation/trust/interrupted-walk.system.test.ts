import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import { listsOnlySettings, startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";
import { nodesActedOn, trustReasons } from "../../../harness/remediation-results.ts";

test("a page that shows the node online resets its pending timer, although the walk of that page fails", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: 150_000 })]),
    // The second page, which fails, has 10 of 60 nodes. With more nodes missing the data would be untrusted.
    settings: { ...listsOnlySettings, pageLimit: 50 },
  });
  const node = network.nodes().find((id) => network.status(id) === "online")!;
  const timer = () => network.explain(node).policies[0]!.timer;
  // The next two walks show the node offline, and the third one shows it online.
  const recoverAt = network.daemon.clock.now() + 2 * MINUTE_MS;
  network.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt });
  await network.advanceUntil(() => (timer()?.trueMs ?? 0) >= MINUTE_MS - SECOND_MS);
  network.setFault({ kind: "reset" }, "/v1/nodes?page=2");
  await network.advanceUntil(() => !network.daemon.snapshots.last!.fleet.lastWalk!.complete);
  expect(network.status(node)).toBe("online");
  expect(timer()).toBeNull();
  network.setFault(null);
  network.failNode(node, "operator");
  await network.advance(2 * MINUTE_MS);
  expect(timer()).toMatchObject({ state: "pending" });
  expect(nodesActedOn(network)).toEqual([]);
  await network.advance(3 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("a page that can't be read holds actions until the next complete walk, and its nodes can't be accepted as missing", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    settings: { ...listsOnlySettings, pageLimit: 20 },
  });
  network.setFault({ kind: "reset" }, "/v1/nodes?page=2");
  await network.advance(MINUTE_MS);
  expect(network.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ complete: false, seenNodes: 40 });
  expect(trustReasons(network)).toEqual(["inventory_incomplete"]);
  expect(await network.commands().acceptInventory()).toMatchObject({
    error: { kind: "conflict", message: expect.stringContaining("not every page of the node list could be read") },
  });
  network.setFault(null);
  await network.advance(MINUTE_MS);
  expect(trustReasons(network)).toEqual([]);
});

test("a page that stays unreadable holds no actions if safety.trust.max_missing allows its nodes to be missing", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    settings: { ...listsOnlySettings, pageLimit: 50, maxMissing: 0.2 },
  });
  network.setFault({ kind: "reset" }, "/v1/nodes?page=2");
  const [node] = network.daemon.snapshots.last!.fleet.ids;
  network.failNode(node!);
  await network.advance(30 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("walks that are complete although a page stays unreadable count as successful, and the failure is shown", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([]),
    settings: { ...listsOnlySettings, pageLimit: 50, maxMissing: 0.2 },
  });
  network.setFault({ kind: "reset" }, "/v1/nodes?page=2");
  await network.advance(10 * MINUTE_MS);
  const { collectorManager, clock, metrics } = network.daemon;
  const { complete, failure, lastSuccessAt } = collectorManager.collectorHealth().nodes;
  expect({ complete, failure }).toMatchObject({ complete: true, failure: { kind: "reset" } });
  expect(lastSuccessAt).toBeGreaterThan(clock.now() - 2 * MINUTE_MS);
  expect(await metrics.render("text")).toContain(
    `proxywarden_collect_last_success_timestamp_seconds{collector="nodes"} ${lastSuccessAt! / SECOND_MS}\n`,
  );
});

test("a page that stays unreadable keeps no node that is gone, and every node that is not, if max_missing allows for it", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([]),
    settings: { ...listsOnlySettings, pageLimit: 50, maxMissing: 0.2 },
  });
  const { ids } = network.daemon.snapshots.last!.fleet;
  const [unreadable, offline, ...gone] = ids.slice(-5);
  const broken = ["/v1/nodes?page=2", `/v1/nodes/${unreadable}`];
  network.setFaults(broken.map((match) => ({ fault: { kind: "reset" }, match })));
  network.failNode(offline!, "operator");
  for (const id of gone) network.interventions.leaveFleet(id, Number.POSITIVE_INFINITY);
  const listed = () => network.daemon.snapshots.last!.fleet.ids.filter((id) => id !== "");
  await network.advance(30 * MINUTE_MS);
  expect(listed()).toEqual(ids.slice(0, -3));
  await network.advance(26 * HOUR_MS);
  expect(listed()).toEqual(ids.slice(0, -3));
});
