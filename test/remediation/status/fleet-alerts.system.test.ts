import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { episodeStates, holdReasonsOf, nodesActedOn, notificationsOf } from "../../harness/remediation-results.ts";

/** Limits with storms only, without circuit breaker and incidents. */
const windy = {
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
} as const;

/** Makes nodes fail, which recover without an action after a while. */
function makeUnhealthy(network: QuietNetwork, nodes: readonly string[], minutes: number): void {
  const healAt = network.daemon.clock.monotonic() + START_MS + minutes * MINUTE_MS;
  for (const node of nodes)
    network.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt: healAt });
}

test("while 30% of the fleet are offline, a storm holds every node, and a cooldown follows", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], windy) });
  const [node] = network.nodes("us-east").slice(-1);
  network.failNode(node!);
  makeUnhealthy(network, network.nodes().slice(0, 18), 40);
  await network.advance(30 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["storm"]);
  const summary = expect.stringMatching(
    /^Storm: 1[3-9] of 60 nodes were unhealthy at 2026-03-01 \d\d:\d\d:\d\d UTC \(\d+ offline\), and the limit is 12 \(safety\.max_unhealthy\); no action is taken/,
  );
  expect(notificationsOf(network, "storm")).toMatchObject([{ severity: "critical", endsAt: null, summary }]);
  expect(network.daemon.log.lines.filter(({ message }) => message === "alert firing")).toMatchObject([
    { level: "error", fields: { alert: "storm", summary } },
  ]);
  await network.advance(30 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["storm_cooldown"]);
  expect(network.postCount()).toBe(0);
  await network.advance(30 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("a storm and an open breaker name the policy that fires on most nodes, although it only notifies", async () => {
  const when = 'node.region == "us-east" && node.status == "online"';
  const policies = [rebootOffline(), rebootOffline({ name: "report-region", when, steps: [steps.notify] })];
  const breaker = { share: 0, amount: 12, withinMs: HOUR_MS };
  const network = await startQuietNetwork({ config: remediationConfig(policies, { ...windy, breaker }) });
  const [node] = network.nodes("eu-west");
  network.failNode(node!);
  await network.advance(30 * MINUTE_MS);
  const counted = network.nodes("us-east").length;
  const { blockers } = network.explain(node!).policies[0]!;
  const storm = `${counted + 1} of 60 nodes are unhealthy (${counted} firing under report-region, 1 offline); the limit is 12 (storm)`;
  expect(blockers).toContainEqual({ reason: "storm", detail: storm });
  const opened = expect.stringContaining(`had fired or been lost (${counted} under report-region`);
  expect(blockers).toContainEqual({ reason: "breaker", detail: opened });
  expect(notificationsOf(network, "storm")).toMatchObject([
    { summary: expect.stringContaining(`${counted} firing under report-region`) },
  ]);
  expect(notificationsOf(network, "breaker")).toMatchObject([{ summary: opened }]);
});

test("nodes count towards a storm as soon as they are offline, before their timers fire", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], windy) });
  const [node] = network.nodes("us-east").slice(-1);
  network.failNode(node!);
  await network.advance(4 * MINUTE_MS);
  makeUnhealthy(network, network.nodes().slice(0, 18), 60);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(holdReasonsOf(network)).toContain("storm");
});

test("a new breach continues the same storm, which is notified once and survives a restart", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], windy) });
  const [node] = network.nodes("us-east").slice(-1);
  network.failNode(node!);
  makeUnhealthy(network, network.nodes().slice(0, 18), 15);
  await network.advance(30 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["storm_cooldown"]);
  makeUnhealthy(network, network.nodes().slice(0, 18), 15);
  await network.advance(5 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["storm"]);
  network.kill();
  await network.restart({ downMs: 15 * MINUTE_MS });
  await network.advance(5 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["storm_cooldown"]);
  expect(network.postCount()).toBe(0);
  expect(new Set(notificationsOf(network, "storm").map(({ key }) => key)).size).toBe(1);
});

test("disrupted nodes count as unhealthy, so healing does not hide a storm", async () => {
  const config = remediationConfig([rebootOffline({ steps: [steps.quarantine] })], {
    ...windy,
    canary: false,
    maxUnhealthy: { share: 0.1 },
    maxDisrupted: { share: 1, amount: 100 },
    maxActions: { amount: 100, perMs: HOUR_MS },
  });
  const network = await startQuietNetwork({ config });
  const unhealthy = onePerRegion(network, 8);
  for (const node of unhealthy) {
    network.failNode(node, "operator");
    await network.advance(8 * MINUTE_MS);
  }
  // Six of 60 are 10%: the seventh makes a storm, although the others are in quarantine.
  expect(nodesActedOn(network)).toHaveLength(6);
  expect(network.holdReasons(unhealthy[7]!)).toEqual(["storm"]);
});

