import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Secret, Transport } from "../../../src/model/ports.ts";
import { UNLISTED_HOLDS_MAX } from "../../../src/remediation/operator-commands.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { actionLines, episodeLines, nodesActedOn, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";
import { fixedKey } from "../../harness/virtual-daemon.ts";

/** Half an hour in quarantine, and then somebody is told. */
const hide = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify] });
const now = (context: QuietNetwork) => context.daemon.clock.now();

test("an operator's quarantine in mid-episode holds the next step for as long as it lasts", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ when: 'node.status != "online"' })]),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(7 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  context.interventions.quarantine(node!, now(context) + 3 * HOUR_MS);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(1);
  expect([...new Set(context.holdReasons(node!))]).toEqual(["ownership"]);
  await context.stop();
});

test("a node in maintenance is not acted on", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ when: 'node.status != "online"' })]),
  });
  const [node] = context.nodes("us-east");
  // A person mends it: ten minutes of maintenance.
  context.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "person",
    recoverAt: now(context) + MINUTE_MS,
  });
  await context.advance(10 * MINUTE_MS);
  expect(context.status(node!)).toBe("maintenance");
  // The repair has restarted it: its uptime fell without a reboot of ours.
  expect(context.holdReasons(node!)).toEqual(["ownership", "status"]);
  expect(context.postCount()).toBe(0);
  await context.stop();
});

test("our quarantine lifted early by an operator is seen twice before it is believed, and then the episode is theirs", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([{ ...hide, when: 'node.status != "online"' }]) });
  const [node] = context.nodes("us-east");
  const passes = { recoverAt: now(context) + 12 * MINUTE_MS };
  context.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", ...passes });
  await context.advance(15 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  context.interventions.liftQuarantine(node!);
  await context.advance(MINUTE_MS);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  await context.advance(MINUTE_MS);
  expect(episodeLines(context)).toEqual(["freed"]);
  expect(context.controller().view.explain(node!).holds).toMatchObject([{ kind: "vetoed", policy: "reboot-offline" }]);
  await context.stop();
});

test("the veto of an operator who freed a node outlives a restart, and release ends it", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([{ ...hide, when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"' }]),
  });
  const node = "node_caffe390";
  await context.advance(10 * MINUTE_MS);
  context.interventions.liftQuarantine(node);
  await context.advance(5 * MINUTE_MS);
  context.kill();
  await context.restart();
  await context.advance(HOUR_MS);
  expect(context.holdReasons(node)).toEqual(["vetoed"]);
  expect(context.controller().operatorCommands.release(node)).toMatchObject({ ok: true });
  await context.advance(2 * MINUTE_MS);
  expect(context.postCount()).toBe(2);
  await context.stop();
});

test("a quarantine of ours that outlasts its time is told as overdue, once, and left as it is; when it ends there is a probation", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([hide]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(15 * MINUTE_MS);
  // A person wants it to be longer.
  context.interventions.quarantine(node!, now(context) + 2 * HOUR_MS);
  await context.advance(HOUR_MS);
  expect(notificationLines(context, "overdue")).toMatchObject([{ node }]);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  expect(context.postCount()).toBe(1);
  await context.advance(HOUR_MS + 8 * MINUTE_MS);
  expect(notificationLines(context, "overdue")).toHaveLength(1);
  expect(notificationLines(context, "step")).toHaveLength(1);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("a node that is well after our quarantine is healed once it stays so for clear_for", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([hide]) });
  const [node] = context.nodes("us-east");
  context.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: now(context) + 20 * MINUTE_MS,
  });
  await context.advance(42 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["probation"]);
  await context.advance(10 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

test("pause holds every node, outlives a restart, and says why; resume lets them go", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.controller().operatorCommands.pause("a release");
  context.failedNodes(node!);
  await context.advance(20 * MINUTE_MS);
  context.kill();
  await context.restart();
  await context.advance(10 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.decisions().at(-1)!.blockers).toMatchObject([
    { reason: "paused", detail: expect.stringContaining("a release") },
  ]);
  expect(context.controller().operatorCommands.resume()).toEqual({ ok: true, value: "resumed" });
  await context.advance(2 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  expect(context.controller().operatorCommands.resume()).toEqual({ ok: true, value: "it was not paused" });
  await context.stop();
});

test("a pause between the decision and the POST is heeded", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => context.actions().length > 0);
  context.controller().operatorCommands.pause("at the last moment");
  await context.advance(MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.actions()).toMatchObject([
    { state: "withdrawn", detail: expect.stringContaining("at the last moment") },
  ]);
  expect(context.episodes()).toMatchObject([{ state: "firing", failures: 0 }]);
  await context.stop();
});

