import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { compileExpression } from "../../../src/policy/cel/expression.ts";
import { courses, heldBy, told, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf } from "../../harness/policies.ts";
import { oneOfEach, startWard } from "../../harness/quiet-network.ts";

/** No breaker, no incident: what is left to hold is what a test is about. */
const storms = {
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
} as const;

test("pain 1: a signal that calls the whole fleet unhealthy touches nobody, and is told once (karpenter#2811)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ when: "node.uptime_hours >= 0" })], storms) });
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(heldBy(ward)).toContain("storm");
  expect(told(ward, "storm")).toHaveLength(1);
  await ward.stop();
});

test("pain 1: when a storm is over nobody stampedes: first a cool-down, then one node at a time (karpenter PR#3192)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], storms) });
  const ill = ward.nodes().slice(0, 18);
  const healAt = ward.daemon.clock.now() + 30 * MINUTE_MS;
  for (const node of ill) ward.people.fallIll(node, { ailment: "outage", cure: "time", healAt });
  const stubborn = oneOfEach(ward, 4);
  for (const node of stubborn) ward.fell(node);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(stubborn[0]!)).toEqual(["storm"]);
  await ward.pass(25 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(stubborn[0]!)).toEqual(["storm_cooldown"]);
  expect(told(ward, "storm")).toMatchObject([{ endsAt: null }]);
  await ward.pass(20 * MINUTE_MS);
  expect(told(ward, "storm")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  const sent = ward.actions().filter(({ sentAt }) => sentAt !== null);
  expect(sent.length).toBeGreaterThan(1);
  // Each one was verified before the next was sent.
  for (const [index, { sentAt }] of sent.slice(1).entries()) {
    expect(sentAt!).toBeGreaterThan(sent[index]!.endedAt!);
  }
  await ward.pass(30 * MINUTE_MS);
  expect(touched(ward).toSorted()).toEqual([...stubborn].toSorted());
  await ward.stop();
});

test("pain 2: while half of the inventory is missing nobody is touched, though a node fires (Reddit, 2016-08-11)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(3 * MINUTE_MS);
  ward.strike({ kind: "vanished", share: 0.5 });
  await ward.pass(2 * HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(
    ward
      .warden()
      .view.status()
      .trust.map(({ reason }) => reason),
  ).toContain("inventory_shrunk");
  expect(told(ward, "untrusted")).toMatchObject([{ endsAt: null }]);
  // Seen whole again, the node has to be ill for all of `for` once more, and the cool-down has to pass.
  ward.strike(null);
  await ward.pass(25 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(node!)).toContain("sight_cooldown");
  await ward.pass(10 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  expect(told(ward, "untrusted")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await ward.stop();
});

test("pain 3: an empty list is not a fleet of nodes that are gone: everything holds (Google's Diskerase, draino#29)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { maxActions: { amount: 0, perMs: HOUR_MS } }) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  expect(courses(ward)).toEqual(["firing"]);
  ward.strike({ kind: "empty_list" });
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(courses(ward)).toEqual(["firing"]);
  await ward.stop();
});

test("pain 3: an empty selector is an error, not every node (Joyent, 2014)", () => {
  expect(compileExpression("")).toMatchObject({ ok: false });
  expect(compileExpression("  ")).toMatchObject({ ok: false });
  expect(compileExpression('node.country in [""]')).toMatchObject({ ok: false });
});

test("pain 5: a service that fails to answer makes no node unhealthy (kured#976)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ when: 'node.status != "online"' })]) });
  ward.strike({ kind: "status", status: 500 }, "GET /v1/nodes");
  await ward.pass(HOUR_MS);
  ward.strike({ kind: "html" }, "GET /v1/nodes");
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.episodes()).toEqual([]);
  expect(
    ward
      .warden()
      .view.status()
      .trust.map(({ reason }) => reason),
  ).toContain("inventory_incomplete");
  await ward.stop();
});

test("pain 5: records that can't be read make their nodes unknown, never unhealthy (kured#976)", async () => {
  const trust = {
    minInventory: 0.8,
    maxMissing: 0.02,
    maxUnknown: 1,
    maxFreshestLastSeenMs: 5 * MINUTE_MS,
    warmupWalks: 2,
  };
  const ward = await startWard({
    rules: rulesOf([rebootOffline({ when: 'node.status != "online" || node.uptime_hours < 0' })], { trust }),
  });
  ward.strike({ kind: "bad_records", share: 0.3 }, "GET /v1/nodes?");
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.episodes()).toEqual([]);
  await ward.stop();
});

test("pain 11: a region that goes dark is one incident, told once, and none of its nodes is touched (kubernetes#131314)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "region_dark", region: "ap-southeast" });
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(ward.nodes("ap-southeast")[0]!)).toEqual(["correlated"]);
  // Nobody is told of each of its nodes beside that.
  expect(ward.notices).toMatchObject([{ kind: "incident", region: "ap-southeast", endsAt: null }]);
  // It is back: the incident is over after its cool-down, and nothing is left to do.
  ward.strike(null);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(told(ward, "incident")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await ward.stop();
});

test("pain 11: a node elsewhere is healed while a region is dark (karpenter#3193)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "region_dark", region: "ap-southeast" });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(20 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});
