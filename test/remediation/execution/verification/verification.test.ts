import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import type { Step } from "../../../../src/config/schema/policy.ts";
import type { Transport } from "../../../../src/model/ports.ts";
import { createVirtualClock } from "../../../../src/simulator/clock.ts";
import {
  listsOnlySettings,
  ONE_NODE,
  onePerRegion,
  startQuietNetwork,
  startWithFailedNode,
} from "../../../harness/daemon/quiet-network.ts";
import { everyMinuteSettings, START_MS } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits, withoutRetries } from "../../../harness/policies.ts";
import { actionLines, episodeStates, nodesActedOn } from "../../../harness/remediation-results.ts";

const expecting = <S extends Exclude<Step, { action: "notify" }>>(step: S, text: string): S => ({
  ...step,
  verify: { ...step.verify, expect: text },
});

const busy = rebootOffline({ name: "hot", when: "node.cpu_usage > 0.9", forMs: 10 * MINUTE_MS });
const everyHour = { kind: "every", intervalMs: HOUR_MS } as const;
const fullLoad = { resource: "cpu", overMs: 0, level: 1, until: Number.POSITIVE_INFINITY } as const;
const detailed = { schedules: { ...listsOnlySettings.schedules!, details: everyHour } };

test("a recovery without proof of a reboot is verified, with the proof `none`", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes("us-east");
  // A graceful reboot does not help, but the node recovers after it was sent.
  network.failNode(node!, "forced_reboot");
  await network.advance(6 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  const healAt = network.daemon.clock.now() + MINUTE_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  await network.advance(3 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ outcome: "verified", proof: "none" }]);
});

test("a step ends as soon as its expectation holds, and is ineffective if `when` is still true", async () => {
  const step = expecting(steps.reboot, "node.uptime_hours < 1");
  const config = remediationConfig([{ ...busy, steps: [step, steps.force] }]);
  const network = await startQuietNetwork({ config, settings: detailed });
  network.interventions.setLoad(network.nodes()[0]!, { ...fullLoad, since: network.daemon.clock.now() });
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(6 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: null"]);
});

test("an expectation that held before the action does not end the step while `when` is true", async () => {
  const step = expecting(steps.reboot, "node.uptime_hours >= 0");
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [step, steps.force] })]),
    remedy: "forced_reboot",
  });
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(9 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
});

test("an expectation that held before the action ends the step once it was false and holds again", async () => {
  const step = expecting(steps.reboot, 'node.status == "online"');
  const config = remediationConfig([{ ...busy, steps: [step, steps.force] }]);
  const network = await startQuietNetwork({ config, settings: { schedules: everyMinuteSettings.schedules } });
  network.interventions.setLoad(network.nodes()[0]!, { ...fullLoad, since: network.daemon.clock.now() });
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(MINUTE_MS + 30 * SECOND_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  await network.advance(5 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: null"]);
});

test("a step whose expectation never holds ends when its time is up, with the result of `when`", async () => {
  const step = expecting(steps.reboot, "node.uptime_hours < 0");
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline({ steps: [step] })]) });
  await network.advance(14 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  await network.advance(3 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: verified"]);
});

test("a disconnect is verified when `when` becomes false, regardless of the response", async () => {
  const crowded = rebootOffline({
    when: "node.active_sessions > 20",
    match: `node.id == "${ONE_NODE}"`,
    steps: [steps.disconnect],
  });
  const network = await startQuietNetwork({ config: remediationConfig([crowded]), scenario: { sessions: 12_000 } });
  await network.advanceUntil(() => network.postCount() > 0);
  expect(network.posts()).toMatchObject([{ status: 200 }]);
  expect(actionLines(network)).toEqual(["disconnect: null"]);
  await network.advance(2 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["disconnect: verified"]);
});

test("a policy that reads details is verified in time, even if details are read every hour", async () => {
  // Nothing in the list changes when the load ends, so only a read for the verification shows it.
  const config = remediationConfig([{ ...busy, steps: [steps.disconnect] }]);
  const network = await startQuietNetwork({ config, settings: detailed, scenario: { nodes: 60, sessions: 0 } });
  const [node] = network.nodes("us-east");
  network.interventions.setLoad(node!, { ...fullLoad, since: network.daemon.clock.now() });
  await network.advanceUntil(() => network.postCount() > 0);
  network.interventions.setLoad(node!, null);
  await network.advance(2 * MINUTE_MS);
  expect(network.actions()).toMatchObject([
    { node, outcome: "verified", evidence: { fields: { "node.cpu_usage": expect.any(Number) } } },
  ]);
});

