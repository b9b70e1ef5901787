import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { fail, ok, type Result } from "../../../src/base/result.ts";
import type { ExternalBlocker } from "../../../src/model/policy/policy.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import type { ExternalBlockers } from "../../../src/model/ports.ts";
import { episodeLines, nodesActedOn } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";

/** A Prometheus and an Alertmanager that say what a test wants, and count how often they are asked. */
function oracle() {
  const asked: string[] = [];
  const answers = { query: ok(false) as Result<boolean, string>, alerts: ok(false) as Result<boolean, string> };
  const externalBlockers: ExternalBlockers = {
    hasQueryResult(query) {
      asked.push(query);
      return Promise.resolve(answers.query);
    },
    hasFiringAlerts(matchers) {
      asked.push(matchers.join(","));
      return Promise.resolve(answers.alerts);
    },
  };
  return { asked, said: answers, obstacles: externalBlockers };
}

const query: ExternalBlocker = { kind: "query", query: 'ALERTS{alertname="Upstream"}' };
const alerts: ExternalBlocker = { kind: "alerts", matchers: ['severity="critical"'] };
const reasonsIn = (context: QuietNetwork) => context.decisions().at(-1)!.blockers;

test("blocked_by: what blocks holds a policy until it blocks no more", async () => {
  const { said: answers, obstacles: externalBlockers } = oracle();
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ blockedBy: [query, alerts] })]),
    externalBlockers,
  });
  const [node] = context.nodes("us-east");
  answers.query = ok(true);
  answers.alerts = ok(true);
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["blocked_by", "blocked_by"]);
  answers.query = ok(false);
  await context.advance(5 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["blocked_by"]);
  expect(context.postCount()).toBe(0);
  answers.alerts = ok(false);
  await context.advance(20 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("blocked_by: one that can't be asked blocks, and says so", async () => {
  const { said: answers, obstacles: externalBlockers } = oracle();
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  answers.query = fail("connection refused");
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(reasonsIn(context)).toMatchObject([
    { reason: "blocked_by", detail: expect.stringContaining("connection refused") },
  ]);
  await context.stop();
});

test("blocked_by: it is asked again right before the POST, and what blocks by then keeps it from being sent", async () => {
  const { asked, said: answers, obstacles: externalBlockers } = oracle();
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  context.controller().operatorCommands.pause("a test");
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => asked.length > 0);
  await context.advance(10 * SECOND_MS);
  // Quiet by the answer of ten seconds ago, and no more by now.
  answers.query = ok(true);
  context.controller().operatorCommands.resume();
  await context.advance(SECOND_MS);
  expect(asked).toHaveLength(2);
  expect(context.actions()).toMatchObject([{ state: "withdrawn", detail: expect.stringContaining("blocked_by") }]);
  expect(context.postCount()).toBe(0);
  answers.query = ok(false);
  await context.advance(15 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

test("blocked_by: no query runs while no node is unhealthy", async () => {
  const { asked, obstacles: externalBlockers } = oracle();
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  await context.advance(HOUR_MS);
  expect(asked).toEqual([]);
  await context.stop();
});

/** From the start of a test until that many minutes after. */
const until = (minutes: number): TimeInterval => ({
  name: "early",
  intervals: [{ times: [{ startMinute: 0, endMinute: minutes }] }],
});

test("a window that closes between the decision and the POST keeps it from being sent", async () => {
  const rules = { ...remediationRules([rebootOffline({ windows: ["early"] })]), intervals: [until(15)] };
  const context = await startQuietNetwork({ rules });
  context.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  // It fires two seconds before the window closes, and the fresh read takes longer.
  await context.advance(START_MS + 15 * MINUTE_MS - 2 * SECOND_MS - 5 * MINUTE_MS - context.daemon.clock.now());
  context.failedNodes(context.nodes("us-east")[0]!);
  const closes = START_MS + 15 * MINUTE_MS;
  await context.advanceUntil(() => context.actions().length > 0 || context.daemon.clock.now() >= closes);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(context.nodes("us-east")[0]!)).toEqual(["window"]);
  await context.stop();
});

test("a window is one of new actions: a step that is under way as it closes is judged, and the next one waits", async () => {
  const rules = { ...remediationRules([rebootOffline({ windows: ["early"] })]), intervals: [until(15)] };
  const context = await startQuietNetwork({ rules });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "forced_reboot");
  await context.advance(HOUR_MS);
  expect(context.actions()).toMatchObject([{ outcome: "ineffective" }]);
  expect(episodeLines(context)).toEqual(["firing"]);
  expect(context.holdReasons(node!)).toEqual(["window"]);
  await context.stop();
});

test("a window that is open by the service's clock alone is closed: one of both clocks is wrong", async () => {
  const rules = { ...remediationRules([rebootOffline({ windows: ["early"] })]), intervals: [until(60)] };
  const context = await startQuietNetwork({ rules });
  context.daemon.clock.stepWallClock(2 * HOUR_MS);
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(context.nodes("us-east")[0]!)).toEqual(["window"]);
  await context.stop();
});

test("a window must be open by our clock and by the service's: a clock that was set opens none", async () => {
  const rules = { ...remediationRules([rebootOffline({ windows: ["early"] })]), intervals: [until(10)] };
  const context = await startQuietNetwork({ rules });
  await context.advance(10 * MINUTE_MS);
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["window"]);
  context.daemon.clock.stepWallClock(-20 * MINUTE_MS);
  await context.advance(5 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["window"]);
  expect(context.postCount()).toBe(0);
  await context.stop();
});
