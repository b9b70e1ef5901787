import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { noFailureRates, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutRetries } from "../../harness/policies.ts";
import { actionLines, notificationsOf } from "../../harness/remediation-results.ts";

test("a node that a reboot heals is rebooted once, verified with proof, and its episode closes as healed", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  await network.advance(40 * MINUTE_MS);
  expect(network.posts()).toEqual([{ endpoint: "POST /v1/nodes/{id}/reboot", status: 200, count: 1 }]);
  expect(network.actions()).toMatchObject([
    { node, request: { kind: "reboot", force: false }, state: "ended", outcome: "verified", proof: "uptime_fell" },
  ]);
  expect(network.episodes()).toMatchObject([{ node, state: "healed", acted: 1 }]);
  expect(notificationsOf(network, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
});

test("a node is not acted on before `when` was observed true for `for`", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ forMs: 15 * MINUTE_MS })]),
  });
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.advance(2 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("a node that only a forced reboot heals gets a reboot first, and the forced one only after that was ineffective", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    remedy: "forced_reboot",
  });
  await network.advance(15 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  const [first, second] = network.actions();
  expect(second!.sentAt! - first!.sentAt!).toBeGreaterThanOrEqual(10 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ node, state: "healed", acted: 2 }]);
});

const allSteps = [steps.disconnect, steps.reboot, steps.force, steps.quarantine, steps.notify];

test("a node that nothing heals gets every step, one at a time, and is then given up with a notification", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: allSteps, retry: withoutRetries })]),
    remedy: "operator",
  });
  await network.advance(HOUR_MS);
  expect(actionLines(network)).toEqual([
    "disconnect: ineffective",
    "reboot: ineffective",
    "forced reboot: ineffective",
    "quarantine: verified",
  ]);
  expect(network.status(node)).toBe("quarantined");
  expect(network.episodes()).toMatchObject([{ node, state: "quarantined", acted: 4 }]);
  await network.advance(2 * HOUR_MS);
  // After the quarantine the node is still unhealthy, and after `for` the last step notifies.
  expect(actionLines(network)).toHaveLength(4);
  expect(notificationsOf(network, "step")).toMatchObject([{ node, severity: "critical" }]);
  expect(notificationsOf(network, "given_up")).toMatchObject([{ node }]);
  expect(network.episodes()).toMatchObject([{ node, state: "given_up", acted: 4 }]);
});

test("a node that was not healed is tried again after retry.every, and is given up after retry.episodes, even beyond forget_after", async () => {
  const retry = { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 4 * HOUR_MS };
  const config = remediationConfig([rebootOffline({ steps: [steps.reboot], retry })]);
  const { network, node } = await startWithFailedNode({ config, remedy: "operator" });
  await network.advance(30 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ state: "given_up" }]);
  expect(network.holdReasons(node)).toEqual(["cooldown", "retry_wait"]);
  await network.advance(HOUR_MS + 15 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ state: "given_up" }, { state: "given_up" }]);
  const [first, second] = network.episodes();
  expect(second!.openedAt - first!.closedAt!).toBeGreaterThanOrEqual(retry.everyMs);
  await network.advance(2 * HOUR_MS);
  expect(network.postCount()).toBe(2);
  expect(network.holdReasons(node)).toEqual(["retry_limit"]);
  expect(notificationsOf(network, "given_up")).toHaveLength(1);
  await network.advance(45 * MINUTE_MS);
  expect(network.postCount()).toBe(2);
});

test("a node that becomes unhealthy again within clear_for stays in its episode, and gets the next step after `for`", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  await network.advance(12 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ state: "recovering" }]);
  network.failNode(node, "forced_reboot");
  await network.advance(5 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: verified", "forced reboot: verified"]);
  expect(network.episodes()).toMatchObject([{ state: "healed", acted: 2 }]);
});

test("a node that recovers without an action before its step is not acted on, and its episode closes as cleared", async () => {
  const nowhere = { maxActions: { amount: 0, perMs: HOUR_MS } };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], nowhere) });
  const [node] = network.nodes("us-east");
  const healAt = network.daemon.clock.now() + 10 * MINUTE_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  await network.advance(8 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ state: "firing" }]);
  expect(network.holdReasons(node!)).toEqual(["max_actions"]);
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.episodes()).toMatchObject([{ state: "cleared", acted: 0 }]);
});

test("a reboot whose node does not come back gets its time once more, and is then ineffective", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    scenario: { rates: { ...noFailureRates, rebootMs: 5 * HOUR_MS } },
  });
  await network.advance(25 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  expect(network.status(node)).toBe("rebooting");
  await network.advance(3 * MINUTE_MS);
  expect(actionLines(network)[0]).toBe("reboot: ineffective");
});
