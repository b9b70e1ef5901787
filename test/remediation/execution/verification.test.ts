import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Step } from "../../../src/model/policy/policy.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { courses, deeds, touched } from "../../harness/action-lines.ts";
import { onceOnly, rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { listsOnly, startWard } from "../../harness/quiet-network.ts";

const expecting = <S extends Exclude<Step, { action: "notify" }>>(step: S, text: string): S => ({
  ...step,
  verify: { ...step.verify, expect: text },
});

test("a recovery that no reboot is known to have brought is verified all the same, and says that there is no proof", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  // It hangs too deep for a graceful reboot; after that was sent it comes back by itself.
  ward.fell(node!, "forced_reboot");
  await ward.pass(6 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  const healAt = ward.daemon.clock.now() + MINUTE_MS;
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt });
  await ward.pass(3 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ outcome: "verified", proof: "none" }]);
  await ward.stop();
});

test("a step ends as soon as what it expects holds: with `when` true it is ineffective, long before its time is up", async () => {
  const step = expecting(steps.reboot, "node.uptime_hours >= 0");
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [step, steps.force] })]) });
  ward.fell(ward.nodes("us-east")[0]!, "forced_reboot");
  await ward.pass(9 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective", "forced reboot: null"]);
  await ward.stop();
});

test("a step whose expectation never holds ends when its time is up, by what `when` says then", async () => {
  const step = expecting(steps.reboot, "node.uptime_hours < 0");
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [step] })]) });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(14 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: null"]);
  await ward.pass(3 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: verified"]);
  await ward.stop();
});

test("what is expected of a disconnect is that `when` becomes false, and nothing is concluded from its answer", async () => {
  const crowded = rebootOffline({
    when: "node.active_sessions > 20",
    match: 'node.id == "node_caffe390"',
    steps: [steps.disconnect],
  });
  const ward = await startWard({ rules: rulesOf([crowded]), scenario: { sessions: 12_000 } });
  await ward.passUntil(() => ward.postCount() > 0);
  expect(ward.posts()).toMatchObject([{ status: 200 }]);
  expect(deeds(ward)).toEqual(["disconnect: null"]);
  await ward.pass(2 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["disconnect: verified"]);
  await ward.stop();
});

const busy = rebootOffline({ name: "hot", when: "node.cpu_usage > 0.9", forMs: 10 * MINUTE_MS });
const everyHour = { kind: "every", intervalMs: HOUR_MS } as const;
const detailed = { cadences: { ...listsOnly.cadences!, details: everyHour } };

test("a policy about details is verified within its time, though details come every hour", async () => {
  const ward = await startWard({ rules: rulesOf([busy]), settings: detailed });
  const [node] = ward.nodes("us-east");
  ward.people.fallIll(node!, { ailment: "hot", cure: "reboot" });
  await ward.passUntil(() => ward.postCount() > 0);
  await ward.pass(8 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([
    { node, outcome: "verified", evidence: { fields: { "node.cpu_usage": expect.any(Number) } } },
  ]);
  await ward.stop();
});

test("a verdict that stays unknown long after the step's time leaves it in doubt, and the episode is given up", async () => {
  const ward = await startWard({ rules: rulesOf([busy]), settings: detailed });
  const [node] = ward.nodes("us-east");
  ward.people.fallIll(node!, { ailment: "hot", cure: "reboot" });
  await ward.passUntil(() => ward.postCount() > 0);
  ward.strike({ kind: "status", status: 500 }, "GET /v1/nodes/");
  await ward.pass(15 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: null"]);
  await ward.pass(6 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: in_doubt"]);
  expect(courses(ward)).toEqual(["given_up"]);
  await ward.stop();
});

const hide = { ...steps.quarantine, durationMs: 30 * MINUTE_MS };

test("a quarantine whose reply was lost is seen to be on, and lasts", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [hide, steps.notify] })]) });
  ward.strike({ kind: "lost_reply" }, "POST");
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(10 * MINUTE_MS);
  expect(ward.actions()).toMatchObject([{ outcome: "verified", inDoubt: true }]);
  expect(courses(ward)).toEqual(["quarantined"]);
  await ward.stop();
});