test("nodes whose reads hang do not delay the verification of another one", async () => {
  const clock = createVirtualClock(START_MS);
  const requests: { readonly path: string; readonly at: number }[] = [];
  const wrapTransport = (service: Transport): Transport => ({
    ...service,
    request(request, signal) {
      requests.push({ path: request.path, at: clock.monotonic() });
      return service.request(request, signal);
    },
  });
  const config = remediationConfig([busy], withoutLimits);
  const network = await startQuietNetwork({ config, settings: detailed, clock, wrapTransport });
  const nodes = onePerRegion(network, 4);
  for (const node of nodes) network.interventions.setLoad(node, { ...fullLoad, since: network.daemon.clock.now() });
  await network.advanceUntil(() => network.postCount() === nodes.length);
  const [node, ...hanging] = network.actions().map((action) => action.node);
  const hang = { kind: "hang" } as const;
  network.setFaults(hanging.map((each) => ({ fault: hang, match: `GET /v1/nodes/${each}` })));
  requests.length = 0;
  await network.advance(8 * MINUTE_MS);
  const times = requests.filter(({ path }) => path === `/v1/nodes/${node}`).map(({ at }) => at);
  // A node is read eight times within the ten minutes of its step, and due reads are looked for every 5 s.
  const gaps = times.slice(1).map((at, index) => at - times[index]!);
  expect(Math.max(...gaps)).toBeLessThan(81 * SECOND_MS);
});

test("a read that fails unexpectedly is logged, and later ones verify the step", async () => {
  let isBroken = false;
  const wrapTransport = (service: Transport): Transport => ({
    ...service,
    request(request, signal) {
      if (isBroken && request.path.startsWith("/v1/nodes/")) return Promise.reject(new Error("a bug of the transport"));
      return service.request(request, signal);
    },
  });
  const network = await startQuietNetwork({ config: remediationConfig([busy]), settings: detailed, wrapTransport });
  const [node] = network.nodes("us-east");
  network.interventions.startFailure(node!, { failureMode: "hot", remedy: "reboot" });
  await network.advanceUntil(() => network.postCount() > 0);
  isBroken = true;
  await network.advance(2 * MINUTE_MS);
  expect(network.daemon.log.lines).toContainEqual(
    expect.objectContaining({
      fields: expect.objectContaining({ node }),
      message: expect.stringContaining("verification read failed unexpectedly"),
    }),
  );
  isBroken = false;
  await network.advance(6 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ node, outcome: "verified" }]);
});

test("a step whose verdict stays unknown long after its time is in doubt, and the episode is given up", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([busy]), settings: detailed });
  const [node] = network.nodes("us-east");
  network.interventions.startFailure(node!, { failureMode: "hot", remedy: "reboot" });
  await network.advanceUntil(() => network.postCount() > 0);
  network.setFault({ kind: "status", status: 500 }, "GET /v1/nodes/");
  await network.advance(15 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  await network.advance(6 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: in_doubt"]);
  expect(network.actions()).toMatchObject([{ detail: "no observation showed whether the step helped" }]);
  expect(episodeStates(network)).toEqual(["given_up"]);
});

test("an action in doubt whose outcome stays unknown is counted once", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([busy]), settings: detailed });
  const [node] = network.nodes("us-east");
  network.setFault({ kind: "lost_reply" }, "POST");
  network.interventions.startFailure(node!, { failureMode: "hot", remedy: "reboot" });
  await network.advanceUntil(() => network.postCount() > 0);
  network.setFault({ kind: "status", status: 500 }, "GET /v1/nodes/");
  await network.advance(21 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: in_doubt"]);
  expect(network.actions()).toMatchObject([{ detail: expect.not.stringContaining("no observation showed") }]);
  expect(await network.daemon.metrics.render("text")).toContain(
    'proxywarden_actions_total{policy="hot",action="reboot",outcome="in_doubt"} 1\n',
  );
});

