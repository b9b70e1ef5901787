import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { onePerRegion, startQuietNetwork, startWithFailedNode } from "../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../harness/policies.ts";
import {
  actionLines,
  episodeStates,
  holdReasonsOf,
  nodesActedOn,
  notificationsOf,
} from "../harness/remediation-results.ts";

test("dry_run records every step and posts nothing", async () => {
  const stepsInOrder = [
    steps.disconnect,
    steps.reboot,
    { ...steps.quarantine, durationMs: 30 * MINUTE_MS },
    steps.notify,
  ];
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ mode: "dry_run", steps: stepsInOrder })]),
    remedy: "operator",
  });
  await network.advance(25 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["disconnect: dry_run", "reboot: dry_run", "quarantine: dry_run"]);
  expect(network.actions().every(({ dryRun }) => dryRun)).toBe(true);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  await network.advance(40 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(episodeStates(network)).toEqual(["given_up"]);
  // A dry run sends no notifications.
  expect(network.notifications).toEqual([]);
  const page = await network.daemon.metrics.render("text");
  expect(page).toContain('proxywarden_actions_total{policy="reboot-offline",action="reboot",outcome="dry_run"} 1\n');
  expect(page).toContain(
    'proxywarden_actions_total{policy="reboot-offline",action="reboot",outcome="ineffective"} 0\n',
  );
});

test("dry runs have their own limits: they don't count against real ones, and are held like real actions", async () => {
  const policies = [
    rebootOffline({ name: "dry-run", mode: "dry_run", match: 'node.region != "us-east"' }),
    rebootOffline({ name: "real", match: 'node.region == "us-east"' }),
  ];
  const network = await startQuietNetwork({
    config: remediationConfig(policies, { maxActions: { amount: 1, perMs: HOUR_MS } }),
  });
  const [first, second] = [network.nodes("eu-west")[0]!, network.nodes("us-west")[0]!];
  network.failNode(first, "operator");
  network.failNode(second, "operator");
  await network.advance(8 * MINUTE_MS);
  const [real] = network.nodes("us-east");
  network.failNode(real!);
  await network.advance(20 * MINUTE_MS);
  expect(network.actions()).toMatchObject([
    { dryRun: true, outcome: "dry_run" },
    { dryRun: false, node: real, outcome: "verified" },
  ]);
  expect(holdReasonsOf(network)).toContain("max_actions");
});

const approving = rebootOffline({ mode: "approve" });

test("approve mode requests approval once, and after the approval sends exactly the action that was shown", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([approving]) });
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  const [shown, ...others] = network.controller().view.approvals();
  expect(others).toEqual([]);
  expect(shown).toMatchObject({ node, request: { kind: "reboot", force: false }, state: "awaiting" });
  const { fleet } = network.daemon.snapshots.last!;
  const name = fleet.name[fleet.ids.indexOf(node)];
  expect(notificationsOf(network, "approval")).toMatchObject([
    { summary: `${shown!.id}: reboot of ${name} (${node}) by reboot-offline waits for approval`, node },
  ]);
  expect(notificationsOf(network, "episode")).toMatchObject([
    { summary: `${name} (${node}) is unhealthy under the policy reboot-offline (${shown!.episode})`, node },
  ]);
  expect(network.holdReasons(node)).toEqual(["approval"]);
  const waiting = async () => /^proxywarden_approvals_waiting (.*)$/m.exec(await network.daemon.metrics.render("text"));
  expect((await waiting())?.[1]).toBe("1");
  expect(await network.commands().approve(shown!.id)).toMatchObject({ ok: true });
  await network.advance(10 * SECOND_MS);
  expect((await waiting())?.[1]).toBe("0");
  expect(network.actions()).toMatchObject([
    { id: shown!.id, request: shown!.request, evidence: shown!.evidence, state: "sent" },
  ]);
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  expect(await network.commands().approve(shown!.id)).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  expect(await network.commands().approve("act-999")).toMatchObject({
    ok: false,
    error: { kind: "not_found" },
  });
});

test("a request for approval lapses when its evidence is gone", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([approving]) });
  const [node] = network.nodes("us-east");
  const healAt = network.daemon.clock.now() + 15 * MINUTE_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  await network.advance(10 * MINUTE_MS);
  const [shown] = network.controller().view.approvals();
  await network.advance(7 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "lapsed", detail: "the node is no longer unhealthy" }]);
  expect(await network.commands().approve(shown!.id)).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["cleared"]);
  expect(network.postCount()).toBe(0);
});

test("an approved action that is held lapses when its evidence is gone", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([approving]) });
  const [node] = network.nodes("us-east");
  const healAt = network.daemon.clock.now() + 15 * MINUTE_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  await network.advance(10 * MINUTE_MS);
  await network.commands().pause("a test");
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advance(7 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "lapsed" }]);
  await network.commands().resume();
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
});

test("approval of a rejected step is not requested again in its episode", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([approving]) });
  await network.advance(10 * MINUTE_MS);
  const [shown] = network.controller().view.approvals();
  expect(await network.commands().reject(shown!.id, "it is being moved")).toMatchObject({
    ok: true,
  });
  await network.advance(30 * MINUTE_MS);
  expect(network.controller().view.approvals()).toEqual([]);
  expect(network.holdReasons(node)).toEqual(["rejected"]);
  expect(network.actions()).toMatchObject([
    { state: "rejected", detail: expect.stringContaining("it is being moved") },
  ]);
  expect(network.postCount()).toBe(0);
});

