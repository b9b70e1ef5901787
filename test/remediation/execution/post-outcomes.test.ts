import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import type { FaultKind } from "../../../src/model/scenario.ts";
import { defaultServiceOptions, SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { courses, deeds, heldBy, told, touched } from "../../harness/action-lines.ts";
import { onceOnly, rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { oneOfEach, startWard } from "../../harness/quiet-network.ts";

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
    const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.reboot] })]) });
    ward.fell(ward.nodes("us-east")[0]!);
    ward.strike(fault, "POST");
    await ward.pass(7 * MINUTE_MS);
    expect(ward.actions()).toMatchObject([{ state: "sent", inDoubt: true, outcome: null }]);
    await ward.pass(30 * MINUTE_MS);
    expect(ward.postCount()).toBe(1);
    expect(deeds(ward)).toEqual([`reboot: ${done ? "verified" : "ineffective"}`]);
    expect(courses(ward)).toEqual([done ? "healed" : "given_up"]);
    await ward.stop();
  });
}

test("an action in doubt that did nothing leads to the next step of the ladder, and counts as sent against max_actions", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { maxActions: { amount: 1, perMs: HOUR_MS } }) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  ward.strike({ kind: "reset" }, "POST");
  await ward.pass(30 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective"]);
  expect(ward.reasons(node!)).toEqual(["max_actions"]);
  await ward.stop();
});

for (const status of [401, 403] as const) {
  test(`a ${status} to a POST holds every action with the reason credentials; after a while one is tried again`, async () => {
    const ward = await startWard({ rules: rulesOf([rebootOffline()], { canary: false, maxInFlight: 5 }) });
    const [first, second] = oneOfEach(ward, 2);
    ward.fell(first!);
    ward.strike({ kind: "status", status }, "POST");
    await ward.pass(8 * MINUTE_MS);
    ward.fell(second!);
    await ward.pass(10 * MINUTE_MS);
    expect(ward.postCount()).toBe(1);
    expect(ward.actions()).toMatchObject([{ outcome: "failed" }]);
    expect(ward.reasons(first!)).toContain("credentials");
    expect(ward.reasons(second!)).toEqual(["credentials"]);
    // The key was mended at the service.
    ward.strike(null);
    await ward.pass(40 * MINUTE_MS);
    expect(touched(ward).toSorted()).toEqual([first, second].toSorted());
    expect(courses(ward)).toEqual(["healed", "healed"]);
    await ward.stop();
  });
}

test("a key without the scope to act leaves the watching as it is, and no episode is given up for it", async () => {
  const keys = [{ key: SIMULATION_KEY, scopes: ["nodes:read", "sessions:read"] }];
  const ward = await startWard({ rules: rulesOf([rebootOffline()]), scenario: { keys } });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(HOUR_MS);
  expect(courses(ward)).toEqual(["firing"]);
  expect(ward.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ complete: true });
  // A try every quarter of an hour.
  expect(ward.postCount()).toBeLessThanOrEqual(4);
  await ward.stop();
});

test("a 429 was not executed: the same step is sent again after Retry-After, and not before", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  ward.strike({ kind: "status", status: 429, retryAfter: "100" }, "POST");
  await ward.pass(6 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: failed"]);
  ward.strike(null);
  await ward.pass(30 * MINUTE_MS);
  const [first, second] = ward.actions();
  expect(deeds(ward)).toEqual(["reboot: failed", "reboot: verified"]);
  expect(second!.createdAt - first!.endedAt!).toBeGreaterThanOrEqual(100 * SECOND_MS);
  expect(ward.episodes()).toMatchObject([{ state: "healed", acted: 1 }]);
  await ward.stop();
});

