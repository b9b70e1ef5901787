import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { episodeLines, holdReasonsOf, nodesActedOn, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps, withoutLimits } from "../../harness/policies.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

const failAllNodes = (context: QuietNetwork, nodes: readonly string[]) => {
  for (const node of nodes) context.failedNodes(node, "person");
};

test("max_in_flight: no more are sent than may be unverified at once", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { ...withoutLimits, maxInFlight: 3 }),
  });
  const unhealthy = onePerRegion(context, 6);
  failAllNodes(context, unhealthy);
  await context.advance(10 * MINUTE_MS);
  expect(context.postCount()).toBe(3);
  expect(context.controller().view.status().inFlight).toBe(3);
  expect(context.holdReasons(unhealthy[5]!)).toEqual(["in_flight"]);
  await context.stop();
});

/** A policy that quarantines some nodes that are online. */
const quarantineOnline = (nodes: readonly string[]) =>
  rebootOffline({
    match: `node.id in ${JSON.stringify(nodes)}`,
    when: 'node.status == "online"',
    steps: [steps.quarantine],
  });

test("max_disrupted counts nodes that are in a quarantine of ours, for as long as it lasts", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([]) });
  const four = onePerRegion(context, 4);
  await context.reload({
    rules: remediationRules([quarantineOnline(four)], { ...withoutLimits, maxDisrupted: { share: 1, amount: 2 } }),
  });
  await context.advance(HOUR_MS);
  expect(episodeLines(context).toSorted()).toEqual(["firing", "firing", "quarantined", "quarantined"]);
  expect(holdReasonsOf(context)).toEqual(["disrupted"]);
  await context.stop();
});

test("a node that was offline before we quarantined it is not disrupted: a curable node of its region is healed", async () => {
  const rule = rebootOffline({ steps: [steps.reboot, { ...steps.quarantine, durationMs: 24 * HOUR_MS }] });
  const context = await startQuietNetwork({ rules: remediationRules([rule]) });
  const [dead, curable] = context.nodes("us-east");
  context.failedNodes(dead!, "person");
  await context.advance(HOUR_MS);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  context.failedNodes(curable!);
  const before = context.daemon.clock.monotonic();
  await context.advanceUntil(() => context.status(curable!) === "rebooting");
  expect(context.daemon.clock.monotonic() - before).toBeLessThan(15 * MINUTE_MS);
  await context.advance(30 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["quarantined", "healed"]);
  await context.stop();
});

test("max_disrupted_per: of one region only so many are under our hand", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([]) });
  const nodes = [...context.nodes("us-east").slice(0, 3), context.nodes("eu-west")[0]!];
  const limits = { ...withoutLimits, maxDisruptedPer: { region: 2, country: null } };
  await context.reload({ rules: remediationRules([quarantineOnline(nodes)], limits) });
  await context.advance(10 * MINUTE_MS);
  expect(context.postCount()).toBe(3);
  expect(nodesActedOn(context)).toContain(nodes[3]);
  expect(holdReasonsOf(context)).toEqual(["disrupted_domain"]);
  await context.stop();
});

test("min_online: an online node is not taken out where too few would stay, though several are decided on at once", async () => {
  // Of three nodes two are to stay; our records of the first are still those of an online node as the second's turn comes.
  const pair = 'node.name in ["mad-0014", "mad-0063"]';
  const scenario = { nodes: 120 };
  const policy = rebootOffline({ match: pair, when: "node.uptime_hours >= 0", steps: [steps.quarantine] });
  const rules = remediationRules([policy], { ...withoutLimits, minOnlinePer: { region: 2, country: null } });
  const context = await startQuietNetwork({ rules, scenario });
  await context.advance(20 * MINUTE_MS);
  expect(context.nodes("eu-south").map(context.status).toSorted()).toEqual(["online", "online", "quarantined"]);
  expect(holdReasonsOf(context)).toEqual(["min_online"]);
  await context.stop();
});

test("min_online is about capacity: a node that is offline takes none away", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { ...withoutLimits, minOnlinePer: { region: 3, country: null } }),
  });
  const [node] = context.nodes("eu-south");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("max_actions counts over a restart: a crash loop does not refill it", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { ...withoutLimits, maxActions: { amount: 2, perMs: HOUR_MS } }),
  });
  const unhealthy = onePerRegion(context, 4);
  failAllNodes(context, unhealthy);
  await context.advance(8 * MINUTE_MS);
  for (let crash = 0; crash < 3; crash++) {
    context.kill();
    await context.restart();
    await context.advance(8 * MINUTE_MS);
  }
  expect(context.postCount()).toBe(2);
  expect(context.holdReasons(unhealthy[3]!)).toEqual(["max_actions"]);
  await context.stop();
});