const hide = { ...steps.quarantine, durationMs: 30 * MINUTE_MS };

test("a quarantine whose reply was lost is verified by observation, and lasts", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ steps: [hide, steps.notify] })]),
  });
  network.setFault({ kind: "lost_reply" }, "POST");
  network.failNode(network.nodes("us-east")[0]!, "operator");
  await network.advance(10 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ outcome: "verified", inDoubt: true }]);
  expect(episodeStates(network)).toEqual(["quarantined"]);
});

test("a quarantine that did not take place is ineffective once its time is up, and no longer counts", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ steps: [hide, steps.reboot] })]),
  });
  network.setFault({ kind: "reset" }, "POST");
  network.failNode(network.nodes("us-east")[0]!, "operator");
  await network.advance(7 * MINUTE_MS);
  network.setFault(null);
  await network.advance(5 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["quarantine: ineffective", "reboot: null"]);
  expect(network.episodes()).toMatchObject([{ quarantine: null }]);
});

test("a quarantine in which `when` stays true is ineffective: the next step follows, and the quarantine is still tracked", async () => {
  const spec = rebootOffline({
    when: "node.uptime_hours >= 0",
    match: `node.id == "${ONE_NODE}"`,
    steps: [hide, steps.notify],
    retry: withoutRetries,
  });
  const network = await startQuietNetwork({ config: remediationConfig([spec]) });
  await network.advance(10 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["quarantine: ineffective"]);
  expect(network.notifications.filter(({ kind }) => kind === "step")).toHaveLength(1);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  await network.advance(30 * MINUTE_MS);
  expect(network.notifications.filter(({ kind }) => kind === "given_up")).toHaveLength(1);
  expect(episodeStates(network)).toEqual(["given_up"]);
  expect(network.postCount()).toBe(1);
});

test("a quarantine lasts as long as the service replied, if that differs from the request", async () => {
  const half = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const body = request.body?.replace('"duration_minutes":30', '"duration_minutes":15');
      return service.request(body === undefined ? request : { ...request, body }, signal);
    },
  });
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [hide, steps.notify] })]),
    wrapTransport: half,
    remedy: "operator",
  });
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  // It ended in time: no operator lifted it.
  await network.advance(9 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["probation"]);
});

test("an operator who lifts a quarantine before it is verified ends the episode, and its action no longer counts", async () => {
  const step = expecting({ ...hide, verify: { withinMs: 20 * MINUTE_MS, expect: null } }, "node.uptime_hours < 0");
  const config = [
    rebootOffline({ name: "hide", when: "node.uptime_hours >= 0", match: `node.id == "${ONE_NODE}"`, steps: [step] }),
    rebootOffline({ name: "heal" }),
  ];
  const network = await startQuietNetwork({ config: remediationConfig(config, { canary: false }) });
  await network.advance(5 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  network.interventions.liftQuarantine(ONE_NODE);
  await network.advance(3 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["freed"]);
  expect(network.controller().view.status().inFlight).toBe(0);
  const [other] = network.nodes("eu-west");
  network.failNode(other!);
  await network.advance(10 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([ONE_NODE, other]);
});

test("a step is verified by data from after it was sent, not by an earlier record", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  await network.advanceUntil(() => network.postCount() > 0);
  // For a while neither lists nor single nodes can be read.
  network.setFault({ kind: "hang" }, "GET /v1/nodes");
  await network.advance(2 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: null"]);
  expect(episodeStates(network)).toEqual(["acting"]);
});

test("failed verification reads are not more frequent than successful ones", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([busy]), settings: detailed });
  const [node] = network.nodes("us-east");
  network.interventions.startFailure(node!, { failureMode: "hot", remedy: "reboot" });
  await network.advanceUntil(() => network.postCount() > 0);
  network.setFault({ kind: "status", status: 404 }, `GET /v1/nodes/${node}`);
  await network.advance(6 * MINUTE_MS);
  const failed = network.daemon.log.lines.filter(({ message }) => message === "verification read failed");
  // Eight reads in the ten minutes of the step.
  expect(failed.length).toBeGreaterThan(2);
  expect(failed.length).toBeLessThanOrEqual(6);
});
