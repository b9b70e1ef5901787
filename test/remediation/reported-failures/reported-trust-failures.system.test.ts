import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { compileExpression } from "../../../src/policy/cel/expression.ts";
import { onePerRegion, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { defaultSafety, rebootOffline, remediationConfig } from "../../harness/policies.ts";
import {
  episodeStates,
  holdReasonsOf,
  nodesActedOn,
  notificationsOf,
  trustReasons,
} from "../../harness/remediation-results.ts";

// Wrong data on which similar projects acted, by the issue or report of each.

/** Limits without circuit breaker and incidents. */
const storms = {
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
} as const;

test("a signal that reports the whole fleet as unhealthy holds every node, and is notified once (karpenter#2811)", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ when: "node.uptime_hours >= 0" })], storms),
  });
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(holdReasonsOf(network)).toContain("storm");
  expect(notificationsOf(network, "storm")).toHaveLength(1);
});

test("after a storm a cooldown follows, and then one node at a time (karpenter PR#3192)", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], storms) });
  const unhealthy = network.nodes().slice(0, 18);
  const healAt = network.daemon.clock.now() + 30 * MINUTE_MS;
  for (const node of unhealthy)
    network.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  const stubborn = onePerRegion(network, 4);
  for (const node of stubborn) network.failNode(node);
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(stubborn[0]!)).toEqual(["storm"]);
  await network.advance(25 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(stubborn[0]!)).toEqual(["storm_cooldown"]);
  expect(notificationsOf(network, "storm")).toMatchObject([{ endsAt: null }]);
  await network.advance(20 * MINUTE_MS);
  expect(notificationsOf(network, "storm")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  const sent = network.actions().filter(({ sentAt }) => sentAt !== null);
  expect(sent.length).toBeGreaterThan(1);
  // Each action was verified before the next was sent.
  for (const [index, { sentAt }] of sent.slice(1).entries()) {
    expect(sentAt!).toBeGreaterThan(sent[index]!.endedAt!);
  }
  await network.advance(30 * MINUTE_MS);
  expect(nodesActedOn(network).toSorted()).toEqual([...stubborn].toSorted());
});

test("while half of the inventory is missing no node is acted on, even if it fires (Reddit, 2016-08-11)", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  await network.advance(3 * MINUTE_MS);
  network.setFault({ kind: "vanished", missing: 0.5 });
  await network.advance(2 * HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(trustReasons(network)).toContain("inventory_shrunk");
  expect(notificationsOf(network, "untrusted")).toMatchObject([{ endsAt: null }]);
  // Once the inventory is complete, the whole of `for` and the cooldown have to pass again.
  network.setFault(null);
  await network.advance(25 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node)).toContain("sight_cooldown");
  await network.advance(10 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
  expect(notificationsOf(network, "untrusted")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
});

test("an empty list does not mean that all nodes are gone: every action is held (Google's Diskerase, draino#29)", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()], { maxActions: { amount: 0, perMs: HOUR_MS } }),
  });
  await network.advance(10 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["firing"]);
  network.setFault({ kind: "empty_list" });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(episodeStates(network)).toEqual(["firing"]);
});

test("an empty selector is an error, not every node (Joyent, 2014)", () => {
  expect(compileExpression("")).toMatchObject({ ok: false });
  expect(compileExpression("  ")).toMatchObject({ ok: false });
  expect(compileExpression('node.country in [""]')).toMatchObject({ ok: false });
});

test("a service that fails to answer makes no node unhealthy (kured#976)", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ when: 'node.status != "online"' })]),
  });
  network.setFault({ kind: "status", status: 500 }, "GET /v1/nodes");
  await network.advance(HOUR_MS);
  network.setFault({ kind: "html" }, "GET /v1/nodes");
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.episodes()).toEqual([]);
  expect(trustReasons(network)).toContain("inventory_incomplete");
});

test("records that can't be read make their nodes unknown, never unhealthy (kured#976)", async () => {
  const trust = { ...defaultSafety.trust, maxUnknown: 1 };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ when: 'node.status != "online" || node.uptime_hours < 0' })], { trust }),
  });
  network.setFault({ kind: "bad_records", spoiled: 0.3 }, "GET /v1/nodes?");
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.episodes()).toEqual([]);
});

test("a region that goes offline is one incident, notified once, and none of its nodes is acted on (kubernetes#131314)", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "region_dark", region: "ap-southeast" });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(network.nodes("ap-southeast")[0]!)).toEqual(["correlated"]);
  // Its nodes are not notified separately.
  expect(network.notifications).toMatchObject([{ kind: "incident", region: "ap-southeast", endsAt: null }]);
  // The region is back: the incident ends after its cooldown, and nothing is left to do.
  network.setFault(null);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(notificationsOf(network, "incident")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
});

test("a node elsewhere is healed while a region is offline (karpenter#3193)", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "region_dark", region: "ap-southeast" });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});