test("cooldown: between two episodes of one node some time passes, whichever policies they are of, also over a restart", async () => {
  const policies = [
    rebootOffline(),
    rebootOffline({
      name: "other",
      when: 'node.status == "offline" && node.uptime_hours < 1000000',
      forMs: 10 * MINUTE_MS,
    }),
  ];
  const context = await startQuietNetwork({ rules: remediationRules(policies, { cooldownMs: 2 * HOUR_MS }) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(30 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  context.failedNodes(node!);
  await context.restart();
  await context.advance(HOUR_MS);
  expect(context.holdReasons(node!)).toEqual(["cooldown"]);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.advance(HOUR_MS);
  expect(episodeLines(context)).toHaveLength(2);
  expect(context.postCount()).toBe(2);
  await context.stop();
});

test("two policies on one node: the first in order has it, and the other says so", async () => {
  const policies = [
    rebootOffline({ name: "second-to-fire", forMs: 5 * MINUTE_MS }),
    rebootOffline({ name: "also", forMs: 5 * MINUTE_MS }),
  ];
  const context = await startQuietNetwork({ rules: remediationRules(policies) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(30 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([{ policy: "second-to-fire", state: "healed" }]);
  expect(context.decisions().filter(({ policy }) => policy === "also")[0]!.blockers).toMatchObject([
    { reason: "other_episode" },
  ]);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("canary: under a changed policy the first action is verified before a second is sent, also after a restart", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { ...withoutLimits, canary: true }),
  });
  const [first, second, third] = onePerRegion(context, 3);
  for (const node of [first!, second!]) context.failedNodes(node);
  await context.advance(7 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(holdReasonsOf(context)).toEqual(["canary"]);
  await context.advance(20 * MINUTE_MS);
  expect(context.postCount()).toBe(2);
  // It is proven now, and stays so; another text is to be proven anew.
  await context.restart();
  await context.advance(3 * MINUTE_MS);
  expect(context.controller().view.policies()).toMatchObject([{ isProven: true }]);
  await context.restart({
    rules: remediationRules([rebootOffline({ steps: [steps.reboot] })], { ...withoutLimits, canary: true }),
  });
  expect(context.controller().view.policies()).toMatchObject([{ isProven: false }]);
  context.failedNodes(third!);
  await context.advance(20 * MINUTE_MS);
  expect(context.controller().view.policies()).toMatchObject([{ isProven: true }]);
  await context.stop();
});

test("efficacy: a policy that heals too little falls back to dry_run, durably, until its text changes", async () => {
  const efficacy = { window: 3, minSuccess: 0.5 };
  const rules = remediationRules([rebootOffline({ steps: [steps.reboot] })], { ...withoutLimits, efficacy });
  const context = await startQuietNetwork({ rules });
  const unhealthy = onePerRegion(context, 6);
  failAllNodes(context, unhealthy.slice(0, 3));
  await context.advance(20 * MINUTE_MS);
  const real = () => context.actions().filter(({ shadow: dryRun }) => !dryRun);
  expect(real().map(({ outcome }) => outcome)).toEqual(["ineffective", "ineffective", "ineffective"]);
  expect(notificationLines(context, "efficacy")).toHaveLength(1);
  expect(context.controller().view.policies()).toMatchObject([{ mode: "dry_run", hasFallenBack: true }]);
  context.kill();
  await context.restart();
  context.failedNodes(unhealthy[3]!);
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(3);
  expect(context.actions().at(-1)).toMatchObject({ shadow: true, outcome: "dry_run" });
  const changed = rebootOffline({ steps: [steps.reboot], clearForMs: 11 * MINUTE_MS });
  await context.restart({ rules: remediationRules([changed], { ...withoutLimits, efficacy }) });
  await context.advance(20 * MINUTE_MS);
  expect(context.controller().view.policies()).toMatchObject([{ mode: "enforce", hasFallenBack: false }]);
  expect(nodesActedOn(context)).toContain(unhealthy[3]);
  await context.stop();
});

test("efficacy: a policy that heals goes on", async () => {
  const rules = remediationRules([rebootOffline()], { ...withoutLimits, efficacy: { window: 3, minSuccess: 0.5 } });
  const context = await startQuietNetwork({ rules });
  for (const node of onePerRegion(context, 5)) context.failedNodes(node);
  await context.advance(40 * MINUTE_MS);
  expect(new Set(episodeLines(context))).toEqual(new Set(["healed"]));
  expect(context.controller().view.policies()).toMatchObject([{ mode: "enforce", hasFallenBack: false }]);
  await context.stop();
});

test("the breaker opens when too many nodes fire within its time, one by one as well, and is told", async () => {
  const rules = remediationRules([rebootOffline({ steps: [steps.notify] })], {
    ...withoutLimits,
    breaker: { share: 0, amount: 4, withinMs: 2 * HOUR_MS },
  });
  const context = await startQuietNetwork({ rules });
  for (const node of onePerRegion(context, 6)) {
    context.failedNodes(node, "person");
    await context.advance(12 * MINUTE_MS);
  }
  expect(context.controller().view.status().breaker).toMatchObject({ nodes: 5 });
  expect(notificationLines(context, "breaker")).toHaveLength(1);
  expect(context.controller().operatorCommands.resetBreaker()).toMatchObject({ ok: true });
  expect(context.controller().operatorCommands.resetBreaker()).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  await context.stop();
});
