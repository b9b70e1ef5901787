import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/runtime.ts";
import type { ActionState } from "../../../src/model/remediation/episode.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";
import { actionLines, episodeStates, notificationsOf } from "../../harness/remediation-results.ts";

/** The process dies as soon as an action of that state is on the disk; `before`: right before it is. */
function dieAt(network: QuietNetwork, state: ActionState, when: "before" | "after" = "after"): void {
  const changes: NonNullable<QuietNetwork["injectedFailures"]["crashAt"]>["changes"] = (all) =>
    all.some((change) => change.kind === "action" && change.row.state === state);
  network.injectedFailures.crashAt = { when, changes };
}

test("a timer goes on after a restart where it stood; the time in which the daemon was down does not count", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline({ forMs: 20 * MINUTE_MS })]) });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(11 * MINUTE_MS);
  network.kill();
  await network.restart({ downMs: 2 * HOUR_MS });
  await network.advance(5 * MINUTE_MS);
  const { timer } = network.controller().view.explain(node!).policies[0]!;
  expect(timer).toMatchObject({ state: "pending" });
  expect(timer!.trueMs).toBeGreaterThan(11 * MINUTE_MS);
  expect(timer!.trueMs).toBeLessThan(17 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.advance(8 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  await network.stop();
});

test("an intent that a crash left is withdrawn at the start, and a node that is still unhealthy is acted on by a new one", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!);
  dieAt(network, "intended");
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
  await network.stop();
});

test("a crash right before the sending is written down sends nothing, and nothing is in doubt", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!);
  dieAt(network, "posting", "before");
  await network.advance(10 * MINUTE_MS);
  await network.restart();
  await network.advance(40 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "withdrawn" }, { outcome: "verified", inDoubt: false }]);
  expect(network.postCount()).toBe(1);
  await network.stop();
});

test("a crash right after the sending is written down leaves it in doubt: not sent again, and judged by what is seen", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!);
  dieAt(network, "posting");
  await network.advance(6 * MINUTE_MS);
  expect(network.isAlive()).toBe(false);
  expect(network.postCount()).toBe(0);
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  // Nothing had left, so the node is as ill as before; it is the next step's turn.
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(network.postCount()).toBe(1);
  expect(episodeStates(network)).toEqual(["healed"]);
  await network.stop();
});

test("a crash before the answer is written down leaves it in doubt, and what is seen proves the reboot", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!);
  dieAt(network, "sent", "before");
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  await network.restart({ downMs: 10 * SECOND_MS });
  await network.advance(40 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(network.actions()).toMatchObject([{ outcome: "verified", inDoubt: true, proof: "uptime_fell" }]);
  expect(episodeStates(network)).toEqual(["healed"]);
  await network.stop();
});

test("an action that was under way when the daemon stopped is verified by the next one", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!, "forced_reboot");
  await network.advance(7 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  await network.restart();
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(episodeStates(network)).toEqual(["healed"]);
  await network.stop();
});

test("a daemon that is stopped while it reads the node afresh sends nothing more", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
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
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.setFault({ kind: "slow_drip", bytesPerSecond: 30 }, "POST");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => network.postCount() > 0);
  expect(network.actions()).toMatchObject([{ state: "posting" }]);
  await network.stop();
  expect(network.actions()).toMatchObject([{ state: "sent", inDoubt: false }]);
});

test("a daemon that is stopped while a POST hangs gives it up after seven seconds, in doubt", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.setFault({ kind: "hang" }, "POST");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => network.postCount() > 0);
  const stopped = network.controller().stop(SHUTDOWN_BUDGET.postMs);
  await network.advance(6 * SECOND_MS);
  expect(network.actions()).toMatchObject([{ state: "posting" }]);
  await network.advance(2 * SECOND_MS);
  await stopped;
  expect(network.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  await network.stop();
});

const hidden = rebootOffline({ steps: [steps.quarantine, steps.notify] });

test("a quarantine of ours that ends while the daemon is down is followed by its probation, not by another one", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([hidden]) });
  network.failNode(network.nodes("us-east")[0]!, "person");
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
  await network.stop();
});

test("a restart within a quarantine of ours, and one within its probation, change nothing", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([hidden]) });
  const [node] = network.nodes("us-east");
  network.failNode(node!, "person");
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
  await network.stop();
});

test("a restart while a healed node clears changes nothing", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline({ clearForMs: 20 * MINUTE_MS })]) });
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["recovering"]);
  await network.restart();
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  expect(network.postCount()).toBe(1);
  await network.stop();
});
