import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Secret, Transport } from "../../../src/model/ports.ts";
import { UNLISTED_HOLDS_MAX } from "../../../src/remediation/command-plans.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import {
  ONE_NODE,
  type QuietNetwork,
  startQuietNetwork,
  startWithFailedNode,
} from "../../harness/daemon/quiet-network.ts";
import { fixedKey } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actionLines, episodeStates, nodesActedOn, notificationsOf } from "../../harness/remediation-results.ts";

/** Half an hour of quarantine, then a notification. */
const hide = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify] });
const now = (network: QuietNetwork) => network.daemon.clock.now();

test("an operator's quarantine during an episode holds the next step for as long as it lasts", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ when: 'node.status != "online"' })]),
    remedy: "operator",
  });
  await network.advance(7 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  network.interventions.quarantine(node, now(network) + 3 * HOUR_MS);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(1);
  expect([...new Set(network.holdReasons(node))]).toEqual(["ownership"]);
});

test("a node in maintenance is not acted on", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ when: 'node.status != "online"' })]),
  });
  const [node] = network.nodes("us-east");
  // An operator repairs it: ten minutes of maintenance.
  network.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "operator",
    recoverAt: now(network) + MINUTE_MS,
  });
  await network.advance(10 * MINUTE_MS);
  expect(network.status(node!)).toBe("maintenance");
  // The repair restarted it: its uptime fell without our reboot.
  expect(network.holdReasons(node!)).toEqual(["ownership", "status"]);
  expect(network.postCount()).toBe(0);
});

test("two observations show that an operator lifted our quarantine early, and the episode ends as freed", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([{ ...hide, when: 'node.status != "online"' }]),
  });
  const [node] = network.nodes("us-east");
  const passes = { recoverAt: now(network) + 12 * MINUTE_MS };
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", ...passes });
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  network.interventions.liftQuarantine(node!);
  await network.advance(MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  await network.advance(MINUTE_MS);
  expect(episodeStates(network)).toEqual(["freed"]);
  expect(network.explain(node!).holds).toMatchObject([{ kind: "vetoed", policy: "reboot-offline" }]);
});

test("the veto after an operator lifted our quarantine survives a restart, and release ends it", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([{ ...hide, when: "node.uptime_hours >= 0", match: `node.id == "${ONE_NODE}"` }]),
  });
  const node = ONE_NODE;
  await network.advance(10 * MINUTE_MS);
  network.interventions.liftQuarantine(node);
  await network.advance(5 * MINUTE_MS);
  network.kill();
  await network.restart();
  await network.advance(HOUR_MS);
  expect(network.holdReasons(node)).toEqual(["vetoed"]);
  expect(await network.commands().release(node)).toMatchObject({ ok: true });
  await network.advance(2 * MINUTE_MS);
  expect(network.postCount()).toBe(2);
});

test("our quarantine that outlasts its time is notified once as overdue and left as it is, and probation follows its end", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([hide]), remedy: "operator" });
  await network.advance(15 * MINUTE_MS);
  // An operator extends it.
  network.interventions.quarantine(node, now(network) + 2 * HOUR_MS);
  await network.advance(HOUR_MS);
  expect(notificationsOf(network, "overdue")).toMatchObject([{ node }]);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  expect(network.postCount()).toBe(1);
  await network.advance(HOUR_MS + 8 * MINUTE_MS);
  expect(notificationsOf(network, "overdue")).toHaveLength(1);
  expect(notificationsOf(network, "step")).toHaveLength(1);
  expect(network.postCount()).toBe(1);
});

