import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { fail, ok, type Result } from "../../../src/base/result.ts";
import type { ExternalBlocker } from "../../../src/model/policy/policy.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import type { ExternalBlockers } from "../../../src/model/ports.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";
import { episodeStates, nodesActedOn } from "../../harness/remediation-results.ts";
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
const reasonsIn = (network: QuietNetwork) => network.decisions().at(-1)!.blockers;

test("blocked_by: what blocks holds a policy until it blocks no more", async () => {
  const { said: answers, obstacles: externalBlockers } = oracle();
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ blockedBy: [query, alerts] })]),
    externalBlockers,
  });
  const [node] = network.nodes("us-east");
  answers.query = ok(true);
  answers.alerts = ok(true);
  network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["blocked_by", "blocked_by"]);
  answers.query = ok(false);
  await network.advance(5 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["blocked_by"]);
  expect(network.postCount()).toBe(0);
  answers.alerts = ok(false);
  await network.advance(20 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
  await network.stop();
});

test("blocked_by: one that can't be asked blocks, and says so", async () => {
  const { said: answers, obstacles: externalBlockers } = oracle();
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  answers.query = fail("connection refused");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(reasonsIn(network)).toMatchObject([
    { reason: "blocked_by", detail: expect.stringContaining("connection refused") },
  ]);
  await network.stop();
});

test("blocked_by: it is asked again right before the POST, and what blocks by then keeps it from being sent", async () => {
  const { asked, said: answers, obstacles: externalBlockers } = oracle();
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  network.controller().operatorCommands.pause("a test");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => asked.length > 0);
  await network.advance(10 * SECOND_MS);
  // Quiet by the answer of ten seconds ago, and no more by now.
  answers.query = ok(true);
  network.controller().operatorCommands.resume();
  await network.advance(SECOND_MS);
  expect(asked).toHaveLength(2);
  expect(network.actions()).toMatchObject([{ state: "withdrawn", detail: expect.stringContaining("blocked_by") }]);
  expect(network.postCount()).toBe(0);
  answers.query = ok(false);
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  await network.stop();
});

test("blocked_by: no query runs while no node is unhealthy", async () => {
  const { asked, obstacles: externalBlockers } = oracle();
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  await network.advance(HOUR_MS);
  expect(asked).toEqual([]);
  await network.stop();
});

/** From the start of a test until that many minutes after. */
const until = (minutes: number): TimeInterval => ({
  name: "early",
  intervals: [{ times: [{ startMinute: 0, endMinute: minutes }] }],
});

test("a window that closes between the decision and the POST keeps it from being sent", async () => {
  const rules = { ...remediationRules([rebootOffline({ windows: ["early"] })]), intervals: [until(15)] };
  const network = await startQuietNetwork({ rules });
  network.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  // It fires two seconds before the window closes, and the fresh read takes longer.
  await network.advance(START_MS + 15 * MINUTE_MS - 2 * SECOND_MS - 5 * MINUTE_MS - network.daemon.clock.now());
  network.failNode(network.nodes("us-east")[0]!);
  const closes = START_MS + 15 * MINUTE_MS;
  await network.advanceUntil(() => network.actions().length > 0 || network.daemon.clock.now() >= closes);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(network.nodes("us-east")[0]!)).toEqual(["window"]);
  await network.stop();
});

test("a window is one of new actions: a step that is under way as it closes is judged, and the next one waits", async () => {
  const rules = { ...remediationRules([rebootOffline({ windows: ["early"] })]), intervals: [until(15)] };
  const network = await startQuietNetwork({ rules });
  const [node] = network.nodes("us-east");
  network.failNode(node!, "forced_reboot");
  await network.advance(HOUR_MS);
  expect(network.actions()).toMatchObject([{ outcome: "ineffective" }]);
  expect(episodeStates(network)).toEqual(["firing"]);
  expect(network.holdReasons(node!)).toEqual(["window"]);
  await network.stop();
});

test("a window that is open by the service's clock alone is closed: one of both clocks is wrong", async () => {
  const rules = { ...remediationRules([rebootOffline({ windows: ["early"] })]), intervals: [until(60)] };
  const network = await startQuietNetwork({ rules });
  network.daemon.clock.stepWallClock(2 * HOUR_MS);
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(network.nodes("us-east")[0]!)).toEqual(["window"]);
  await network.stop();
});

test("a window must be open by our clock and by the service's: a clock that was set opens none", async () => {
  const rules = { ...remediationRules([rebootOffline({ windows: ["early"] })]), intervals: [until(10)] };
  const network = await startQuietNetwork({ rules });
  await network.advance(10 * MINUTE_MS);
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["window"]);
  network.daemon.clock.stepWallClock(-20 * MINUTE_MS);
  await network.advance(5 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["window"]);
  expect(network.postCount()).toBe(0);
  await network.stop();
});
