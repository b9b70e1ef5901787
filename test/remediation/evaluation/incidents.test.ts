import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { holdReasonsOf, nodesActedOn, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

const scenario = { nodes: 300 };
const REGION = "us-east";
/** As many nodes as make an incident, of a region that has many more. */
const five = (context: QuietNetwork): readonly string[] => context.nodes(REGION).slice(0, 5);

/** A policy whose condition holds for no node. */
const idle = rebootOffline({ name: "idle", when: 'node.status == "maintenance"' });

/** Five nodes of one region go offline, ten minutes apart. */
async function failSeparately(context: QuietNetwork): Promise<void> {
  for (const node of five(context)) {
    context.failedNodes(node);
    await context.advance(10 * MINUTE_MS);
  }
}

async function expectHealed(context: QuietNetwork): Promise<void> {
  await context.advance(3 * HOUR_MS);
  expect(nodesActedOn(context).toSorted()).toEqual([...five(context)].toSorted());
  expect(notificationLines(context, "incident")).toEqual([]);
  expect(holdReasonsOf(context)).not.toContain("correlated");
  await context.stop();
}

test("nodes that were unhealthy at the first look are no incident", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]), scenario, warmUpMs: 0 });
  for (const node of five(context)) context.failedNodes(node);
  await expectHealed(context);
});

test("nodes that are unhealthy when a condition is edited are no incident", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([{ ...idle, name: "reboot-offline" }]), scenario });
  await failSeparately(context);
  await context.reload({ rules: remediationRules([rebootOffline()]) });
  await expectHealed(context);
});

test("nodes that are unhealthy when a policy is added are no incident", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([idle]), scenario });
  await failSeparately(context);
  await context.restart({ rules: remediationRules([idle, rebootOffline()]) });
  await expectHealed(context);
});

test("nodes that are unhealthy when trust returns are no incident", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ forMs: HOUR_MS })]), scenario });
  await failSeparately(context);
  context.setFault({ kind: "empty_list" });
  await context.advance(10 * MINUTE_MS);
  context.setFault(null);
  await expectHealed(context);
});

test("nodes whose details are read for the first time are no incident", async () => {
  const when = 'node.status == "offline" && node.cpu_usage >= 0.0';
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ when })]),
    scenario,
    settings: {},
  });
  await context.restart();
  for (const node of five(context)) context.failedNodes(node);
  await context.advance(40 * MINUTE_MS);
  expect(notificationLines(context, "incident")).toEqual([]);
  await context.stop();
});

/** A region goes dark as one, and all but five of its nodes come back after an hour. */
async function outage(context: QuietNetwork): Promise<void> {
  const healAt = context.daemon.clock.now() + HOUR_MS;
  for (const node of context.nodes(REGION).slice(5))
    context.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  for (const node of five(context)) context.failedNodes(node);
}

/** Neither a storm nor the breaker. */
const withoutFailures = {
  maxUnhealthy: { share: 1 },
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
} as const;

test("an incident ends half an hour after most of its nodes came back, and the others are healed", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], withoutFailures), scenario });
  await outage(context);
  await context.advance(85 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(five(context)[0]!)).toEqual(["correlated"]);
  expect(notificationLines(context, "incident")).toMatchObject([{ region: REGION, endsAt: null }]);
  await context.advance(2 * HOUR_MS + 30 * MINUTE_MS);
  expect(nodesActedOn(context).toSorted()).toEqual([...five(context)].toSorted());
  expect(notificationLines(context, "incident")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await context.stop();
});

test("an incident whose nodes stay unhealthy ends six hours after the last of them failed, also over a kill", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], withoutFailures),
    scenario: { nodes: 60 },
  });
  for (const node of five(context)) context.failedNodes(node);
  await context.advance(3 * HOUR_MS);
  context.kill();
  await context.restart();
  await context.advance(2 * HOUR_MS + 50 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(five(context)[0]!)).toEqual(["correlated"]);
  const explained = context.controller().view.explain(five(context)[0]!);
  expect(explained.policies[0]!.blockers[0]!.detail).toMatch(/it ends 30m after .* and no later than 2026-03-01T06:0\d/);
  await context.advance(2 * HOUR_MS + 30 * MINUTE_MS);
  expect(nodesActedOn(context).toSorted()).toEqual([...five(context)].toSorted());
  await context.stop();
});

test("onsets before and after a kill make one incident", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ forMs: 10 * MINUTE_MS })]),
    scenario,
  });
  for (const node of five(context).slice(0, 3)) context.failedNodes(node);
  await context.advance(90_000);
  context.kill();
  await context.restart({ downMs: 1_000 });
  await context.advance(75_000);
  for (const node of five(context).slice(3)) context.failedNodes(node);
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(notificationLines(context, "incident")).toMatchObject([{ region: REGION }]);
  await context.stop();
});

test("an incident that a dry run saw holds its nodes when the policy comes to enforce", async () => {
  const rules = (mode: "dry_run" | "enforce") => remediationRules([rebootOffline({ mode })], withoutFailures);
  const context = await startQuietNetwork({ rules: rules("dry_run"), scenario });
  for (const node of five(context)) context.failedNodes(node);
  await context.advance(HOUR_MS);
  await context.reload({ rules: rules("enforce") });
  await context.advance(HOUR_MS);
  expect(context.holdReasons(five(context)[0]!)).toEqual(["correlated"]);
  expect(context.postCount()).toBe(0);
  await context.stop();
});

test("an outage of fleet data doesn't end an incident", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ forMs: 15 * MINUTE_MS })], withoutFailures),
    scenario,
  });
  for (const node of five(context)) context.failedNodes(node);
  await context.advance(5 * MINUTE_MS);
  context.setFault({ kind: "empty_list" });
  await context.advance(45 * MINUTE_MS);
  context.setFault(null);
  await context.advance(HOUR_MS);
  expect(context.holdReasons(five(context)[0]!)).toEqual(["correlated"]);
  expect(context.postCount()).toBe(0);
  await context.stop();
});
