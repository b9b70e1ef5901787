import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import type { FaultKind } from "../../../../src/config/schema/scenario.ts";
import type { Transport } from "../../../../src/model/ports.ts";
import { defaultServiceOptions, SIMULATION_KEY } from "../../../../src/simulator/default-scenarios.ts";
import { onePerRegion, startQuietNetwork, startWithFailedNode } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutRetries } from "../../../harness/policies.ts";
import {
  actionLines,
  episodeStates,
  holdReasonsOf,
  nodesActedOn,
  notificationsOf,
} from "../../../harness/remediation-results.ts";
import { changingBodies } from "../../../harness/simulator/changed-responses.ts";

/** Answers that leave open whether the POST was executed, and whether the service executed it. */
const doubtful: readonly (readonly [what: string, fault: FaultKind, done: boolean])[] = [
  ["the reply is lost", { kind: "lost_reply" }, true],
  ["the connection is reset", { kind: "reset" }, false],
  ["the answer never comes", { kind: "hang" }, false],
  ["the answer is a 502", { kind: "status", status: 502 }, false],
  ["the answer redirects", { kind: "redirect", location: "https://elsewhere.example/" }, false],
];

for (const [what, fault, done] of doubtful) {
  test(`when ${what}, the action is in doubt: it is not sent again, and observation settles it`, async () => {
    const { network } = await startWithFailedNode({
      config: remediationConfig([rebootOffline({ steps: [steps.reboot] })]),
    });
    network.setFault(fault, "POST");
    await network.advance(7 * MINUTE_MS);
    expect(network.actions()).toMatchObject([{ state: "sent", inDoubt: true, outcome: null }]);
    await network.advance(30 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
    expect(actionLines(network)).toEqual([`reboot: ${done ? "verified" : "ineffective"}`]);
    expect(episodeStates(network)).toEqual([done ? "healed" : "given_up"]);
  });
}

test("after an action in doubt that had no effect the next step follows, and it counts against max_actions", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()], { maxActions: { amount: 1, perMs: HOUR_MS } }),
  });
  network.setFault({ kind: "reset" }, "POST");
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective"]);
  expect(network.holdReasons(node)).toEqual(["max_actions"]);
});

for (const status of [401, 403] as const) {
  test(`a ${status} to a POST holds every action with the reason credentials, until one is tried again`, async () => {
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline()], { canary: false, maxInFlight: 5 }),
    });
    const [first, second] = onePerRegion(network, 2);
    const heldBy = () => network.controller().view.status().credentials;
    network.failNode(first!);
    network.setFault({ kind: "status", status }, "POST");
    await network.advance(8 * MINUTE_MS);
    network.failNode(second!);
    await network.advance(10 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
    expect(network.actions()).toMatchObject([{ outcome: "failed" }]);
    expect(network.holdReasons(first!)).toContain("credentials");
    expect(network.holdReasons(second!)).toEqual(["credentials"]);
    expect(heldBy()).toContain(`answered ${status}`);
    // The key was fixed at the service.
    network.setFault(null);
    await network.advance(40 * MINUTE_MS);
    expect(nodesActedOn(network).toSorted()).toEqual([first, second].toSorted());
    expect(episodeStates(network)).toEqual(["healed", "healed"]);
    expect(heldBy()).toBeNull();
  });
}

test("a key without the scope for actions does not affect the collectors, and no episode is given up for it", async () => {
  const keys = [{ key: SIMULATION_KEY, scopes: ["nodes:read", "sessions:read"] }];
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]), scenario: { keys } });
  await network.advance(HOUR_MS);
  expect(episodeStates(network)).toEqual(["firing"]);
  expect(network.daemon.snapshots.last!.fleet.lastWalk).toMatchObject({ complete: true });
  // One attempt every 15 minutes.
  expect(network.postCount()).toBe(4);
});

test("a 503 with Retry-After: 900 to the action on one node delays no other call", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  const fault = { kind: "status", status: 503, retryAfter: "900" } as const;
  network.setFault(fault, "POST");
  await network.advanceUntil(() => network.postCount() === 1);
  for (let minute = 0; minute < 20; minute++) {
    await network.advance(MINUTE_MS);
    expect(network.controller().view.status().trust).toEqual([]);
  }
  expect(actionLines(network)[0]).toBe("reboot: ineffective");
});

test("after a 429 the same step is sent again, not before Retry-After", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "status", status: 429, retryAfter: "100" }, "POST");
  await network.advance(6 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: failed"]);
  network.setFault(null);
  await network.advance(30 * MINUTE_MS);
  const [first, second] = network.actions();
  expect(actionLines(network)).toEqual(["reboot: failed", "reboot: verified"]);
  expect(second!.createdAt - first!.endedAt!).toBeGreaterThanOrEqual(100 * SECOND_MS);
  expect(network.episodes()).toMatchObject([{ state: "healed", acted: 1 }]);
});

