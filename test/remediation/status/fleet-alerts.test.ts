import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { episodeLines, holdReasonsOf, nodesActedOn, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";

/** Storms alone: neither the breaker nor an incident holds anybody. */
const windy = {
  breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
} as const;

/** Nodes fall ill, and recover by themselves after a while. */
function makeUnhealthy(context: QuietNetwork, nodes: readonly string[], minutes: number): void {
  const healAt = context.daemon.clock.monotonic() + START_MS + minutes * MINUTE_MS;
  for (const node of nodes)
    context.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt: healAt });
}

test("a storm: 30 % of the fleet are offline, no node is acted on, and a cool-down follows", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], windy) });
  const [node] = context.nodes("us-east").slice(-1);
  context.failedNodes(node!);
  makeUnhealthy(context, context.nodes().slice(0, 18), 40);
  await context.advance(30 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["storm"]);
  expect(notificationLines(context, "storm")).toMatchObject([{ severity: "critical", endsAt: null }]);
  await context.advance(30 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["storm_cooldown"]);
  expect(context.postCount()).toBe(0);
  await context.advance(30 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("nodes count towards a storm as soon as they are offline, whatever the policies wait for", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], windy) });
  const [node] = context.nodes("us-east").slice(-1);
  context.failedNodes(node!);
  await context.advance(4 * MINUTE_MS);
  makeUnhealthy(context, context.nodes().slice(0, 18), 60);
  await context.advance(10 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(holdReasonsOf(context)).toContain("storm");
  await context.stop();
});

test("a new breach ends the cool-down: it is the same storm, reported once, and it outlives a restart", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], windy) });
  const [node] = context.nodes("us-east").slice(-1);
  context.failedNodes(node!);
  makeUnhealthy(context, context.nodes().slice(0, 18), 15);
  await context.advance(30 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["storm_cooldown"]);
  makeUnhealthy(context, context.nodes().slice(0, 18), 15);
  await context.advance(5 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["storm"]);
  context.kill();
  await context.restart({ downMs: 15 * MINUTE_MS });
  await context.advance(5 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["storm_cooldown"]);
  expect(context.postCount()).toBe(0);
  expect(new Set(notificationLines(context, "storm").map(({ key }) => key)).size).toBe(1);
  await context.stop();
});

test("nodes under our hand count as unhealthy: healing does not hide a storm", async () => {
  const rules = remediationRules([rebootOffline({ steps: [steps.quarantine] })], {
    ...windy,
    canary: false,
    maxUnhealthy: { share: 0.1 },
    maxDisrupted: { share: 1, amount: 100 },
    maxActions: { amount: 100, perMs: HOUR_MS },
  });
  const context = await startQuietNetwork({ rules });
  const unhealthy = onePerRegion(context, 8);
  for (const node of unhealthy) {
    context.failedNodes(node, "person");
    await context.advance(8 * MINUTE_MS);
  }
  // Six of 60 are 10 %: with the seventh it is a storm, though all the others are in quarantine.
  expect(nodesActedOn(context)).toHaveLength(6);
  expect(context.holdReasons(unhealthy[7]!)).toEqual(["storm"]);
  await context.stop();
});

test("a region that went dark is not acted on while its nodes come back one by one, and nothing is done twice over", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  for (const [index, node] of context.nodes("ap-southeast").entries()) makeUnhealthy(context, [node], 30 + 4 * index);
  await context.advance(90 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(holdReasonsOf(context)).toEqual(["correlated"]);
  expect(notificationLines(context, "incident")).toMatchObject([
    { region: "ap-southeast", endsAt: null },
    { region: "ap-southeast", endsAt: expect.any(Number) },
  ]);
  await context.stop();
});

test("what is left of an incident after its cool-down is healed node by node, and a restart makes that no shorter", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [left, ...others] = context.nodes("ap-southeast");
  context.failedNodes(left!);
  makeUnhealthy(context, others, 20);
  await context.advance(35 * MINUTE_MS);
  context.kill();
  await context.restart();
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(left!)).toEqual(["correlated"]);
  await context.advance(30 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([left]);
  await context.stop();
});

test("an incident outlives a restart", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.setFault({ kind: "region_dark", region: "ap-southeast" });
  await context.advance(10 * MINUTE_MS);
  context.kill();
  await context.restart();
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(context.nodes("ap-southeast")[0]!)).toEqual(["correlated"]);
  await context.stop();
});

test("nodes of one region that become unhealthy far apart in time are no incident", async () => {
  const loose = { maxDisruptedPer: { region: null, country: null } };
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], loose) });
  for (const node of context.nodes("us-west").slice(0, 6)) {
    context.failedNodes(node);
    await context.advance(8 * MINUTE_MS);
  }
  await context.advance(10 * MINUTE_MS);
  expect(nodesActedOn(context).length).toBeGreaterThan(3);
  expect(holdReasonsOf(context)).not.toContain("correlated");
  expect(episodeLines(context)).not.toContain("given_up");
  await context.stop();
});
