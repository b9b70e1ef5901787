import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { compileExpression } from "../../../src/policy/cel/expression.ts";
import { episodeLines, holdReasonsOf, nodesActedOn, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { onePerRegion, startQuietNetwork } from "../../harness/quiet-network.ts";

/** No breaker, no incident: what is left to hold is what a test is about. */
const storms = {
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
} as const;

test("a signal that calls the whole fleet unhealthy holds every node, and is reported once (karpenter#2811)", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ when: "node.uptime_hours >= 0" })], storms),
  });
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(holdReasonsOf(context)).toContain("storm");
  expect(notificationLines(context, "storm")).toHaveLength(1);
  await context.stop();
});

test("when a storm is over a cool-down comes first, then one node at a time (karpenter PR#3192)", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], storms) });
  const unhealthy = context.nodes().slice(0, 18);
  const healAt = context.daemon.clock.now() + 30 * MINUTE_MS;
  for (const node of unhealthy)
    context.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  const stubborn = onePerRegion(context, 4);
  for (const node of stubborn) context.failedNodes(node);
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(stubborn[0]!)).toEqual(["storm"]);
  await context.advance(25 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(stubborn[0]!)).toEqual(["storm_cooldown"]);
  expect(notificationLines(context, "storm")).toMatchObject([{ endsAt: null }]);
  await context.advance(20 * MINUTE_MS);
  expect(notificationLines(context, "storm")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  const sent = context.actions().filter(({ sentAt }) => sentAt !== null);
  expect(sent.length).toBeGreaterThan(1);
  // Each one was verified before the next was sent.
  for (const [index, { sentAt }] of sent.slice(1).entries()) {
    expect(sentAt!).toBeGreaterThan(sent[index]!.endedAt!);
  }
  await context.advance(30 * MINUTE_MS);
  expect(nodesActedOn(context).toSorted()).toEqual([...stubborn].toSorted());
  await context.stop();
});

test("while half of the inventory is missing no node is acted on, though a node fires (Reddit, 2016-08-11)", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(3 * MINUTE_MS);
  context.setFault({ kind: "vanished", share: 0.5 });
  await context.advance(2 * HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(
    context
      .controller()
      .view.status()
      .trust.map(({ reason }) => reason),
  ).toContain("inventory_shrunk");
  expect(notificationLines(context, "untrusted")).toMatchObject([{ endsAt: null }]);
  // Seen whole again, the node has to be ill for all of `for` once more, and the cool-down has to pass.
  context.setFault(null);
  await context.advance(25 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(node!)).toContain("sight_cooldown");
  await context.advance(10 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  expect(notificationLines(context, "untrusted")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await context.stop();
});

test("an empty list is not a fleet of nodes that are gone: everything holds (Google's Diskerase, draino#29)", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { maxActions: { amount: 0, perMs: HOUR_MS } }),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["firing"]);
  context.setFault({ kind: "empty_list" });
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(episodeLines(context)).toEqual(["firing"]);
  await context.stop();
});

test("an empty selector is an error, not every node (Joyent, 2014)", () => {
  expect(compileExpression("")).toMatchObject({ ok: false });
  expect(compileExpression("  ")).toMatchObject({ ok: false });
  expect(compileExpression('node.country in [""]')).toMatchObject({ ok: false });
});

test("a service that fails to answer makes no node unhealthy (kured#976)", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ when: 'node.status != "online"' })]),
  });
  context.setFault({ kind: "status", status: 500 }, "GET /v1/nodes");
  await context.advance(HOUR_MS);
  context.setFault({ kind: "html" }, "GET /v1/nodes");
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(context.episodes()).toEqual([]);
  expect(
    context
      .controller()
      .view.status()
      .trust.map(({ reason }) => reason),
  ).toContain("inventory_incomplete");
  await context.stop();
});

test("records that can't be read make their nodes unknown, never unhealthy (kured#976)", async () => {
  const trust = {
    minInventory: 0.8,
    maxMissing: 0.02,
    maxUnknown: 1,
    maxFreshestLastSeenMs: 5 * MINUTE_MS,
    warmupWalks: 2,
  };
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ when: 'node.status != "online" || node.uptime_hours < 0' })], { trust }),
  });
  context.setFault({ kind: "bad_records", share: 0.3 }, "GET /v1/nodes?");
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(context.episodes()).toEqual([]);
  await context.stop();
});

test("a region that goes dark is one incident, reported once, and none of its nodes is acted on (kubernetes#131314)", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "region_dark", region: "ap-southeast" });
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(context.nodes("ap-southeast")[0]!)).toEqual(["correlated"]);
  // Nobody is told of each of its nodes beside that.
  expect(context.notices).toMatchObject([{ kind: "incident", region: "ap-southeast", endsAt: null }]);
  // It is back: the incident is over after its cool-down, and nothing is left to do.
  context.setFault(null);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(notificationLines(context, "incident")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await context.stop();
});

test("a node elsewhere is healed while a region is dark (karpenter#3193)", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "region_dark", region: "ap-southeast" });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(20 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});
