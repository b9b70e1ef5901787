import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { ActionState } from "../../../src/model/remediation/episode.ts";
import { courses, deeds, told } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

/** The process dies as soon as an action of that state is on the disk; `before`: right before it is. */
function dieAt(ward: WardRun, state: ActionState, when: "before" | "after" = "after"): void {
  const changes: NonNullable<WardRun["mishaps"]["deathAt"]>["changes"] = (all) =>
    all.some((change) => change.kind === "action" && change.row.state === state);
  ward.mishaps.deathAt = { when, changes };
}

test("a timer goes on after a restart where it stood; the time in which the daemon was down does not count", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: 20 * MINUTE_MS })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(11 * MINUTE_MS);
  ward.kill();
  await ward.restart({ downMs: 2 * HOUR_MS });
  await ward.pass(5 * MINUTE_MS);
  const { timer } = ward.warden().view.explain(node!).policies[0]!;
  expect(timer).toMatchObject({ state: "pending" });
  expect(timer!.trueMs).toBeGreaterThan(11 * MINUTE_MS);
  expect(timer!.trueMs).toBeLessThan(17 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  await ward.pass(8 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("an intent that a crash left is withdrawn at the start, and a node that is still ill is acted on by a new one", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  dieAt(ward, "intended");
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  await ward.restart();
  expect(ward.actions()).toMatchObject([{ state: "withdrawn" }]);
  await ward.pass(40 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([
    { state: "withdrawn", sentAt: null, outcome: null },
    { state: "ended", outcome: "verified" },
  ]);
  expect(ward.postCount()).toBe(1);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("a crash right before the sending is written down sends nothing, and nothing is in doubt", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  dieAt(ward, "posting", "before");
  await ward.pass(10 * MINUTE_MS);
  await ward.restart();
  await ward.pass(40 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ state: "withdrawn" }, { outcome: "verified", inDoubt: false }]);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("a crash right after the sending is written down leaves it in doubt: not sent again, and judged by what is seen", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  dieAt(ward, "posting");
  await ward.pass(6 * MINUTE_MS);
  expect(ward.isAlive()).toBe(false);
  expect(ward.postCount()).toBe(0);
  await ward.restart();
  await ward.pass(5 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  // Nothing had left, so the node is as ill as before; it is the next step's turn.
  await ward.pass(30 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(ward.postCount()).toBe(1);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("a crash before the answer is written down leaves it in doubt, and what is seen proves the reboot", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  dieAt(ward, "sent", "before");
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  await ward.restart({ downMs: 10 * SECOND_MS });
  await ward.pass(40 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(ward.actions()).toMatchObject([{ outcome: "verified", inDoubt: true, proof: "uptime_fell" }]);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("an action that was under way when the daemon stopped is verified by the next one", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!, "forced_reboot");
  await ward.pass(7 * MINUTE_MS);
  expect(courses(ward)).toEqual(["acting"]);
  await ward.restart();
  await ward.pass(30 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("a daemon that is stopped while it reads the node afresh sends nothing more", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.passUntil(() => ward.actions().length > 0);
  expect(ward.actions()).toMatchObject([{ state: "intended" }]);
  await ward.stop();
  expect(ward.actions()).toMatchObject([{ state: "withdrawn" }]);
  expect(ward.postCount()).toBe(0);
  expect(ward.episodes()).toMatchObject([{ state: "firing", failures: 0 }]);
});

test("a daemon that is stopped while a POST is under way waits for its answer", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "slow_drip", bytesPerSecond: 30 }, "POST");
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.passUntil(() => ward.postCount() > 0);
  expect(ward.actions()).toMatchObject([{ state: "posting" }]);
  await ward.stop();
  expect(ward.actions()).toMatchObject([{ state: "sent", inDoubt: false }]);
});

test("a daemon that is stopped while a POST hangs gives it up after seven seconds, in doubt", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "hang" }, "POST");
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.passUntil(() => ward.postCount() > 0);
  const stopped = ward.warden().stop();
  await ward.pass(6 * SECOND_MS);
  expect(ward.actions()).toMatchObject([{ state: "posting" }]);
  await ward.pass(2 * SECOND_MS);
  await stopped;
  expect(ward.actions()).toMatchObject([{ state: "sent", inDoubt: true }]);
  await ward.stop();
});

const hidden = rebootOffline({ steps: [steps.quarantine, steps.notify] });

test("a quarantine of ours that ends while the daemon is down is followed by its probation, not by another one", async () => {
  const ward = await startWard({ rules: rulesOf([hidden]) });
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(15 * MINUTE_MS);
  expect(courses(ward)).toEqual(["quarantined"]);
  ward.kill();
  await ward.restart({ downMs: 3 * HOUR_MS });
  await ward.pass(2 * MINUTE_MS);
  expect(courses(ward)).toEqual(["probation"]);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(told(ward, "step")).toHaveLength(1);
  expect(courses(ward)).toEqual(["given_up"]);
  await ward.stop();
});

test("a restart within a quarantine of ours, and one within its probation, change nothing", async () => {
  const ward = await startWard({ rules: rulesOf([hidden]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(15 * MINUTE_MS);
  await ward.restart();
  await ward.pass(HOUR_MS);
  expect(courses(ward)).toEqual(["quarantined"]);
  await ward.pass(53 * MINUTE_MS);
  expect(courses(ward)).toEqual(["probation"]);
  await ward.restart();
  await ward.pass(2 * MINUTE_MS);
  expect(courses(ward)).toEqual(["probation"]);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(courses(ward)).toEqual(["given_up"]);
  await ward.stop();
});

test("a restart while a healed node clears changes nothing", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ clearForMs: 20 * MINUTE_MS })]) });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(15 * MINUTE_MS);
  expect(courses(ward)).toEqual(["recovering"]);
  await ward.restart();
  await ward.pass(30 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});
