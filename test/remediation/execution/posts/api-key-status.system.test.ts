import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { onePerRegion, startQuietNetwork, startWithFailedNode } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";
import { episodeStates, holdReasonsOf, notificationsOf } from "../../../harness/remediation-results.ts";

for (const status of [401, 403] as const) {
  test(`a ${status} to a POST is notified once, however often it is repeated, and its end once`, async () => {
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline()], { canary: false, maxInFlight: 5 }),
    });
    for (const node of onePerRegion(network, 2)) network.failNode(node);
    network.setFault({ kind: "status", status }, "POST");
    await network.advance(90 * MINUTE_MS);
    expect(network.postCount()).toBeGreaterThan(2);
    expect(notificationsOf(network, "credentials")).toMatchObject([
      { severity: "critical", endsAt: null, summary: expect.stringContaining(`answered ${status}`) },
    ]);
    network.setFault(null);
    await network.advance(HOUR_MS);
    expect(episodeStates(network)).toEqual(["healed", "healed"]);
    expect(notificationsOf(network, "credentials")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  });
}

test("after a restart with a valid key an action is tried immediately, and the rejection is resolved", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "status", status: 403 }, "POST");
  await network.advanceUntil(() => notificationsOf(network, "credentials").length > 0);
  network.setFault(null);
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(network.postCount()).toBe(2);
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  const notifications = notificationsOf(network, "credentials");
  expect(notifications.map(({ endsAt }) => endsAt === null)).toEqual([true, true, false]);
  expect(new Set(notifications.map(({ key }) => key)).size).toBe(1);
});

test("a rejection that no action follows is resolved after two hours", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes("us-east");
  network.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: network.daemon.clock.now() + 12 * MINUTE_MS,
  });
  network.setFault({ kind: "status", status: 403 }, "POST");
  await network.advance(HOUR_MS);
  expect(notificationsOf(network, "credentials")).toHaveLength(1);
  await network.advance(2 * HOUR_MS);
  expect(notificationsOf(network, "credentials")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
});

test("a 403 to the actions on some nodes does not keep the others from being healed", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [first, second, third, fourth] = onePerRegion(network, 4);
  const fault = { kind: "status", status: 403 } as const;
  network.setFaults([first, second].map((node) => ({ fault, match: `POST /v1/nodes/${node}` })));
  for (const node of [first, second]) network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  for (const node of [third, fourth]) network.failNode(node!);
  await network.advance(HOUR_MS);
  expect([third, fourth].map((node) => network.status(node!))).toEqual(["online", "online"]);
  const decided = network.decisions().length;
  await network.advance(100 * MINUTE_MS);
  // Since other actions were accepted, the key is not the cause.
  const later = holdReasonsOf({ decisions: () => network.decisions().slice(decided) });
  expect(later).toContain("backoff");
  expect(later).not.toContain("credentials");
  expect(notificationsOf(network, "credentials").at(-1)).toMatchObject({ endsAt: expect.any(Number) });
  network.setFault(null);
  await network.advance(2 * HOUR_MS);
  expect(new Set(episodeStates(network))).toEqual(new Set(["healed"]));
});

test("a node that was forbidden before another action was accepted shows a later rejection of the key", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [forbidden, other] = onePerRegion(network, 2);
  network.setFault({ kind: "status", status: 403 }, `POST /v1/nodes/${forbidden}`);
  network.interventions.startFailure(forbidden!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: network.daemon.clock.now() + 12 * MINUTE_MS,
  });
  await network.advanceUntil(() => notificationsOf(network, "credentials").length > 0);
  network.failNode(other!);
  await network.advance(3 * HOUR_MS);
  expect(new Set(episodeStates(network))).toEqual(new Set(["cleared", "healed"]));
  network.setFault({ kind: "status", status: 403 }, "POST");
  network.failNode(forbidden!);
  await network.advance(HOUR_MS);
  expect(notificationsOf(network, "credentials").map(({ endsAt }) => endsAt === null)).toEqual([true, false, true]);
});
