import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/runtime.ts";
import type { ActionState } from "../../../src/model/remediation/episode.ts";
import { actionLines, episodeLines, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

/** The process dies as soon as an action of that state is on the disk; `before`: right before it is. */
function dieAt(context: QuietNetwork, state: ActionState, when: "before" | "after" = "after"): void {
  const changes: NonNullable<QuietNetwork["injectedFailures"]["crashAt"]>["changes"] = (all) =>
    all.some((change) => change.kind === "action" && change.row.state === state);
  context.injectedFailures.crashAt = { when, changes };
}

test("a timer goes on after a restart where it stood; the time in which the daemon was down does not count", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ forMs: 20 * MINUTE_MS })]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(11 * MINUTE_MS);
  context.kill();
  await context.restart({ downMs: 2 * HOUR_MS });
  await context.advance(5 * MINUTE_MS);
  const { timer } = context.controller().view.explain(node!).policies[0]!;
  expect(timer).toMatchObject({ state: "pending" });
  expect(timer!.trueMs).toBeGreaterThan(11 * MINUTE_MS);
  expect(timer!.trueMs).toBeLessThan(17 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  await context.advance(8 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("an intent that a crash left is withdrawn at the start, and a node that is still unhealthy is acted on by a new one", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  dieAt(context, "intended");
  await context.advance(10 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  await context.restart();
  expect(context.actions()).toMatchObject([{ state: "withdrawn" }]);
  await context.advance(40 * MINUTE_MS);
  expect(context.actions()).toMatchObject([
    { state: "withdrawn", sentAt: null, outcome: null },
    { state: "ended", outcome: "verified" },
  ]);
  expect(context.postCount()).toBe(1);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

test("a crash right before the sending is written down sends nothing, and nothing is in doubt", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  dieAt(context, "posting", "before");
  await context.advance(10 * MINUTE_MS);
  await context.restart();
  await context.advance(40 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ state: "withdrawn" }, { outcome: "verified", inDoubt: false }]);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("a crash right after the sending is written down leaves it in doubt: not sent again, and judged by what is seen", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  dieAt(context, "posting");
  await context.advance(6 * MINUTE_MS);
  expect(context.isAlive()).toBe(false);
  expect(context.postCount()).toBe(0);
  await context.restart();
  await context.advance(5 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  // Nothing had left, so the node is as ill as before; it is the next step's turn.
  await context.advance(30 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(context.postCount()).toBe(1);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

test("a crash before the answer is written down leaves it in doubt, and what is seen proves the reboot", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  dieAt(context, "sent", "before");
  await context.advance(10 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  await context.restart({ downMs: 10 * SECOND_MS });
  await context.advance(40 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(context.actions()).toMatchObject([{ outcome: "verified", inDoubt: true, proof: "uptime_fell" }]);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

test("an action that was under way when the daemon stopped is verified by the next one", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!, "forced_reboot");
  await context.advance(7 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["acting"]);
  await context.restart();
  await context.advance(30 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

test("a daemon that is stopped while it reads the node afresh sends nothing more", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => context.actions().length > 0);
  expect(context.actions()).toMatchObject([{ state: "intended" }]);
  await context.stop();
  expect(context.actions()).toMatchObject([{ state: "withdrawn" }]);
  expect(context.postCount()).toBe(0);
  expect(context.episodes()).toMatchObject([{ state: "firing", failures: 0 }]);
});

test("a daemon that is stopped while a POST is under way waits for its answer", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "slow_drip", bytesPerSecond: 30 }, "POST");
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => context.postCount() > 0);
  expect(context.actions()).toMatchObject([{ state: "posting" }]);
  await context.stop();
  expect(context.actions()).toMatchObject([{ state: "sent", inDoubt: false }]);
});

test("a daemon that is stopped while a POST hangs gives it up after seven seconds, in doubt", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "hang" }, "POST");
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => context.postCount() > 0);
  const stopped = context.controller().stop(SHUTDOWN_BUDGET.postMs);
  await context.advance(6 * SECOND_MS);
  expect(context.actions()).toMatchObject([{ state: "posting" }]);
  await context.advance(2 * SECOND_MS);
  await stopped;
  expect(context.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  await context.stop();
});

const hidden = rebootOffline({ steps: [steps.quarantine, steps.notify] });

test("a quarantine of ours that ends while the daemon is down is followed by its probation, not by another one", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([hidden]) });
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(15 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  context.kill();
  await context.restart({ downMs: 3 * HOUR_MS });
  await context.advance(2 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["probation"]);
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(notificationLines(context, "step")).toHaveLength(1);
  expect(episodeLines(context)).toEqual(["given_up"]);
  await context.stop();
});

test("a restart within a quarantine of ours, and one within its probation, change nothing", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([hidden]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(15 * MINUTE_MS);
  await context.restart();
  await context.advance(HOUR_MS);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  await context.advance(53 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["probation"]);
  await context.restart();
  await context.advance(2 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["probation"]);
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(episodeLines(context)).toEqual(["given_up"]);
  await context.stop();
});

test("a restart while a healed node clears changes nothing", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ clearForMs: 20 * MINUTE_MS })]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(15 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["recovering"]);
  await context.restart();
  await context.advance(30 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  expect(context.postCount()).toBe(1);
  await context.stop();
});