test("429 with Retry-After: 0 to every POST: at most five attempts a step, all counted by max_actions", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  ward.strike({ kind: "status", status: 429, retryAfter: "0" }, "POST");
  await ward.pass(3 * HOUR_MS);
  expect(ward.postCount()).toBe(5);
  expect(deeds(ward)).toEqual(Array(5).fill("reboot: failed"));
  const sentAt = ward.actions().map((action) => action.sentAt!);
  const waits = sentAt.slice(1).map((at, index) => at - sentAt[index]!);
  for (const [index, wait] of waits.entries()) expect(wait).toBeGreaterThanOrEqual(SECOND_MS * 2 ** index);
  expect(courses(ward)).toEqual(["given_up"]);
  expect(told(ward, "given_up")).toMatchObject([{ summary: expect.stringContaining("429") }]);
  await ward.stop();
});

test("attempts that are answered with 429 leave no room for others within max_actions", async () => {
  const maxActions = { amount: 3, perMs: HOUR_MS };
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { maxActions }) });
  ward.fell(ward.nodes("us-east")[0]!);
  ward.strike({ kind: "status", status: 429, retryAfter: "0" }, "POST");
  await ward.pass(50 * MINUTE_MS);
  expect(ward.postCount()).toBe(3);
  expect(heldBy(ward)).toContain("max_actions");
  await ward.stop();
});

const refusals: readonly (readonly [what: string, status: number])[] = [
  ["a 400", 400],
  ["a 404", 404],
  ["a 409", 409],
  ["a 422", 422],
];

for (const [what, status] of refusals) {
  test(`${what} to a POST gives the episode up, and that is said`, async () => {
    const ward = await startWard({ rules: rulesOf([rebootOffline({ retry: onceOnly })]) });
    ward.fell(ward.nodes("us-east")[0]!);
    ward.strike({ kind: "status", status }, "POST");
    await ward.pass(30 * MINUTE_MS);
    expect(ward.postCount()).toBe(1);
    expect(deeds(ward)).toEqual(["reboot: refused"]);
    expect(courses(ward)).toEqual(["given_up"]);
    expect(told(ward, "given_up")).toHaveLength(1);
    await ward.stop();
  });
}

test("an answer that says success false is a refusal, whatever its status", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]), between: unwilling });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ outcome: "refused", detail: expect.stringContaining("not today") }]);
  expect(courses(ward)).toEqual(["given_up"]);
  await ward.stop();
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
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.strike({ kind: "status", status: 503 }, "GET /v1/nodes/");
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  const states = ward.actions().map(({ state }) => state);
  expect(new Set(states)).toEqual(new Set(["withdrawn"]));
  expect(states.length).toBeGreaterThan(2);
  expect(states.length).toBeLessThan(8);
  expect(ward.reasons(node!)).toEqual(["backoff"]);
  ward.strike(null);
  await ward.pass(40 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

const replies = ["success", "empty_object", "no_content"] as const;
for (const actionReply of replies) {
  test(`a service that answers a reboot with ${actionReply.replace("_", " ")} is understood`, async () => {
    const ward = await startWard({
      rules: rulesOf([rebootOffline()]),
      scenario: { service: { ...defaultServiceOptions, actionReply } },
    });
    ward.fell(ward.nodes("us-east")[0]!);
    await ward.pass(30 * MINUTE_MS);
    expect(ward.actions()).toMatchObject([{ outcome: "verified", inDoubt: false }]);
    await ward.stop();
  });
}

test("a service that restarts in mid-episode changes nothing: what was sent is judged once it is back", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!, "forced_reboot");
  await ward.pass(8 * MINUTE_MS);
  ward.strike({ kind: "reset" });
  await ward.pass(2 * MINUTE_MS);
  ward.strike(null);
  await ward.pass(30 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(ward.postCount()).toBe(2);
  await ward.stop();
});

test("a service that is down for hours is a reason to touch nobody, and what was sent before is judged when it is back", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.passUntil(() => ward.postCount() > 0);
  ward.strike({ kind: "hang" });
  await ward.pass(2 * HOUR_MS);
  expect(deeds(ward)).toEqual(["reboot: null"]);
  ward.strike(null);
  await ward.pass(20 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: verified"]);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});
