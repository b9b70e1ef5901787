import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { actionLines, episodeLines, holdReasonsOf, nodesActedOn, notificationLines } from "../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../harness/policies.ts";
import { onePerRegion, startQuietNetwork } from "../harness/quiet-network.ts";

test("dry_run records every step and posts nothing", async () => {
  const stepsInOrder = [
    steps.disconnect,
    steps.reboot,
    { ...steps.quarantine, durationMs: 30 * MINUTE_MS },
    steps.notify,
  ];
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ mode: "dry_run", steps: stepsInOrder })]),
  });
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(25 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["disconnect: dry_run", "reboot: dry_run", "quarantine: dry_run"]);
  expect(context.actions().every(({ shadow: dryRun }) => dryRun)).toBe(true);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  await context.advance(40 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(episodeLines(context)).toEqual(["given_up"]);
  // Nobody is told of what did not happen.
  expect(context.notices).toEqual([]);
  const page = await context.daemon.metrics.render("text");
  expect(page).toContain('proxywarden_actions_total{policy="reboot-offline",action="reboot",outcome="dry_run"} 1\n');
  expect(page).toContain(
    'proxywarden_actions_total{policy="reboot-offline",action="reboot",outcome="ineffective"} 0\n',
  );
  await context.stop();
});

test("dry runs have limits of their own: they use nothing of the real ones, and are held as the real ones would be", async () => {
  const policies = [
    rebootOffline({ name: "paper", mode: "dry_run", match: 'node.region != "us-east"' }),
    rebootOffline({ name: "real", match: 'node.region == "us-east"' }),
  ];
  const context = await startQuietNetwork({
    rules: remediationRules(policies, { maxActions: { amount: 1, perMs: HOUR_MS } }),
  });
  const [first, second] = [context.nodes("eu-west")[0]!, context.nodes("us-west")[0]!];
  context.failedNodes(first, "person");
  context.failedNodes(second, "person");
  await context.advance(8 * MINUTE_MS);
  const [real] = context.nodes("us-east");
  context.failedNodes(real!);
  await context.advance(20 * MINUTE_MS);
  expect(context.actions()).toMatchObject([
    { shadow: true, outcome: "dry_run" },
    { shadow: false, node: real, outcome: "verified" },
  ]);
  expect(holdReasonsOf(context)).toContain("max_actions");
  await context.stop();
});

const approving = rebootOffline({ mode: "approve" });

test("approve requests approval once, and acts on exactly what was shown once it is approved", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([approving]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(20 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  const [shown, ...others] = context.controller().view.approvals();
  expect(others).toEqual([]);
  expect(shown).toMatchObject({ node, request: { kind: "reboot", force: false }, state: "awaiting" });
  expect(notificationLines(context, "approval")).toHaveLength(1);
  expect(context.holdReasons(node!)).toEqual(["approval"]);
  expect(context.controller().operatorCommands.approve(shown!.id)).toMatchObject({ ok: true });
  await context.advance(10 * SECOND_MS);
  expect(context.actions()).toMatchObject([
    { id: shown!.id, request: shown!.request, evidence: shown!.evidence, state: "sent" },
  ]);
  await context.advance(20 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  expect(context.controller().operatorCommands.approve(shown!.id)).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  expect(context.controller().operatorCommands.approve("act-999")).toMatchObject({
    ok: false,
    error: { kind: "not_found" },
  });
  await context.stop();
});

test("a request for approval lapses with its evidence", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([approving]) });
  const [node] = context.nodes("us-east");
  const healAt = context.daemon.clock.now() + 15 * MINUTE_MS;
  context.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  await context.advance(10 * MINUTE_MS);
  const [shown] = context.controller().view.approvals();
  await context.advance(7 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ state: "lapsed", detail: "the node is not unhealthy any more" }]);
  expect(context.controller().operatorCommands.approve(shown!.id)).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  await context.advance(20 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["cleared"]);
  expect(context.postCount()).toBe(0);
  await context.stop();
});

test("what was approved and is held meanwhile lapses with its evidence, too", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([approving]) });
  const [node] = context.nodes("us-east");
  const healAt = context.daemon.clock.now() + 15 * MINUTE_MS;
  context.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  await context.advance(10 * MINUTE_MS);
  context.controller().operatorCommands.pause("a test");
  context.controller().operatorCommands.approve(context.controller().view.approvals()[0]!.id);
  await context.advance(7 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ state: "lapsed" }]);
  context.controller().operatorCommands.resume();
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  await context.stop();
});

test("a rejected step is not asked for again in its episode", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([approving]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  const [shown] = context.controller().view.approvals();
  expect(context.controller().operatorCommands.reject(shown!.id, "it is being moved")).toMatchObject({ ok: true });
  await context.advance(30 * MINUTE_MS);
  expect(context.controller().view.approvals()).toEqual([]);
  expect(context.holdReasons(node!)).toEqual(["rejected"]);
  expect(context.actions()).toMatchObject([
    { state: "rejected", detail: expect.stringContaining("it is being moved") },
  ]);
  expect(context.postCount()).toBe(0);
  await context.stop();
});

test("requests for approval and approvals survive a restart", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([approving]) });
  const [first, second] = onePerRegion(context, 2);
  context.failedNodes(first!);
  await context.advance(10 * MINUTE_MS);
  const [shown] = context.controller().view.approvals();
  context.kill();
  await context.restart();
  await context.advance(5 * MINUTE_MS);
  expect(context.controller().view.approvals()).toMatchObject([{ id: shown!.id }]);
  context.controller().operatorCommands.pause("a test");
  context.controller().operatorCommands.approve(shown!.id);
  await context.restart();
  await context.advance(5 * MINUTE_MS);
  context.controller().operatorCommands.resume();
  context.failedNodes(second!);
  await context.advance(4 * MINUTE_MS);
  expect(context.actions().filter(({ sentAt }) => sentAt !== null)).toMatchObject([{ id: shown!.id }]);
  await context.stop();
});

test("an approval says yes to one step alone: the next one is asked for anew", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([approving]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "forced_reboot");
  await context.advance(8 * MINUTE_MS);
  context.controller().operatorCommands.approve(context.controller().view.approvals()[0]!.id);
  await context.advance(20 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(context.controller().view.approvals()).toMatchObject([{ node, request: { kind: "reboot", force: true } }]);
  await context.stop();
});

test("a policy that switches to enforce while a step waits for approval needs it no more", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([approving]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  await context.restart({ rules: remediationRules([rebootOffline()]) });
  await context.advance(20 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ state: "lapsed" }, { outcome: "verified" }]);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});