test("a quarantine that was never made is ineffective once its time is up, and holds no limit any more", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [hide, steps.reboot] })]) });
  ward.strike({ kind: "reset" }, "POST");
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(7 * MINUTE_MS);
  ward.strike(null);
  await ward.pass(5 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["quarantine: ineffective", "reboot: null"]);
  expect(ward.episodes()).toMatchObject([{ quarantine: null }]);
  await ward.stop();
});

test("a quarantine in which the node is as ill as before is ineffective: the next step comes, and the quarantine is watched", async () => {
  const rule = rebootOffline({
    when: "node.uptime_hours >= 0",
    match: 'node.id == "node_caffe390"',
    steps: [hide, steps.notify],
    retry: onceOnly,
  });
  const ward = await startWard({ rules: rulesOf([rule]) });
  await ward.pass(10 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["quarantine: ineffective"]);
  expect(ward.notices.filter(({ kind }) => kind === "step")).toHaveLength(1);
  expect(courses(ward)).toEqual(["quarantined"]);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.notices.filter(({ kind }) => kind === "given_up")).toHaveLength(1);
  expect(courses(ward)).toEqual(["given_up"]);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("how long a quarantine lasts is what the service said, where that is not what was asked", async () => {
  const half = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const body = request.body?.replace('"duration_minutes":30', '"duration_minutes":15');
      return service.request(body === undefined ? request : { ...request, body }, signal);
    },
  });
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [hide, steps.notify] })]), between: half });
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(15 * MINUTE_MS);
  expect(courses(ward)).toEqual(["quarantined"]);
  // It ended by itself: nobody lifted it.
  await ward.pass(9 * MINUTE_MS);
  expect(courses(ward)).toEqual(["probation"]);
  await ward.stop();
});

test("a person who ends a quarantine while it is still being judged ends the episode, and what was under way holds nobody", async () => {
  const step = expecting({ ...hide, verify: { withinMs: 20 * MINUTE_MS, expect: null } }, "node.uptime_hours < 0");
  const rules = [
    rebootOffline({ name: "hide", when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"', steps: [step] }),
    rebootOffline({ name: "heal" }),
  ];
  const ward = await startWard({ rules: rulesOf(rules, { canary: false }) });
  await ward.pass(5 * MINUTE_MS);
  expect(courses(ward)).toEqual(["acting"]);
  ward.people.liftQuarantine("node_caffe390");
  await ward.pass(3 * MINUTE_MS);
  expect(courses(ward)).toEqual(["freed"]);
  expect(ward.warden().view.status().inFlight).toBe(0);
  const [other] = ward.nodes("eu-west");
  ward.fell(other!);
  await ward.pass(10 * MINUTE_MS);
  expect(touched(ward)).toEqual(["node_caffe390", other]);
  await ward.stop();
});

test("a step is verified by what was seen after it was sent, not by a record from before", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.passUntil(() => ward.postCount() > 0);
  // Nothing is seen for a while: no list, and no single node.
  ward.strike({ kind: "hang" }, "GET /v1/nodes");
  await ward.pass(2 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: null"]);
  expect(courses(ward)).toEqual(["acting"]);
  await ward.stop();
});

test("a node under verification whose detail can't be read is asked for no more often than one that can", async () => {
  const ward = await startWard({ rules: rulesOf([busy]), settings: detailed });
  const [node] = ward.nodes("us-east");
  ward.people.fallIll(node!, { ailment: "hot", cure: "reboot" });
  await ward.passUntil(() => ward.postCount() > 0);
  ward.strike({ kind: "status", status: 404 }, `GET /v1/nodes/${node}`);
  await ward.pass(6 * MINUTE_MS);
  const failed = ward.daemon.log.lines.filter(({ message }) => message === "an action could not be looked after");
  // Eight looks in the ten minutes of a step.
  expect(failed.length).toBeGreaterThan(2);
  expect(failed.length).toBeLessThanOrEqual(6);
  await ward.stop();
});
