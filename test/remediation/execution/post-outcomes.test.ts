import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import type { FaultKind } from "../../../src/model/scenario.ts";
import { defaultServiceOptions, SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import {
  actionLines,
  episodeLines,
  holdReasonsOf,
  nodesActedOn,
  notificationLines,
} from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps, withoutRetries } from "../../harness/policies.ts";
import { onePerRegion, startQuietNetwork } from "../../harness/quiet-network.ts";

/** Answers that leave open whether the POST was carried out; the service carried it out, or it did not. */
const doubtful: readonly (readonly [what: string, fault: FaultKind, done: boolean])[] = [
  ["the reply is lost", { kind: "lost_reply" }, true],
  ["the connection is reset", { kind: "reset" }, false],
  ["the answer never comes", { kind: "hang" }, false],
  ["the answer is a 502", { kind: "status", status: 502 }, false],
  ["the answer redirects", { kind: "redirect", location: "https://elsewhere.example/" }, false],
];

for (const [what, fault, done] of doubtful) {
  test(`when ${what} the action is in doubt: it is not sent again, and what is seen settles it`, async () => {
    const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ steps: [steps.reboot] })]) });
    context.failedNodes(context.nodes("us-east")[0]!);
    context.setFault(fault, "POST");
    await context.advance(7 * MINUTE_MS);
    expect(context.actions()).toMatchObject([{ state: "sent", inDoubt: true, outcome: null }]);
    await context.advance(30 * MINUTE_MS);
    expect(context.postCount()).toBe(1);
    expect(actionLines(context)).toEqual([`reboot: ${done ? "verified" : "ineffective"}`]);
    expect(episodeLines(context)).toEqual([done ? "healed" : "given_up"]);
    await context.stop();
  });
}

test("an action in doubt that did nothing leads to the next step of the ladder, and counts as sent against max_actions", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { maxActions: { amount: 1, perMs: HOUR_MS } }),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  context.setFault({ kind: "reset" }, "POST");
  await context.advance(30 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective"]);
  expect(context.holdReasons(node!)).toEqual(["max_actions"]);
  await context.stop();
});

for (const status of [401, 403] as const) {
  test(`a ${status} to a POST holds every action with the reason credentials; after a while one is tried again`, async () => {
    const context = await startQuietNetwork({
      rules: remediationRules([rebootOffline()], { canary: false, maxInFlight: 5 }),
    });
    const [first, second] = onePerRegion(context, 2);
    context.failedNodes(first!);
    context.setFault({ kind: "status", status }, "POST");
    await context.advance(8 * MINUTE_MS);
    context.failedNodes(second!);
    await context.advance(10 * MINUTE_MS);
    expect(context.postCount()).toBe(1);
    expect(context.actions()).toMatchObject([{ outcome: "failed" }]);
    expect(context.holdReasons(first!)).toContain("credentials");
    expect(context.holdReasons(second!)).toEqual(["credentials"]);
    // The key was mended at the service.
    context.setFault(null);
    await context.advance(40 * MINUTE_MS);
    expect(nodesActedOn(context).toSorted()).toEqual([first, second].toSorted());
    expect(episodeLines(context)).toEqual(["healed", "healed"]);
    await context.stop();
  });
}

test("a key without the scope to act leaves the watching as it is, and no episode is given up for it", async () => {
  const keys = [{ key: SIMULATION_KEY, scopes: ["nodes:read", "sessions:read"] }];
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]), scenario: { keys } });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(HOUR_MS);
  expect(episodeLines(context)).toEqual(["firing"]);
  expect(context.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ complete: true });
  // A try every quarter of an hour.
  expect(context.postCount()).toBeLessThanOrEqual(4);
  await context.stop();
});

test("a 429 was not executed: the same step is sent again after Retry-After, and not before", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  context.setFault({ kind: "status", status: 429, retryAfter: "100" }, "POST");
  await context.advance(6 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: failed"]);
  context.setFault(null);
  await context.advance(30 * MINUTE_MS);
  const [first, second] = context.actions();
  expect(actionLines(context)).toEqual(["reboot: failed", "reboot: verified"]);
  expect(second!.createdAt - first!.endedAt!).toBeGreaterThanOrEqual(100 * SECOND_MS);
  expect(context.episodes()).toMatchObject([{ state: "healed", acted: 1 }]);
  await context.stop();
});

