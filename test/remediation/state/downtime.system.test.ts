import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { churnAfterReboots, noFailureRates, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { defaultSafety, rebootOffline, remediationConfig, withoutLimits } from "../../harness/policies.ts";

test("the cooldown of a storm that was active when the process stopped starts over after a longer downtime", async () => {
  const match = 'node.region == "us-east"';
  const safety = { ...withoutLimits, maxUnhealthy: { share: 0.2 }, stormCooldownMs: 30 * MINUTE_MS };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline({ match })], safety) });
  const [node] = network.nodes("us-east");
  const others = network.nodes().filter((each) => !network.nodes("us-east").includes(each));
  network.failNode(node!);
  for (const each of others.slice(0, 20))
    network.interventions.startFailure(each, {
      failureMode: "outage",
      remedy: "operator",
      recoverAt: START_MS + HOUR_MS,
    });
  await network.advance(20 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["storm"]);
  await network.restart({ downMs: 2 * HOUR_MS });
  await network.advance(28 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["storm_cooldown"]);
  expect(network.postCount()).toBe(0);
  await network.advance(5 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("nodes that were lost before a downtime don't count toward the breaker again", async () => {
  const churn = churnAfterReboots({ vanishAfterReboot: 1 });
  const breaker = { share: 0, amount: 3, withinMs: HOUR_MS };
  const config = remediationConfig([rebootOffline()], { ...withoutLimits, breaker });
  const network = await startQuietNetwork({ config, scenario: { nodes: 40, rates: noFailureRates, churn } });
  const [first, second, third, fourth] = network.nodes();
  for (const node of [first!, second!]) network.failNode(node);
  await network.advance(30 * MINUTE_MS);
  expect(network.nodes()).toHaveLength(38);
  await network.restart({ downMs: 5 * HOUR_MS });
  await network.advance(5 * MINUTE_MS);
  for (const node of [third!, fourth!]) network.failNode(node);
  await network.advance(20 * MINUTE_MS);
  expect(network.controller().view.status().breaker).toBeNull();
});

test("an incident that began while the journal's clock was behind lasts as long as others once the clock is corrected", async () => {
  const safety = { ...withoutLimits, correlated: defaultSafety.correlated };
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], safety) });
  network.daemon.clock.stepWallClock(-10 * HOUR_MS);
  await network.restart({ downMs: 10 * HOUR_MS });
  await network.advance(2 * HOUR_MS);
  const region = network.nodes("us-east");
  for (const node of region) network.failNode(node);
  await network.advance(HOUR_MS);
  expect(network.holdReasons(region[0]!)).toEqual(["correlated"]);
  network.daemon.clock.stepWallClock(10 * HOUR_MS);
  await network.restart();
  await network.advance(3 * HOUR_MS);
  expect(network.holdReasons(region[0]!)).toEqual(["correlated"]);
  expect(network.postCount()).toBe(0);
  await network.advance(3 * HOUR_MS);
  expect(network.postCount()).toBeGreaterThan(0);
});
