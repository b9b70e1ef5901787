import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Step } from "../../../src/model/policy/policy.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { actionLines, episodeLines, nodesActedOn } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps, withoutRetries } from "../../harness/policies.ts";
import { listsOnlySettings, startQuietNetwork } from "../../harness/quiet-network.ts";

const expecting = <S extends Exclude<Step, { action: "notify" }>>(step: S, text: string): S => ({
  ...step,
  verify: { ...step.verify, expect: text },
});

test("a recovery that no reboot is known to have brought is verified all the same, and says that there is no proof", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  // It hangs too deep for a graceful reboot; after that was sent it comes back by itself.
  context.failedNodes(node!, "forced_reboot");
  await context.advance(6 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  const healAt = context.daemon.clock.now() + MINUTE_MS;
  context.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  await context.advance(3 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ outcome: "verified", proof: "none" }]);
  await context.stop();
});

test("a step ends as soon as what it expects holds: with `when` true it is ineffective, long before its time is up", async () => {
  const step = expecting(steps.reboot, "node.uptime_hours >= 0");
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ steps: [step, steps.force] })]) });
  context.failedNodes(context.nodes("us-east")[0]!, "forced_reboot");
  await context.advance(9 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective", "forced reboot: null"]);
  await context.stop();
});

test("a step whose expectation never holds ends when its time is up, by what `when` says then", async () => {
  const step = expecting(steps.reboot, "node.uptime_hours < 0");
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ steps: [step] })]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(14 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: null"]);
  await context.advance(3 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: verified"]);
  await context.stop();
});

test("what is expected of a disconnect is that `when` becomes false, and nothing is concluded from its answer", async () => {
  const crowded = rebootOffline({
    when: "node.active_sessions > 20",
    match: 'node.id == "node_caffe390"',
    steps: [steps.disconnect],
  });
  const context = await startQuietNetwork({ rules: remediationRules([crowded]), scenario: { sessions: 12_000 } });
  await context.advanceUntil(() => context.postCount() > 0);
  expect(context.posts()).toMatchObject([{ status: 200 }]);
  expect(actionLines(context)).toEqual(["disconnect: null"]);
  await context.advance(2 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["disconnect: verified"]);
  await context.stop();
});

const busy = rebootOffline({ name: "hot", when: "node.cpu_usage > 0.9", forMs: 10 * MINUTE_MS });
const everyHour = { kind: "every", intervalMs: HOUR_MS } as const;
const detailed = { schedules: { ...listsOnlySettings.schedules!, details: everyHour } };

test("a policy about details is verified within its time, though details come every hour", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([busy]), settings: detailed });
  const [node] = context.nodes("us-east");
  context.interventions.startFailure(node!, { failureMode: "hot", remedy: "reboot" });
  await context.advanceUntil(() => context.postCount() > 0);
  await context.advance(8 * MINUTE_MS);
  expect(context.actions()).toMatchObject([
    { node, outcome: "verified", evidence: { fields: { "node.cpu_usage": expect.any(Number) } } },
  ]);
  await context.stop();
});

test("a verdict that stays unknown long after the step's time leaves it in doubt, and the episode is given up", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([busy]), settings: detailed });
  const [node] = context.nodes("us-east");
  context.interventions.startFailure(node!, { failureMode: "hot", remedy: "reboot" });
  await context.advanceUntil(() => context.postCount() > 0);
  context.setFault({ kind: "status", status: 500 }, "GET /v1/nodes/");
  await context.advance(15 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: null"]);
  await context.advance(6 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: in_doubt"]);
  expect(episodeLines(context)).toEqual(["given_up"]);
  await context.stop();
});

const hide = { ...steps.quarantine, durationMs: 30 * MINUTE_MS };

test("a quarantine whose reply was lost is seen to be on, and lasts", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [hide, steps.notify] })]),
  });
  context.setFault({ kind: "lost_reply" }, "POST");
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(10 * MINUTE_MS);
  expect(context.actions()).toMatchObject([{ outcome: "verified", inDoubt: true }]);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  await context.stop();
});

test("a quarantine that was never made is ineffective once its time is up, and holds no limit any more", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [hide, steps.reboot] })]),
  });
  context.setFault({ kind: "reset" }, "POST");
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(7 * MINUTE_MS);
  context.setFault(null);
  await context.advance(5 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["quarantine: ineffective", "reboot: null"]);
  expect(context.episodes()).toMatchObject([{ quarantine: null }]);
  await context.stop();
});

test("a quarantine in which the node is as ill as before is ineffective: the next step comes, and the quarantine is watched", async () => {
  const rule = rebootOffline({
    when: "node.uptime_hours >= 0",
    match: 'node.id == "node_caffe390"',
    steps: [hide, steps.notify],
    retry: withoutRetries,
  });
  const context = await startQuietNetwork({ rules: remediationRules([rule]) });
  await context.advance(10 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["quarantine: ineffective"]);
  expect(context.notices.filter(({ kind }) => kind === "step")).toHaveLength(1);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  await context.advance(30 * MINUTE_MS);
  expect(context.notices.filter(({ kind }) => kind === "given_up")).toHaveLength(1);
  expect(episodeLines(context)).toEqual(["given_up"]);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("how long a quarantine lasts is what the service said, where that is not what was asked", async () => {
  const half = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const body = request.body?.replace('"duration_minutes":30', '"duration_minutes":15');
      return service.request(body === undefined ? request : { ...request, body }, signal);
    },
  });
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [hide, steps.notify] })]),
    between: half,
  });
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(15 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  // It ended by itself: nobody lifted it.
  await context.advance(9 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["probation"]);
  await context.stop();
});

test("an operator who ends a quarantine while it is still being judged ends the episode, and what was under way holds nobody", async () => {
  const step = expecting({ ...hide, verify: { withinMs: 20 * MINUTE_MS, expect: null } }, "node.uptime_hours < 0");
  const rules = [
    rebootOffline({ name: "hide", when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"', steps: [step] }),
    rebootOffline({ name: "heal" }),
  ];
  const context = await startQuietNetwork({ rules: remediationRules(rules, { canary: false }) });
  await context.advance(5 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["acting"]);
  context.interventions.liftQuarantine("node_caffe390");
  await context.advance(3 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["freed"]);
  expect(context.controller().view.status().inFlight).toBe(0);
  const [other] = context.nodes("eu-west");
  context.failedNodes(other!);
  await context.advance(10 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual(["node_caffe390", other]);
  await context.stop();
});

test("a step is verified by what was seen after it was sent, not by a record from before", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advanceUntil(() => context.postCount() > 0);
  // Nothing is seen for a while: no list, and no single node.
  context.setFault({ kind: "hang" }, "GET /v1/nodes");
  await context.advance(2 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: null"]);
  expect(episodeLines(context)).toEqual(["acting"]);
  await context.stop();
});

test("a node under verification whose detail can't be read is asked for no more often than one that can", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([busy]), settings: detailed });
  const [node] = context.nodes("us-east");
  context.interventions.startFailure(node!, { failureMode: "hot", remedy: "reboot" });
  await context.advanceUntil(() => context.postCount() > 0);
  context.setFault({ kind: "status", status: 404 }, `GET /v1/nodes/${node}`);
  await context.advance(6 * MINUTE_MS);
  const failed = context.daemon.log.lines.filter(({ message }) => message === "verification read failed");
  // Eight looks in the ten minutes of a step.
  expect(failed.length).toBeGreaterThan(2);
  expect(failed.length).toBeLessThanOrEqual(6);
  await context.stop();
});