test("429 with Retry-After: 0 to every POST: at most five attempts a step, all counted by max_actions", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  context.setFault({ kind: "status", status: 429, retryAfter: "0" }, "POST");
  await context.advance(3 * HOUR_MS);
  expect(context.postCount()).toBe(5);
  expect(actionLines(context)).toEqual(Array(5).fill("reboot: failed"));
  const sentAt = context.actions().map((action) => action.sentAt!);
  const waits = sentAt.slice(1).map((at, index) => at - sentAt[index]!);
  for (const [index, wait] of waits.entries()) expect(wait).toBeGreaterThanOrEqual(SECOND_MS * 2 ** index);
  expect(episodeLines(context)).toEqual(["given_up"]);
  expect(notificationLines(context, "given_up")).toMatchObject([{ summary: expect.stringContaining("429") }]);
  await context.stop();
});

test("attempts that are answered with 429 leave no room for others within max_actions", async () => {
  const maxActions = { amount: 3, perMs: HOUR_MS };
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], { maxActions }) });
  context.failedNodes(context.nodes("us-east")[0]!);
  context.setFault({ kind: "status", status: 429, retryAfter: "0" }, "POST");
  await context.advance(50 * MINUTE_MS);
  expect(context.postCount()).toBe(3);
  expect(holdReasonsOf(context)).toContain("max_actions");
  await context.stop();
});

const rejections: readonly (readonly [what: string, status: number])[] = [
  ["a 400", 400],
  ["a 404", 404],
  ["a 409", 409],
  ["a 422", 422],
];

for (const [what, status] of rejections) {
  test(`${what} to a POST gives the episode up, and that is said`, async () => {
    const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ retry: withoutRetries })]) });
    context.failedNodes(context.nodes("us-east")[0]!);
    context.setFault({ kind: "status", status }, "POST");
    await context.advance(30 * MINUTE_MS);
    expect(context.postCount()).toBe(1);
    expect(actionLines(context)).toEqual(["reboot: refused"]);
    expect(episodeLines(context)).toEqual(["given_up"]);
    expect(notificationLines(context, "given_up")).toHaveLength(1);
    await context.stop();
  });
}

test("an answer that says success false is a refusal, whatever its status", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]), between: unwilling });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(30 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ outcome: "refused", detail: expect.stringContaining("not today") }]);
  expect(episodeLines(context)).toEqual(["given_up"]);
  await context.stop();
});

/** Answers every POST as a service that says no in its body alone. */
function unwilling(service: Transport): Transport {
  const body = new TextEncoder().encode('{"success": false, "message": "not today"}');
  return {
    request: (request, signal) =>
      request.method === "POST"
        ? Promise.resolve({ ok: true, value: { status: 200, headers: {}, body } })
        : service.request(request, signal),
    close: () => Promise.resolve(),
  };
}

test("a service that can't be reached for the fresh read keeps the action from being sent, and it is tried again, more and more rarely", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "status", status: 503 }, "GET /v1/nodes/");
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  const states = context.actions().map(({ state }) => state);
  expect(new Set(states)).toEqual(new Set(["withdrawn"]));
  expect(states.length).toBeGreaterThan(2);
  expect(states.length).toBeLessThan(8);
  expect(context.holdReasons(node!)).toEqual(["backoff"]);
  context.setFault(null);
  await context.advance(40 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

const replies = ["success", "empty_object", "no_content"] as const;
for (const actionReply of replies) {
  test(`a service that answers a reboot with ${actionReply.replace("_", " ")} is understood`, async () => {
    const context = await startQuietNetwork({
      rules: remediationRules([rebootOffline()]),
      scenario: { service: { ...defaultServiceOptions, actionReply } },
    });
    context.failedNodes(context.nodes("us-east")[0]!);
    await context.advance(30 * MINUTE_MS);
    expect(context.actions()).toMatchObject([{ outcome: "verified", inDoubt: false }]);
    await context.stop();
  });
}

test("a service that restarts in mid-episode changes nothing: what was sent is judged once it is back", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!, "forced_reboot");
  await context.advance(8 * MINUTE_MS);
  context.setFault({ kind: "reset" });
  await context.advance(2 * MINUTE_MS);
  context.setFault(null);
  await context.advance(30 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(context.postCount()).toBe(2);
  await context.stop();
});

test("a service that is down for hours is a reason to act on no node, and what was sent before is judged when it is back", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => context.postCount() > 0);
  context.setFault({ kind: "hang" });
  await context.advance(2 * HOUR_MS);
  expect(actionLines(context)).toEqual(["reboot: null"]);
  context.setFault(null);
  await context.advance(20 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: verified"]);
  expect(context.postCount()).toBe(1);
  await context.stop();
});