test("a pause while the POST waits for leave to be sent is heeded: all is decided once more as it goes out", async () => {
  let isRead = false;
  let paused = 0;
  // The key is asked for when there is leave to send, right before anything goes out.
  const secret: Secret = {
    ...fixedKey(SIMULATION_KEY),
    value() {
      if (isRead && paused === 0) {
        paused++;
        context.controller().operatorCommands.pause("at the very last moment");
      }
      return SIMULATION_KEY;
    },
  };
  const recording = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const answer = await service.request(request, signal);
      isRead ||= request.path.startsWith("/v1/nodes/");
      return answer;
    },
  });
  const context: QuietNetwork = await startQuietNetwork({
    rules: remediationRules([rebootOffline()]),
    secret,
    between: recording,
  });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(10 * MINUTE_MS);
  expect(paused).toBe(1);
  expect(context.actions()).toMatchObject([
    { state: "withdrawn", detail: expect.stringContaining("very last moment") },
  ]);
  expect(context.postCount()).toBe(0);
  await context.stop();
});

test("a held node is not acted on by any policy until it is released; others are", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [held, other] = [context.nodes("us-east")[0]!, context.nodes("eu-west")[0]!];
  expect(context.controller().operatorCommands.hold(held, "looking into it")).toMatchObject({ ok: true });
  context.failedNodes(held);
  context.failedNodes(other);
  await context.advance(20 * MINUTE_MS);
  await context.restart();
  await context.advance(5 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([other]);
  expect(context.holdReasons(held)).toEqual(["held"]);
  context.controller().operatorCommands.release(held);
  await context.advance(20 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([other, held]);
  expect(context.controller().operatorCommands.release(held)).toMatchObject({
    ok: false,
    error: { kind: "not_found" },
  });
  await context.stop();
});

test("a node that is not listed can be held in advance: the answer says so, and the hold is in force once it is listed", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]), scenario: { nodes: 20 } });
  const held = context.controller().operatorCommands.hold("node_new", "not in service yet");
  expect(held).toEqual({
    ok: true,
    value: expect.stringMatching(/^node_new is held: not in service yet; .*no node of that id is listed now/),
  });
  expect(context.controller().view.explain("node_new").holds).toMatchObject([{ kind: "held", node: "node_new" }]);
  for (let n = 1; n < UNLISTED_HOLDS_MAX; n++)
    expect(context.controller().operatorCommands.hold(`node_new_${n}`, "")).toMatchObject({ ok: true });
  expect(context.controller().operatorCommands.hold("node_more", "")).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  // A hold that is there already may be changed, and a listed node may always be held.
  expect(context.controller().operatorCommands.hold("node_new", "another reason")).toMatchObject({ ok: true });
  expect(context.controller().operatorCommands.hold(context.nodes()[0]!, "")).toMatchObject({ ok: true });
  expect(context.controller().operatorCommands.release("node_new_1")).toMatchObject({ ok: true });
  expect(context.controller().operatorCommands.hold("node_more", "")).toMatchObject({ ok: true });
  await context.stop();
});

test("a protected node is never touched, nor one of which that can't be said", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { protected: 'node.region == "us-east"' }),
  });
  const [vip] = context.nodes("us-east");
  context.failedNodes(vip!);
  await context.advance(20 * MINUTE_MS);
  expect(context.holdReasons(vip!)).toEqual(["protected"]);
  // Its processor has never been read.
  await context.restart({ rules: remediationRules([rebootOffline()], { protected: "node.cpu_usage > 0.9" }) });
  await context.advance(10 * MINUTE_MS);
  expect(context.holdReasons(vip!)).toEqual(["protected"]);
  expect(context.postCount()).toBe(0);
  expect(actionLines(context)).toEqual([]);
  await context.stop();
});
