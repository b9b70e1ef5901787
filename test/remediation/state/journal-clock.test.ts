import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { episodeLines, nodesActedOn } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";

const JUMP_MS = 100 * DAY_MS;
const trueTime = (context: QuietNetwork, jump: number) => context.daemon.clock.now() - jump;
const rows = (context: QuietNetwork) => [
  context.actions().length,
  context.episodes().length,
  context.decisions().length,
];

test("a wall clock that is 100 days ahead at one start prunes nothing, and leaves no later time ahead", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [first, second] = onePerRegion(context, 2);
  context.failedNodes(first!);
  await context.advance(40 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  const before = rows(context);
  context.daemon.clock.stepWallClock(JUMP_MS);
  await context.restart();
  await context.advance(HOUR_MS);
  expect(rows(context)).toEqual(before);
  // The cool-down of what was done before is remembered all the same.
  context.failedNodes(second!);
  await context.advance(20 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([first, second]);
  const { sentAt } = context.actions().at(-1)!;
  expect(Math.abs(sentAt! - trueTime(context, JUMP_MS))).toBeLessThan(30 * MINUTE_MS);
  context.daemon.clock.stepWallClock(-JUMP_MS);
  await context.restart();
  await context.advance(10 * MINUTE_MS);
  expect(Math.abs(context.daemon.remediationState.now() - context.daemon.clock.now())).toBeLessThan(5 * MINUTE_MS);
  await context.stop();
});

test("a wall clock that is 2 h ahead at a start frees nothing of max_actions, and ends no cool-down", async () => {
  const maxActions = { amount: 2, perMs: HOUR_MS };
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], { maxActions }) });
  const [first, second, third] = onePerRegion(context, 3);
  context.failedNodes(first!);
  await context.advance(10 * MINUTE_MS);
  context.failedNodes(second!);
  await context.advance(10 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([first, second]);
  context.daemon.clock.stepWallClock(2 * HOUR_MS);
  context.failedNodes(third!);
  await context.restart();
  await context.advance(20 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([first, second]);
  expect(context.holdReasons(third!)).toEqual(["max_actions"]);
  await context.advance(40 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([first, second, third]);
  await context.stop();
});

test("after a long downtime a wall clock that is wrong holds every action, until it is right", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  context.daemon.clock.stepWallClock(JUMP_MS);
  await context.restart({ downMs: DAY_MS });
  await context.advance(20 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(node!)).toEqual(["service_clock"]);
  expect(context.controller().view.explain(node!).policies[0]!.blockers[0]!.detail).toMatch(
    /wall clock .* is 100d ahead of/,
  );
  context.daemon.clock.stepWallClock(-JUMP_MS);
  await context.advance(2 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(context.daemon.remediationState.now()).toBe(context.daemon.clock.now());
  await context.stop();
});

test("where the clocks go on to disagree after a long downtime, the hold ends after an hour by the earlier of them", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  context.daemon.clock.stepWallClock(JUMP_MS);
  await context.restart({ downMs: DAY_MS });
  await context.advance(55 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(Math.abs(context.daemon.remediationState.now() - trueTime(context, JUMP_MS))).toBeLessThan(MINUTE_MS);
  await context.stop();
});

test("a first start with a wall clock that is ahead takes the service's time for the journal", async () => {
  const clock = createVirtualClock(START_MS);
  // The service is there, and the daemon not yet.
  const between = (service: Transport) => {
    clock.stepWallClock(JUMP_MS);
    return service;
  };
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [steps.reboot] })]),
    clock,
    between,
  });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(20 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(Math.abs(context.actions()[0]!.createdAt - trueTime(context, JUMP_MS))).toBeLessThan(20 * MINUTE_MS);
  await context.stop();
});

test("a service whose Date is days ahead at a start moves the journal's clock no more than a wall clock does", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { maxActions: { amount: 1, perMs: HOUR_MS } }),
  });
  const [first, second] = onePerRegion(context, 2);
  context.failedNodes(first!);
  await context.advance(10 * MINUTE_MS);
  context.failedNodes(second!);
  context.setFault({ kind: "clock_skew", skewMs: JUMP_MS });
  await context.restart();
  await context.advance(30 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([first]);
  expect(context.daemon.remediationState.now() - context.daemon.clock.now()).toBeLessThan(MINUTE_MS);
  await context.stop();
});

test("a cooldown that starts while the clocks disagree lasts as long as any other", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { stormCooldownMs: 30 * MINUTE_MS }),
  });
  const [node] = onePerRegion(context, 1);
  context.failedNodes(node!);
  context.daemon.clock.stepWallClock(2 * HOUR_MS);
  await context.restart({ downMs: 45 * MINUTE_MS });
  await context.advance(30 * MINUTE_MS);
  context.setFault({ kind: "stale_last_seen" });
  await context.advance(20 * MINUTE_MS);
  context.setFault(null);
  await context.advance(20 * MINUTE_MS);
  // The clocks were settled 10 minutes ago, and the cooldown ends in 10 minutes.
  expect(context.holdReasons(node!)).toEqual(["sight_cooldown"]);
  expect(context.postCount()).toBe(0);
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  await context.stop();
});
