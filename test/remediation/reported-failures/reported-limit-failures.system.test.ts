import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { onePerRegion, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actionLines, episodeStates, nodesActedOn, notificationsOf } from "../../harness/remediation-results.ts";

// Limits that did not hold in similar projects, or held too much, by the issue that reported each.

test("quarantines and reboots count against the same limits (c7n#3477, #4347)", async () => {
  const policies = [
    rebootOffline({ name: "a", match: 'node.region == "us-east"', steps: [steps.disconnect] }),
    rebootOffline({ name: "b", match: 'node.region == "eu-west"', steps: [steps.quarantine] }),
    rebootOffline({ name: "c", match: 'node.region == "us-west"' }),
  ];
  const network = await startQuietNetwork({
    config: remediationConfig(policies, { maxActions: { amount: 2, perMs: HOUR_MS } }),
  });
  for (const region of ["us-east", "eu-west", "us-west"]) network.failNode(network.nodes(region)[0]!);
  await network.advance(50 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["disconnect: ineffective", "quarantine: verified"]);
  expect(network.holdReasons(network.nodes("us-west")[0]!)).toEqual(["max_actions"]);
});

test("no policy exceeds safety.mode (c7n#9153)", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ mode: "enforce" })], { mode: "dry_run" }),
  });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()).toMatchObject([
    { dryRun: true, outcome: "dry_run" },
    { dryRun: true, outcome: "dry_run" },
  ]);
});

test("a node that nothing heals is not rebooted forever (NVSentinel#1543, CAPI#7353)", async () => {
  const retry = { episodes: 2, everyMs: 30 * MINUTE_MS, forgetAfterMs: 24 * HOUR_MS };
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [steps.reboot], retry })]),
    remedy: "operator",
  });
  await network.advance(2 * HOUR_MS);
  expect(network.postCount()).toBe(2);
});

test("a node that a reboot heals only for a while is not rebooted forever (NVSentinel#1543)", async () => {
  const retry = { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ steps: [steps.reboot], retry })]),
  });
  const [node] = network.nodes("us-east");
  for (let time = 0; time < 3; time++) {
    network.failNode(node!);
    await network.advance(HOUR_MS);
  }
  expect(episodeStates(network)).toEqual(["healed", "healed"]);
  expect(network.postCount()).toBe(2);
  expect(network.holdReasons(node!)).toEqual(["retry_limit"]);
});

test("with retry.episodes 0 nothing is sent (CAPI's retryLimit 0)", async () => {
  const retry = { episodes: 0, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline({ retry })]) });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node)).toEqual(["retry_limit"]);
});

test("limits hold from the first action on, even if many nodes are unhealthy at the start (draino#89)", async () => {
  const loose = {
    maxInFlight: 10,
    maxDisrupted: { share: 1, amount: 2 },
    maxDisruptedPer: { region: null, country: null },
    canary: false,
  };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], loose), warmUpMs: 0 });
  await network.advance(MINUTE_MS);
  const unhealthy = onePerRegion(network, 8);
  for (const node of unhealthy) network.failNode(node, "operator");
  await network.advance(10 * MINUTE_MS);
  // All of them fire in the same evaluation.
  expect(network.postCount()).toBe(2);
  expect(network.holdReasons(unhealthy[7]!)).toEqual(["disrupted"]);
});

test("at most max_actions are sent in an hour, even if all other limits allow more (draino#89)", async () => {
  const loose = {
    maxInFlight: 10,
    maxDisrupted: { share: 1, amount: 10 },
    maxActions: { amount: 3, perMs: HOUR_MS },
    canary: false,
  };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], loose) });
  const unhealthy = onePerRegion(network, 8);
  for (const node of unhealthy) network.failNode(node);
  await network.advance(50 * MINUTE_MS);
  expect(network.postCount()).toBe(3);
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(6);
});

test("percentages don't hold a fleet of three: its unhealthy node is healed (karpenter#2134)", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    scenario: { nodes: 3, sessions: 3 },
  });
  const [node] = network.nodes();
  network.failNode(node!);
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("a hold is visible in the decision, in the metrics and in the explanation of the node (CAPI#5451, kured#563)", async () => {
  const config = remediationConfig([rebootOffline()], { maxDisrupted: { share: 0, amount: 5 }, maxInFlight: 0 });
  const { network, node } = await startWithFailedNode({ config });
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(node)).toEqual(["in_flight", "disrupted"]);
  expect(network.decisions()).toMatchObject([
    { node, verdict: "hold", blockers: [{ reason: "in_flight" }, { reason: "disrupted" }] },
  ]);
  const page = await network.daemon.metrics.render("text");
  for (const reason of ["in_flight", "disrupted"]) {
    expect(page).toContain(
      `proxywarden_decisions_total{policy="reboot-offline",verdict="hold",reason="${reason}"} 1\n`,
    );
  }
  expect(page).toContain('proxywarden_limit_nodes{limit="max_disrupted"} 0\n');
});

const eager = { breaker: { share: 0, amount: 2, withinMs: HOUR_MS } };

test("an open circuit breaker survives restarts until an operator resets it (NVSentinel)", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], eager) });
  const unhealthy = onePerRegion(network, 3);
  for (const node of unhealthy) network.failNode(node);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.restart({ downMs: 3 * HOUR_MS });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(unhealthy[0]!)).toEqual(["breaker"]);
  expect(await network.commands().resetBreaker()).toMatchObject({ ok: true });
  await network.advance(HOUR_MS);
  expect(nodesActedOn(network).toSorted()).toEqual([...unhealthy].toSorted());
  expect(notificationsOf(network, "breaker").at(-1)).toMatchObject({ endsAt: expect.any(Number) });
});

test("the count of the circuit breaker survives a crash (NVSentinel)", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { ...eager, maxInFlight: 0 }),
  });
  const [first, second, third] = onePerRegion(network, 3);
  network.failNode(first!);
  network.failNode(second!);
  await network.advance(10 * MINUTE_MS);
  network.kill();
  await network.restart();
  network.failNode(third!);
  await network.advance(10 * MINUTE_MS);
  expect(network.controller().view.status().breaker).toMatchObject({ nodes: 3 });
});

test("a circuit breaker of 0 opens at the first node, and is not off (NVSentinel)", async () => {
  const none = { breaker: { share: 0, amount: 0, withinMs: HOUR_MS } };
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()], none) });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node)).toEqual(["breaker"]);
  expect(network.controller().view.status().breaker).toMatchObject({ nodes: 1 });
});