test("a region that went offline is not acted on while its nodes come back one by one, and no action is repeated", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  for (const [index, node] of network.nodes("ap-southeast").entries()) makeUnhealthy(network, [node], 30 + 4 * index);
  await network.advance(90 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(holdReasonsOf(network)).toEqual(["correlated"]);
  expect(notificationsOf(network, "incident")).toMatchObject([
    { region: "ap-southeast", endsAt: null },
    { region: "ap-southeast", endsAt: expect.any(Number) },
  ]);
});

test("the remaining nodes of an incident are healed one by one after its cooldown, which a restart does not shorten", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [left, ...others] = network.nodes("ap-southeast");
  network.failNode(left!);
  makeUnhealthy(network, others, 20);
  await network.advance(35 * MINUTE_MS);
  network.kill();
  await network.restart();
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(left!)).toEqual(["correlated"]);
  await network.advance(30 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([left]);
});

test("an incident survives a restart", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "region_dark", region: "ap-southeast" });
  await network.advance(10 * MINUTE_MS);
  network.kill();
  await network.restart();
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(network.nodes("ap-southeast")[0]!)).toEqual(["correlated"]);
});

test("nodes of one region that become unhealthy far apart in time are not an incident", async () => {
  const loose = { maxDisruptedPer: { region: null, country: null } };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], loose) });
  for (const node of network.nodes("us-west").slice(0, 6)) {
    network.failNode(node);
    await network.advance(8 * MINUTE_MS);
  }
  await network.advance(10 * MINUTE_MS);
  expect(nodesActedOn(network).length).toBeGreaterThan(3);
  expect(holdReasonsOf(network)).not.toContain("correlated");
  expect(episodeStates(network)).not.toContain("given_up");
});

test("after a restart while the service does not answer, an alert that may still last is sent again", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], windy) });
  makeUnhealthy(network, network.nodes().slice(0, 18), 60);
  await network.advance(10 * MINUTE_MS);
  const [storm] = notificationsOf(network, "storm");
  network.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(notificationsOf(network, "storm")).toEqual([storm, storm]);
});

test("untrusted data that lasts across reloads stays one alert, which is resolved when the data is trusted", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "stale_last_seen" });
  await network.advance(10 * MINUTE_MS);
  for (const maxInFlight of [2, 3]) {
    await network.reload({ config: remediationConfig([rebootOffline()], { maxInFlight }) });
    await network.advance(5 * MINUTE_MS);
  }
  network.setFault(null);
  await network.advance(5 * MINUTE_MS);
  const [alert, ...others] = notificationsOf(network, "untrusted");
  expect(others).toEqual([{ ...alert, endsAt: expect.any(Number) }]);
  expect(network.daemon.notifier.activeNotifications()).toEqual([]);
});

test("untrusted data that lasts across a restart stays one alert, which is resolved when the data is trusted", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "stale_last_seen" });
  await network.advance(10 * MINUTE_MS);
  const [alert] = notificationsOf(network, "untrusted");
  network.kill();
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  network.setFault(null);
  await network.advance(5 * MINUTE_MS);
  const [again, over, ...others] = notificationsOf(network, "untrusted").slice(1);
  expect(again).toMatchObject({ key: alert!.key, startsAt: alert!.startsAt, endsAt: null });
  expect(over).toMatchObject({ key: alert!.key, endsAt: expect.any(Number) });
  expect(others).toEqual([]);
});

test.each([0, 60])("an alert that ended while the daemon was down for %i minutes more is resolved", async (minutes) => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "stale_last_seen" });
  await network.advance(10 * MINUTE_MS);
  const [alert] = notificationsOf(network, "untrusted");
  network.kill();
  network.setFault(null);
  await network.restart({ downMs: minutes * MINUTE_MS });
  await network.advance(10 * MINUTE_MS);
  expect(notificationsOf(network, "untrusted").at(-1)).toMatchObject({ key: alert!.key, endsAt: expect.any(Number) });
  expect(network.daemon.notifier.activeNotifications()).toEqual([]);
});

test("an incident that lasts across a reload is sent once, and one that a reload ends is resolved", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "region_dark", region: "ap-southeast" });
  await network.advance(15 * MINUTE_MS);
  await network.reload({ config: remediationConfig([rebootOffline()], { maxInFlight: 2 }) });
  await network.advance(5 * MINUTE_MS);
  expect(notificationsOf(network, "incident")).toHaveLength(1);
  await network.reload({ config: remediationConfig([], { stormCooldownMs: 0 }) });
  await network.advance(5 * MINUTE_MS);
  expect(notificationsOf(network, "incident")).toMatchObject([
    { region: "ap-southeast", endsAt: null },
    { region: "ap-southeast", endsAt: expect.any(Number) },
  ]);
});

test("an alert about the fleet of one service is resolved after a reload to another service", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], windy) });
  makeUnhealthy(network, network.nodes().slice(0, 18), 15);
  await network.advance(10 * MINUTE_MS);
  const [storm] = notificationsOf(network, "storm");
  await network.reload({ serviceUrl: "https://other.example.net" });
  await network.advance(5 * MINUTE_MS);
  expect(notificationsOf(network, "storm")).toContainEqual({ ...storm, endsAt: expect.any(Number) });
});
