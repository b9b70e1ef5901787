import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { actionLines, episodeLines, nodesActedOn } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { startQuietNetwork } from "../../harness/quiet-network.ts";

const byLastSeen = rebootOffline({ when: 'node.status == "offline" && now - node.last_seen > duration("8m")' });

for (const hours of [-30, 5]) {
  test(`our wall clock set by ${hours} h makes no node stale, hurries no timer, and touches nobody`, async () => {
    const policies = [
      byLastSeen,
      rebootOffline({ name: "stale", when: 'now - node.last_seen > duration("4m")', forMs: 0 }),
    ];
    const context = await startQuietNetwork({ rules: remediationRules(policies) });
    const [node] = context.nodes("us-east");
    context.daemon.clock.stepWallClock(hours * HOUR_MS);
    context.interventions.startFailure(node!, { failureMode: "hot", remedy: "person" });
    await context.advance(20 * MINUTE_MS);
    expect(context.postCount()).toBe(0);
    expect(context.episodes()).toEqual([]);
    await context.stop();
  });

  test(`our wall clock set by ${hours} h in mid-episode changes none of its times`, async () => {
    const retry = { episodes: 5, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
    const context = await startQuietNetwork({
      rules: remediationRules([rebootOffline({ steps: [steps.reboot], retry })]),
    });
    context.failedNodes(context.nodes("us-east")[0]!, "person");
    await context.advance(3 * MINUTE_MS);
    context.daemon.clock.stepWallClock(hours * HOUR_MS);
    await context.advance(MINUTE_MS);
    expect(context.postCount()).toBe(0);
    await context.advance(4 * MINUTE_MS);
    expect(context.postCount()).toBe(1);
    context.daemon.clock.stepWallClock(-hours * HOUR_MS);
    await context.advance(5 * MINUTE_MS);
    expect(actionLines(context)).toEqual(["reboot: null"]);
    await context.advance(5 * MINUTE_MS);
    expect(actionLines(context)).toEqual(["reboot: ineffective"]);
    // Given up: the next try is an hour from now, whatever a clock on the wall says.
    context.daemon.clock.stepWallClock(hours * HOUR_MS);
    await context.advance(45 * MINUTE_MS);
    expect(context.postCount()).toBe(1);
    await context.advance(20 * MINUTE_MS);
    expect(context.postCount()).toBe(2);
    await context.stop();
  });
}

test("a wall clock that was set back over a restart makes no cool-down longer than what is left of it, nor shorter", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [steps.reboot] })], { cooldownMs: HOUR_MS }),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(30 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  context.failedNodes(node!);
  context.daemon.clock.stepWallClock(-24 * HOUR_MS);
  await context.restart();
  await context.advance(35 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["cooldown"]);
  await context.advance(35 * MINUTE_MS);
  expect(context.postCount()).toBe(2);
  await context.stop();
});

for (const minutes of [-90, 90]) {
  test(`a service whose clock is off by ${minutes} min from one moment to the next touches nobody`, async () => {
    const context = await startQuietNetwork({
      rules: remediationRules([{ ...byLastSeen, when: 'now - node.last_seen > duration("3m")', forMs: 0 }]),
    });
    context.setFault({ kind: "clock_skew", skewMs: minutes * MINUTE_MS });
    await context.advance(HOUR_MS);
    expect(context.postCount()).toBe(0);
    context.setFault(null);
    await context.advance(HOUR_MS);
    expect(context.postCount()).toBe(0);
    await context.stop();
  });
}

test("a node that is unhealthy while our clock is wrong by days is healed all the same", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([byLastSeen]) });
  context.daemon.clock.stepWallClock(100 * HOUR_MS);
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(40 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});
