import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { fail, ok, type Result } from "../../../src/base/result.ts";
import type { ExternalBlocker } from "../../../src/model/policy/policy.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import type { ExternalBlockers } from "../../../src/model/ports.ts";
import { nameOfExternalBlocker } from "../../../src/remediation/evaluation/external-blockers.ts";
import { type QuietNetwork, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";
import { episodeStates, nodesActedOn } from "../../harness/remediation-results.ts";

/** A Prometheus and an Alertmanager that count the queries, with responses set by the test. */
function startAnswers() {
  const queries: string[] = [];
  const answers = { query: ok(false) as Result<boolean, string>, alerts: ok(false) as Result<boolean, string> };
  const externalBlockers: ExternalBlockers = {
    blocks(blockedBy) {
      queries.push(blockedBy.kind === "query" ? blockedBy.query : blockedBy.matchers.join(","));
      return Promise.resolve(answers[blockedBy.kind]);
    },
  };
  return { queries, answers, externalBlockers };
}

const query: ExternalBlocker = { kind: "query", query: 'ALERTS{alertname="Upstream"}' };
const alerts: ExternalBlocker = { kind: "alerts", matchers: ['severity="critical"'] };
const reasonsIn = (network: QuietNetwork) => network.decisions().at(-1)!.blockers;

test("a query or a matcher of several lines is named on one", () => {
  expect(nameOfExternalBlocker({ kind: "query", query: "up\n  == 0\n" })).toBe("the query up == 0");
  const matchers = ['severity="critical"\n', 'team\n="edge"'];
  expect(nameOfExternalBlocker({ kind: "alerts", matchers })).toBe('alerts with severity="critical", team ="edge"');
});

test("blocked_by holds a policy until the blocker ends", async () => {
  const { answers, externalBlockers } = startAnswers();
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ blockedBy: [query, alerts] })]),
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
});

test("blocked_by holds a policy while the query fails, and reports the error", async () => {
  const { answers, externalBlockers } = startAnswers();
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  answers.query = fail("connection refused");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(reasonsIn(network)).toMatchObject([
    { reason: "blocked_by", detail: expect.stringContaining("connection refused") },
  ]);
});

test("blocked_by is queried again right before the POST, and a new blocker prevents it", async () => {
  const { queries, answers, externalBlockers } = startAnswers();
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  await network.commands().pause("a test");
  network.failNode(network.nodes("us-east")[0]!);
  await network.advanceUntil(() => queries.length > 0);
  await network.advance(10 * SECOND_MS);
  // Ten seconds ago nothing blocked; now it does.
  answers.query = ok(true);
  await network.commands().resume();
  await network.advance(SECOND_MS);
  expect(queries).toHaveLength(2);
  expect(network.actions()).toMatchObject([{ state: "withdrawn", detail: expect.stringContaining("blocked_by") }]);
  expect(network.postCount()).toBe(0);
  answers.query = ok(false);
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("blocked_by runs no query while no node is unhealthy", async () => {
  const { queries, externalBlockers } = startAnswers();
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ blockedBy: [query] })]),
    externalBlockers,
  });
  await network.advance(HOUR_MS);
  expect(queries).toEqual([]);
});

/** A window from the start of the test until `minutes` later. */
const until = (minutes: number): TimeInterval => ({
  name: "early",
  intervals: [{ times: [{ startMinute: 0, endMinute: minutes }] }],
});

test("a window that closes between the decision and the POST prevents the POST", async () => {
  const config = { ...remediationConfig([rebootOffline({ windows: ["early"] })]), time_intervals: [until(15)] };
  const network = await startQuietNetwork({ config });
  network.setFault({ kind: "slow_drip", bytesPerSecond: 60 }, "GET /v1/nodes/");
  // The timer fires two seconds before the window closes, and reading the node takes longer.
  await network.advance(START_MS + 15 * MINUTE_MS - 2 * SECOND_MS - 5 * MINUTE_MS - network.daemon.clock.now());
  network.failNode(network.nodes("us-east")[0]!);
  const closes = START_MS + 15 * MINUTE_MS;
  await network.advanceUntil(() => network.actions().length > 0 || network.daemon.clock.now() >= closes);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(network.nodes("us-east")[0]!)).toEqual(["window"]);
});

test("when a window closes, the step under way is verified, and the next one waits", async () => {
  const config = { ...remediationConfig([rebootOffline({ windows: ["early"] })]), time_intervals: [until(15)] };
  const { network, node } = await startWithFailedNode({ config, remedy: "forced_reboot" });
  await network.advance(HOUR_MS);
  expect(network.actions()).toMatchObject([{ outcome: "ineffective" }]);
  expect(episodeStates(network)).toEqual(["firing"]);
  expect(network.holdReasons(node)).toEqual(["window"]);
});

test("a window that is open only by the service's clock holds the policy", async () => {
  const config = { ...remediationConfig([rebootOffline({ windows: ["early"] })]), time_intervals: [until(60)] };
  const network = await startQuietNetwork({ config });
  network.daemon.clock.stepWallClock(2 * HOUR_MS);
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(network.nodes("us-east")[0]!)).toEqual(["window"]);
});

test("a window that is open only by our wall clock holds the policy", async () => {
  const config = { ...remediationConfig([rebootOffline({ windows: ["early"] })]), time_intervals: [until(10)] };
  const network = await startQuietNetwork({ config });
  await network.advance(10 * MINUTE_MS);
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["window"]);
  network.daemon.clock.stepWallClock(-20 * MINUTE_MS);
  await network.advance(5 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["window"]);
  expect(network.postCount()).toBe(0);
});