test("with a 429 and Retry-After: 0 to every POST, a step has at most five attempts, all counted by max_actions", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "status", status: 429, retryAfter: "0" }, "POST");
  await network.advance(3 * HOUR_MS);
  expect(network.postCount()).toBe(5);
  expect(actionLines(network)).toEqual(Array(5).fill("reboot: failed"));
  const sentAt = network.actions().map((action) => action.sentAt!);
  const waits = sentAt.slice(1).map((at, index) => at - sentAt[index]!);
  for (const [index, wait] of waits.entries()) expect(wait).toBeGreaterThanOrEqual(SECOND_MS * 2 ** index);
  expect(episodeStates(network)).toEqual(["given_up"]);
  expect(notificationsOf(network, "given_up")).toMatchObject([{ summary: expect.stringContaining("429") }]);
});

test("attempts that are answered with 429 use up max_actions", async () => {
  const maxActions = { amount: 3, perMs: HOUR_MS };
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()], { maxActions }) });
  network.setFault({ kind: "status", status: 429, retryAfter: "0" }, "POST");
  await network.advance(50 * MINUTE_MS);
  expect(network.postCount()).toBe(3);
  expect(holdReasonsOf(network)).toContain("max_actions");
});

const rejections: readonly (readonly [what: string, status: number])[] = [
  ["a 400", 400],
  ["a 404", 404],
  ["a 409", 409],
  ["a 422", 422],
];

for (const [what, status] of rejections) {
  test(`${what} to a POST gives the episode up, with a notification`, async () => {
    const { network } = await startWithFailedNode({
      config: remediationConfig([rebootOffline({ retry: withoutRetries })]),
    });
    network.setFault({ kind: "status", status }, "POST");
    await network.advance(30 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
    expect(actionLines(network)).toEqual(["reboot: refused"]);
    expect(episodeStates(network)).toEqual(["given_up"]);
    expect(notificationsOf(network, "given_up")).toHaveLength(1);
  });
}

test("an answer with `success: false` is a refusal, whatever its status", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    wrapTransport: refusing,
  });
  await network.advance(30 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ outcome: "refused", detail: expect.stringContaining("not today") }]);
  expect(episodeStates(network)).toEqual(["given_up"]);
});

/** Answers every POST with a refusal in the body and the status 200. */
function refusing(service: Transport): Transport {
  const body = new TextEncoder().encode('{"success": false, "message": "not today"}');
  return {
    request: (request, signal) =>
      request.method === "POST"
        ? Promise.resolve({ ok: true, value: { status: 200, headers: {}, body } })
        : service.request(request, signal),
    close: () => Promise.resolve(),
  };
}

test("an action whose node can't be read is not sent, and is tried again less and less often", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "status", status: 503 }, "GET /v1/nodes/");
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  const states = network.actions().map(({ state }) => state);
  expect(new Set(states)).toEqual(new Set(["withdrawn"]));
  expect(states.length).toBeGreaterThan(2);
  expect(states.length).toBeLessThan(8);
  expect(network.holdReasons(node!)).toEqual(["backoff"]);
  network.setFault(null);
  await network.advance(40 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
});

const replies = ["success", "empty_object", "no_content"] as const;
for (const actionReply of replies) {
  test(`a service that answers a reboot with ${actionReply.replace("_", " ")} is understood`, async () => {
    const { network } = await startWithFailedNode({
      config: remediationConfig([rebootOffline()]),
      scenario: { service: { ...defaultServiceOptions, actionReply } },
    });
    await network.advance(30 * MINUTE_MS);
    expect(network.actions()).toMatchObject([{ outcome: "verified", inDoubt: false }]);
  });
}

test("if the service restarts during an episode, the action is verified once it is back", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    remedy: "forced_reboot",
  });
  await network.advance(8 * MINUTE_MS);
  network.setFault({ kind: "reset" });
  await network.advance(2 * MINUTE_MS);
  network.setFault(null);
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(network.postCount()).toBe(2);
});

test("while the service is down for hours no node is acted on, and an earlier action is verified when it is back", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  await network.advanceUntil(() => network.postCount() > 0);
  network.setFault({ kind: "hang" });
  await network.advance(2 * HOUR_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  network.setFault(null);
  await network.advance(20 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: verified"]);
  expect(network.postCount()).toBe(1);
});

for (const [what, echoed, hours] of [
  ["an echoed duration is", 180, 3],
  ["no duration above the longest that can be requested, 30 days, is", 43_201, 2],
  ["no duration whose end is beyond all dates is", 200_000_000_000, 2],
] as const) {
  test(`${what} taken as that of the quarantine`, async () => {
    const wrapTransport = changingBodies((body, { path }) =>
      path.endsWith("/quarantine") ? JSON.stringify({ ...JSON.parse(body), duration_minutes: echoed }) : null,
    );
    const config = remediationConfig([rebootOffline({ steps: [steps.quarantine] })]);
    const { network } = await startWithFailedNode({ wrapTransport, config, remedy: "operator" });
    await network.advanceUntil(() => episodeStates(network)[0] === "quarantined");
    const [{ sentAt }, { quarantine }] = [network.actions()[0]!, network.episodes()[0]!];
    expect(quarantine).toMatchObject({ endsAt: sentAt! + hours * HOUR_MS });
  });
}
