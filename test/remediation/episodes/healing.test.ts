import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { actionLines, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps, withoutRetries } from "../../harness/policies.ts";
import { noFailureRates, startQuietNetwork } from "../../harness/quiet-network.ts";

test("a node that a reboot heals is rebooted once, verified with proof, and its episode closes as healed", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(40 * MINUTE_MS);
  expect(context.posts()).toEqual([{ endpoint: "POST /v1/nodes/{id}/reboot", status: 200, count: 1 }]);
  expect(context.actions()).toMatchObject([
    { node, request: { kind: "reboot", force: false }, state: "ended", outcome: "verified", proof: "uptime_fell" },
  ]);
  expect(context.episodes()).toMatchObject([{ node, state: "healed", acted: 1 }]);
  expect(notificationLines(context, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await context.stop();
});

test("a node is not acted on before `when` was observed true for `for`", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ forMs: 15 * MINUTE_MS })]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  await context.advance(2 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("a node that only a forced reboot heals gets both, the second only after the first was seen to have failed", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "forced_reboot");
  await context.advance(15 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: null"]);
  await context.advance(30 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  const [first, second] = context.actions();
  expect(second!.sentAt! - first!.sentAt!).toBeGreaterThanOrEqual(10 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([{ node, state: "healed", acted: 2 }]);
  await context.stop();
});

const allSteps = [steps.disconnect, steps.reboot, steps.force, steps.quarantine, steps.notify];

test("a node that nothing heals gets every step, one at a time, and is then given up, which is reported", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: allSteps, retry: withoutRetries })]),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(HOUR_MS);
  expect(actionLines(context)).toEqual([
    "disconnect: ineffective",
    "reboot: ineffective",
    "forced reboot: ineffective",
    "quarantine: verified",
  ]);
  expect(context.status(node!)).toBe("quarantined");
  expect(context.episodes()).toMatchObject([{ node, state: "quarantined", acted: 4 }]);
  await context.advance(2 * HOUR_MS);
  // Out of the quarantine it is ill as before, and after `for` somebody is told; there is no step after that.
  expect(actionLines(context)).toHaveLength(4);
  expect(notificationLines(context, "step")).toMatchObject([{ node, severity: "critical" }]);
  expect(notificationLines(context, "given_up")).toMatchObject([{ node }]);
  expect(context.episodes()).toMatchObject([{ node, state: "given_up", acted: 4 }]);
  await context.stop();
});

test("a node that was not healed is tried again after retry.every, and is given up after retry.episodes, also beyond forget_after", async () => {
  const retry = { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 4 * HOUR_MS };
  const rules = remediationRules([rebootOffline({ steps: [steps.reboot], retry })]);
  const context = await startQuietNetwork({ rules });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(30 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([{ state: "given_up" }]);
  expect(context.holdReasons(node!)).toEqual(["cooldown", "retry_wait"]);
  await context.advance(HOUR_MS + 15 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([{ state: "given_up" }, { state: "given_up" }]);
  const [first, second] = context.episodes();
  expect(second!.openedAt - first!.closedAt!).toBeGreaterThanOrEqual(retry.everyMs);
  await context.advance(2 * HOUR_MS);
  expect(context.postCount()).toBe(2);
  expect(context.holdReasons(node!)).toEqual(["retry_limit"]);
  expect(notificationLines(context, "given_up")).toHaveLength(1);
  await context.advance(45 * MINUTE_MS);
  expect(context.postCount()).toBe(2);
  await context.stop();
});

test("a node that becomes unhealthy again within clear_for stays in its episode, and gets the next step after `for`", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(12 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([{ state: "recovering" }]);
  context.failedNodes(node!, "forced_reboot");
  await context.advance(5 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  await context.advance(30 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: verified", "forced reboot: verified"]);
  expect(context.episodes()).toMatchObject([{ state: "healed", acted: 2 }]);
  await context.stop();
});

test("a node that recovers without an action before its step is not acted on, and its episode closes as cleared", async () => {
  const nowhere = { maxActions: { amount: 0, perMs: HOUR_MS } };
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], nowhere) });
  const [node] = context.nodes("us-east");
  const healAt = context.daemon.clock.now() + 10 * MINUTE_MS;
  context.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  await context.advance(8 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([{ state: "firing" }]);
  expect(context.holdReasons(node!)).toEqual(["max_actions"]);
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.episodes()).toMatchObject([{ state: "cleared", acted: 0 }]);
  await context.stop();
});

test("a reboot whose node never comes back is waited for as long again, and is then ineffective", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()]),
    scenario: { rates: { ...noFailureRates, rebootMs: 5 * HOUR_MS } },
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(25 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: null"]);
  expect(context.status(node!)).toBe("rebooting");
  await context.advance(3 * MINUTE_MS);
  expect(actionLines(context)[0]).toBe("reboot: ineffective");
  await context.stop();
});