test("a node that is healthy after our quarantine is healed after clear_for", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([hide]) });
  const [node] = network.nodes("us-east");
  network.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: now(network) + 20 * MINUTE_MS,
  });
  await network.advance(42 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["probation"]);
  await network.advance(10 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("pause holds every node with its reason and survives a restart; resume ends it", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes("us-east");
  await network.commands().pause("a release");
  network.failNode(node!);
  await network.advance(20 * MINUTE_MS);
  network.kill();
  await network.restart();
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.decisions().at(-1)!.blockers).toMatchObject([
    { reason: "paused", detail: expect.stringContaining("a release") },
  ]);
  expect(await network.commands().resume()).toEqual({ ok: true, value: "resumed" });
  await network.advance(2 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
  expect(await network.commands().resume()).toEqual({ ok: true, value: "the daemon was not paused" });
});

test("a pause between the decision and the POST prevents the POST", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => network.actions().length > 0);
  await network.commands().pause("at the last moment");
  await network.advance(MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()).toMatchObject([
    { state: "withdrawn", detail: expect.stringContaining("at the last moment") },
  ]);
  expect(network.episodes()).toMatchObject([{ state: "firing", failures: 0 }]);
});

test("a pause while the POST waits for a permit prevents the POST: the precondition is checked right before it is sent", async () => {
  let isRead = false;
  let paused = 0;
  // The key is read when the permit is granted, right before the request is sent.
  const secret: Secret = {
    ...fixedKey(SIMULATION_KEY),
    value() {
      if (isRead && paused === 0) {
        paused++;
        void network.commands().pause("at the very last moment");
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
  const network: QuietNetwork = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    secret,
    wrapTransport: recording,
  });
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(10 * MINUTE_MS);
  expect(paused).toBe(1);
  expect(network.actions()).toMatchObject([
    { state: "withdrawn", detail: expect.stringContaining("very last moment") },
  ]);
  expect(network.postCount()).toBe(0);
});

test("a held node is not acted on by any policy until it is released; other nodes are", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [held, other] = [network.nodes("us-east")[0]!, network.nodes("eu-west")[0]!];
  expect(await network.commands().hold(held, "looking into it")).toMatchObject({ ok: true });
  network.failNode(held);
  network.failNode(other);
  await network.advance(20 * MINUTE_MS);
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([other]);
  expect(network.holdReasons(held)).toEqual(["held"]);
  await network.commands().release(held);
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([other, held]);
  expect(await network.commands().release(held)).toMatchObject({
    ok: false,
    error: { kind: "not_found" },
  });
});

test("a node that is not listed can be held in advance: the reply says so, and the hold applies once it is listed", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]), scenario: { nodes: 20 } });
  const held = await network.commands().hold("node_new", "not in service yet");
  expect(held).toEqual({
    ok: true,
    value: expect.stringMatching(/^node_new is held: not in service yet; .*no node with that id is listed now/),
  });
  expect(network.explain("node_new").holds).toMatchObject([{ kind: "held", node: "node_new" }]);
  for (let n = 1; n < UNLISTED_HOLDS_MAX; n++)
    expect(await network.commands().hold(`node_new_${n}`, "")).toMatchObject({ ok: true });
  expect(await network.commands().hold("node_more", "")).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  // An existing hold may be changed, and a listed node may always be held.
  expect(await network.commands().hold("node_new", "another reason")).toMatchObject({ ok: true });
  expect(await network.commands().hold(network.nodes()[0]!, "")).toMatchObject({ ok: true });
  expect(await network.commands().release("node_new_1")).toMatchObject({ ok: true });
  expect(await network.commands().hold("node_more", "")).toMatchObject({ ok: true });
});

test("a node is not acted on if it is protected, or if that is unknown", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { protected: 'node.region == "us-east"' }),
  });
  const [vip] = network.nodes("us-east");
  network.failNode(vip!);
  await network.advance(20 * MINUTE_MS);
  expect(network.holdReasons(vip!)).toEqual(["protected"]);
  // Its CPU usage was never read.
  await network.restart({ config: remediationConfig([rebootOffline()], { protected: "node.cpu_usage > 0.9" }) });
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(vip!)).toEqual(["protected"]);
  expect(network.postCount()).toBe(0);
  expect(actionLines(network)).toEqual([]);
});
