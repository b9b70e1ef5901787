import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/shutdown.ts";
import type { ActionState } from "../../../src/model/remediation/episode.ts";
import { type QuietNetwork, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actionLines, episodeStates, notificationsOf } from "../../harness/remediation-results.ts";

/** Kills the process right after an action of that state reaches the disk, or right before. */
function crashAt(network: QuietNetwork, state: ActionState, when: "before" | "after" = "after"): void {
  const changes: NonNullable<QuietNetwork["injectedFailures"]["crashAt"]>["changes"] = (all) =>
    all.some((change) => change.kind === "action" && change.row.state === state);
  network.injectedFailures.crashAt = { when, changes };
}

test("a timer continues after a restart, and downtime does not count", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ forMs: 20 * MINUTE_MS })]),
  });
  await network.advance(11 * MINUTE_MS);
  network.kill();
  await network.restart({ downMs: 2 * HOUR_MS });
  await network.advance(5 * MINUTE_MS);
  const { timer } = network.explain(node).policies[0]!;
  expect(timer).toMatchObject({ state: "pending" });
  expect(timer!.trueMs).toBeGreaterThan(11 * MINUTE_MS);
  expect(timer!.trueMs).toBeLessThan(17 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.advance(8 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("an intent that a crash left is withdrawn at the start, and a node that is still unhealthy gets a new action", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  crashAt(network, "intended");
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.restart();
  expect(network.actions()).toMatchObject([{ state: "withdrawn" }]);
  await network.advance(40 * MINUTE_MS);
  expect(network.actions()).toMatchObject([
    { state: "withdrawn", sentAt: null, outcome: null },
    { state: "ended", outcome: "verified" },
  ]);
  expect(network.postCount()).toBe(1);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("after a crash right before `posting` is journaled, nothing was sent, and nothing is in doubt", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  crashAt(network, "posting", "before");
  await network.advance(10 * MINUTE_MS);
  await network.restart();
  await network.advance(40 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "withdrawn" }, { outcome: "verified", inDoubt: false }]);
  expect(network.postCount()).toBe(1);
});

test("after a crash right after `posting` is journaled, the action is in doubt: it is not sent again, but verified", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  crashAt(network, "posting");
  await network.advance(6 * MINUTE_MS);
  expect(network.isAlive()).toBe(false);
  expect(network.postCount()).toBe(0);
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  // Nothing was sent, so the node is still unhealthy, and the next step follows.
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(network.postCount()).toBe(1);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("an action that was being sent ends in doubt if its episode is closed, and holds no other action", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node, other] = network.nodes("us-east");
  network.failNode(node!);
  crashAt(network, "posting");
  await network.advance(6 * MINUTE_MS);
  const [episode] = network.episodes();
  const closed = { ...episode!, state: "withdrawn", closedAt: episode!.stateAt } as const;
  await network.store.journal.commit([{ kind: "episode", row: closed }]);
  network.failNode(other!);
  await network.restart();
  expect(network.actions()).toMatchObject([{ state: "ended", outcome: "in_doubt" }]);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBeGreaterThan(0);
});

test("after a crash before the answer is journaled, the action is in doubt, and observation proves the reboot", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  crashAt(network, "sent", "before");
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  await network.restart({ downMs: 10 * SECOND_MS });
  await network.advance(40 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(network.actions()).toMatchObject([{ outcome: "verified", inDoubt: true, proof: "uptime_fell" }]);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("an action that was under way when the daemon stopped is verified after the restart", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    remedy: "forced_reboot",
  });
  await network.advance(7 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  await network.restart();
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("a daemon that is stopped while it reads the node before an action sends nothing", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => network.actions().length > 0);
  expect(network.actions()).toMatchObject([{ state: "intended" }]);
  await network.stop();
  expect(network.actions()).toMatchObject([{ state: "withdrawn" }]);
  expect(network.postCount()).toBe(0);
  expect(network.episodes()).toMatchObject([{ state: "firing", failures: 0 }]);
});

test("a daemon that is stopped while a POST is under way waits for its answer", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "slow_drip", bytesPerSecond: 30 }, "POST");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => network.postCount() > 0);
  expect(network.actions()).toMatchObject([{ state: "posting" }]);
  await network.stop();
  expect(network.actions()).toMatchObject([{ state: "sent", inDoubt: false }]);
});

test("a daemon that is stopped while a POST hangs aborts it after seven seconds, and leaves it in doubt", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "hang" }, "POST");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => network.postCount() > 0);
  const stopped = network.controller().stop(SHUTDOWN_BUDGET.postMs);
  await network.advance(6 * SECOND_MS);
  expect(network.actions()).toMatchObject([{ state: "posting" }]);
  await network.advance(2 * SECOND_MS);
  await stopped;
  expect(network.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
});

const hidden = rebootOffline({ steps: [steps.quarantine, steps.notify] });

test("if our quarantine ends while the daemon is down, probation follows, not another quarantine", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([hidden]), remedy: "operator" });
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  network.kill();
  await network.restart({ downMs: 3 * HOUR_MS });
  await network.advance(2 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["probation"]);
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(notificationsOf(network, "step")).toHaveLength(1);
  expect(episodeStates(network)).toEqual(["given_up"]);
});

test("a restart during our quarantine or its probation changes nothing", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([hidden]), remedy: "operator" });
  await network.advance(15 * MINUTE_MS);
  await network.restart();
  await network.advance(HOUR_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  await network.advance(53 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["probation"]);
  await network.restart();
  await network.advance(2 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["probation"]);
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(episodeStates(network)).toEqual(["given_up"]);
});

test("a restart while clear_for runs changes nothing", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ clearForMs: 20 * MINUTE_MS })]),
  });
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["recovering"]);
  await network.restart();
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  expect(network.postCount()).toBe(1);
});