test("reject withdraws an approval whose action was not sent yet", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([approving]), remedy: "operator" });
  await network.advance(10 * MINUTE_MS);
  await network.commands().pause("a release");
  const [shown] = network.controller().view.approvals();
  await network.commands("alice").approve(shown!.id);
  await network.advance(5 * MINUTE_MS);
  expect(await network.commands("bob").reject(shown!.id, "the wrong node")).toMatchObject({
    ok: true,
    value: expect.stringContaining(`${shown!.id}, reboot of`),
  });
  await network.commands().resume();
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node)).toEqual(["rejected"]);
  const [rejected, ...others] = network.actions();
  expect(rejected).toMatchObject({ state: "rejected", sentAt: null, answered: { operator: "bob" } });
  expect(rejected).not.toHaveProperty("approvedAt");
  expect(others).toEqual([]);
  await network.commands().release(node);
  await network.advance(MINUTE_MS);
  expect(network.controller().view.approvals()).toMatchObject([{ node, state: "awaiting" }]);
});

test("reject refuses an action that was sent", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([approving]) });
  await network.advance(10 * MINUTE_MS);
  const { id } = network.controller().view.approvals()[0]!;
  await network.commands().approve(id);
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(SECOND_MS);
  const error = { kind: "conflict", message: `${id} can't be rejected: its state is sent` };
  expect(await network.commands().reject(id, "")).toEqual({ ok: false, error });
  expect(network.actions()).toMatchObject([{ state: "sent" }]);
});

test("a rejected step is not sent either if a reload ends the mode approve", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([approving]) });
  await network.advance(10 * MINUTE_MS);
  await network.commands().reject(network.controller().view.approvals()[0]!.id, "it is being moved");
  await network.reload({ config: remediationConfig([rebootOffline({ mode: "enforce" })]) });
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node)).toEqual(["rejected"]);
  await network.commands().release(node);
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("release lifts a rejection, and approval of the step is requested again", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([approving]) });
  await network.advance(10 * MINUTE_MS);
  const [rejected] = network.controller().view.approvals();
  await network.commands("alice").reject(rejected!.id, "not during the release");
  await network.restart({ downMs: 24 * HOUR_MS });
  await network.advance(10 * MINUTE_MS);
  const { blockers } = network.explain(node).policies[0]!;
  expect(blockers).toEqual([
    {
      reason: "rejected",
      detail: `alice rejected ${rejected!.id}: not during the release; "release ${node}" lifts the rejection`,
    },
  ]);
  expect(await network.commands("bob").release(node)).toMatchObject({
    ok: true,
    value: expect.stringContaining(
      `; the rejection of ${rejected!.id} is lifted, and its policy decides on the step again`,
    ),
  });
  expect(network.actions()).toMatchObject([
    { id: rejected!.id, state: "lapsed", detail: "bob lifted the rejection", answered: { operator: "alice" } },
  ]);
  await network.advance(5 * MINUTE_MS);
  const [requested] = network.controller().view.approvals();
  await network.commands("bob").approve(requested!.id);
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  // There is nothing left to release.
  expect(await network.commands("bob").release(node)).toMatchObject({ ok: false, error: { kind: "not_found" } });
});

test("requests for approval and approvals survive a restart", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([approving]) });
  const [first, second] = onePerRegion(network, 2);
  network.failNode(first!);
  await network.advance(10 * MINUTE_MS);
  const [shown] = network.controller().view.approvals();
  network.kill();
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(network.controller().view.approvals()).toMatchObject([{ id: shown!.id }]);
  await network.commands().pause("a test");
  await network.commands().approve(shown!.id);
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  await network.commands().resume();
  network.failNode(second!);
  await network.advance(4 * MINUTE_MS);
  expect(network.actions().filter(({ sentAt }) => sentAt !== null)).toMatchObject([{ id: shown!.id }]);
});

test("an approval covers one step: approval of the next one is requested separately", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([approving]),
    remedy: "forced_reboot",
  });
  await network.advance(8 * MINUTE_MS);
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(network.controller().view.approvals()).toMatchObject([{ node, request: { kind: "reboot", force: true } }]);
});

test("a policy that switches to enforce no longer waits for approval", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([approving]) });
  await network.advance(10 * MINUTE_MS);
  await network.restart({ config: remediationConfig([rebootOffline()]) });
  await network.advance(20 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "lapsed" }, { outcome: "verified" }]);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("a notification adds the node's name only to its id, although the policy's name contains the id too", async () => {
  const [node] = (await startQuietNetwork({ config: remediationConfig([approving]) })).nodes("us-east");
  const policy = `heal-${node}`;
  const network = await startQuietNetwork({ config: remediationConfig([{ ...approving, name: policy }]) });
  network.failNode(node!);
  await network.advance(20 * MINUTE_MS);
  const { fleet } = network.daemon.snapshots.last!;
  const name = fleet.name[fleet.ids.indexOf(node!)];
  const [approval] = network.controller().view.approvals();
  expect(notificationsOf(network, "episode")).toMatchObject([
    { summary: `${name} (${node}) is unhealthy under the policy ${policy} (${approval!.episode})`, node },
  ]);
  expect(notificationsOf(network, "approval")).toMatchObject([
    { summary: `${approval!.id}: reboot of ${name} (${node}) by ${policy} waits for approval`, node },
  ]);
});
