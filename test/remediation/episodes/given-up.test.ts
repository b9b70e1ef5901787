import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { nodesActedOn, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

const scenario = { nodes: 24 };
/** Two episodes, half an hour apart. */
const retry = { episodes: 2, everyMs: 30 * MINUTE_MS, forgetAfterMs: HOUR_MS };
const rule = rebootOffline({ steps: [steps.reboot], retry });

const policyOf = (context: QuietNetwork) => context.controller().view.policies()[0]!;

test("three nodes that nothing heals don't make the policy fall back to dry_run", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rule]), scenario });
  const unresponsive = onePerRegion(context, 3);
  for (const node of unresponsive) context.failedNodes(node, "person");
  await context.advance(4 * HOUR_MS);
  expect(policyOf(context)).toMatchObject({ mode: "enforce", hasFallenBack: false });
  // Each was tried twice, given up, and reported once.
  expect(context.postCount()).toBe(6);
  expect(
    notificationLines(context, "given_up")
      .map(({ node }) => node)
      .toSorted(),
  ).toEqual(unresponsive.toSorted());
  expect(notificationLines(context, "given_up").map(({ severity }) => severity)).toEqual([
    "critical",
    "critical",
    "critical",
  ]);
  await context.stop();
});

test("a node given up by steps that take longer than forget_after stays given up", async () => {
  const quarantine = { ...steps.quarantine, durationMs: 90 * MINUTE_MS };
  const quarantineThenNotify = rebootOffline({ steps: [steps.reboot, quarantine, steps.notify], retry });
  const context = await startQuietNetwork({ rules: remediationRules([quarantineThenNotify]), scenario });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(6 * HOUR_MS);
  expect(context.episodes().map(({ state }) => state)).toEqual(["given_up", "given_up"]);
  expect(notificationLines(context, "given_up")).toHaveLength(1);
  expect(notificationLines(context, "step")).toHaveLength(2);
  await context.stop();
});

test("a node given up stays so over a kill at the end of its last episode, until it was seen healthy", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rule]), scenario });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advanceUntil(() => context.postCount() === 2);
  context.injectedFailures.crashAt = {
    when: "after",
    changes: (all) => all.some((change) => change.kind === "episode" && change.row.state === "given_up"),
  };
  await context.advance(HOUR_MS);
  expect(context.isAlive()).toBe(false);
  await context.restart();
  await context.advance(2 * HOUR_MS);
  expect(context.postCount()).toBe(2);
  const blockers = context.controller().view.explain(node!).policies[0]!.blockers;
  expect(blockers).toMatchObject([
    {
      reason: "retry_limit",
      detail: `given up: 2 episodes in a row did not heal it; the hold ends when the node is healthy, or with "release ${node}"`,
    },
  ]);
  // An operator mends it; later it fails again.
  context.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: context.daemon.clock.now() + MINUTE_MS,
  });
  await context.advance(30 * MINUTE_MS);
  const { holds } = context.controller().view.explain(node!);
  expect(holds.filter(({ kind }) => kind === "given_up")).toEqual([]);
  await context.advance(HOUR_MS);
  context.failedNodes(node!);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(3);
  expect(context.episodes().at(-1)).toMatchObject({ state: "healed" });
  await context.stop();
});

test("release makes a policy try a node again that was given up, as often as the first time", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rule]), scenario });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(3 * HOUR_MS);
  expect(context.postCount()).toBe(2);
  expect(context.controller().operatorCommands.release(node!)).toEqual({
    ok: true,
    value: `${node} is released; reboot-offline may try it again`,
  });
  expect(context.controller().operatorCommands.release(node!)).toMatchObject({
    ok: false,
    error: { kind: "not_found" },
  });
  expect(context.controller().view.explain(node!).holds).toEqual([]);
  context.kill();
  await context.restart();
  await context.advance(4 * HOUR_MS);
  expect(context.postCount()).toBe(4);
  expect(notificationLines(context, "given_up")).toHaveLength(2);
  await context.stop();
});

test("a policy that fell back acts again after reset-breaker, and is measured anew", async () => {
  const free = {
    canary: false,
    maxInFlight: 100,
    maxDisrupted: { share: 1, amount: 100 },
    maxUnhealthy: { share: 1 },
    efficacy: { window: 3, minSuccess: 0.5 },
  };
  const once = rebootOffline({ steps: [steps.reboot] });
  const context = await startQuietNetwork({ rules: remediationRules([once], free), scenario });
  const [first, second, third, fourth] = onePerRegion(context, 4);
  for (const node of [first!, second!, third!]) context.failedNodes(node, "person");
  await context.advance(40 * MINUTE_MS);
  expect(policyOf(context)).toMatchObject({ mode: "dry_run", hasFallenBack: true });
  expect(notificationLines(context, "efficacy")).toMatchObject([
    {
      summary:
        "The policy reboot-offline healed 0 of the last 3 nodes that it treated, and falls back to dry_run until its text changes or an operator orders reset-breaker",
    },
  ]);
  const sent = context.postCount();
  expect(context.controller().operatorCommands.resetBreaker()).toEqual({
    ok: true,
    value: "reboot-offline acts again, and its efficacy is measured anew",
  });
  expect(context.controller().operatorCommands.resetBreaker()).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  context.failedNodes(fourth!);
  await context.advance(30 * MINUTE_MS);
  expect(policyOf(context)).toMatchObject({ mode: "enforce", hasFallenBack: false });
  expect(nodesActedOn(context)).toContain(fourth);
  expect(context.postCount()).toBeGreaterThan(sent);
  await context.stop();
});
