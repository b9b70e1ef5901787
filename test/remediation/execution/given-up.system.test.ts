import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import {
  ONE_NODE,
  onePerRegion,
  type QuietNetwork,
  startQuietNetwork,
  startWithFailedNode,
} from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutRetries } from "../../harness/policies.ts";
import { episodeStates, nodesActedOn, notificationsOf } from "../../harness/remediation-results.ts";

const scenario = { nodes: 24 };
/** Two episodes, half an hour apart. */
const retry = { episodes: 2, everyMs: 30 * MINUTE_MS, forgetAfterMs: HOUR_MS };
const spec = rebootOffline({ steps: [steps.reboot], retry });

const policyOf = (network: QuietNetwork) => runAtOnce(network.controller().view.policies())[0]!;

test("three nodes that nothing heals don't make the policy fall back to dry_run", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([spec]), scenario });
  const unresponsive = onePerRegion(network, 3);
  for (const node of unresponsive) network.failNode(node, "operator");
  await network.advanceUntil(() => notificationsOf(network, "given_up").length === unresponsive.length);
  await network.advance(2 * retry.everyMs);
  expect(policyOf(network)).toMatchObject({ mode: "enforce", hasFallenBack: false });
  // Each was tried twice, then given up with one notification.
  expect(network.postCount()).toBe(6);
  expect(
    notificationsOf(network, "given_up")
      .map(({ node }) => node)
      .toSorted(),
  ).toEqual(unresponsive.toSorted());
  expect(notificationsOf(network, "given_up").map(({ severity }) => severity)).toEqual([
    "critical",
    "critical",
    "critical",
  ]);
});

test("a node stays given up if its steps took longer than forget_after", async () => {
  const quarantine = { ...steps.quarantine, durationMs: 65 * MINUTE_MS };
  const quarantineThenNotify = rebootOffline({ steps: [steps.reboot, quarantine, steps.notify], retry });
  const { network } = await startWithFailedNode({
    config: remediationConfig([quarantineThenNotify]),
    scenario,
    remedy: "operator",
  });
  await network.advance(4.5 * HOUR_MS);
  expect(network.episodes().map(({ state }) => state)).toEqual(["given_up", "given_up"]);
  expect(notificationsOf(network, "given_up")).toHaveLength(1);
  expect(notificationsOf(network, "step")).toHaveLength(2);
});

test("a node stays given up across a kill at the end of its last episode, until it is healthy", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([spec]),
    scenario,
    remedy: "operator",
  });
  await network.advanceUntil(() => network.postCount() === 2);
  network.injectedFailures.crashAt = {
    when: "after",
    changes: (all) => all.some((change) => change.kind === "episode" && change.row.state === "given_up"),
  };
  await network.advance(30 * MINUTE_MS);
  expect(network.isAlive()).toBe(false);
  await network.restart();
  await network.advance(2 * retry.everyMs);
  expect(network.postCount()).toBe(2);
  const blockers = network.explain(node).policies[0]!.blockers;
  expect(blockers).toMatchObject([
    {
      reason: "retry_limit",
      detail: `given up: 2 episodes in a row did not heal it; the hold ends when the node is healthy, or with "release ${node}"`,
    },
  ]);
  // An operator repairs it; later it fails again.
  network.interventions.startFailure(node, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: network.daemon.clock.now() + MINUTE_MS,
  });
  await network.advance(30 * MINUTE_MS);
  const { holds } = network.explain(node);
  expect(holds.filter(({ kind }) => kind === "given_up")).toEqual([]);
  await network.advance(30 * MINUTE_MS);
  network.failNode(node);
  await network.advance(40 * MINUTE_MS);
  expect(network.postCount()).toBe(3);
  expect(network.episodes().at(-1)).toMatchObject({ state: "healed" });
});

test("after release a policy tries a given-up node as often as the first time", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([spec]),
    scenario,
    remedy: "operator",
  });
  await network.advanceUntil(() => notificationsOf(network, "given_up").length === 1);
  await network.advance(2 * retry.everyMs);
  expect(network.postCount()).toBe(2);
  expect(await network.commands().release(node)).toEqual({
    ok: true,
    value: expect.stringMatching(/^[a-z]+-\d+ is released; reboot-offline may try it again$/),
  });
  expect(await network.commands().release(node)).toMatchObject({
    ok: false,
    error: { kind: "not_found" },
  });
  expect(network.explain(node).holds).toEqual([]);
  network.kill();
  await network.restart();
  await network.advanceUntil(() => notificationsOf(network, "given_up").length === 2);
  await network.advance(2 * retry.everyMs);
  expect(network.postCount()).toBe(4);
  expect(notificationsOf(network, "given_up")).toHaveLength(2);
});

test("attempts before a release don't count after an operator lifted a quarantine of ours either", async () => {
  const quarantine = { ...steps.quarantine, durationMs: 30 * MINUTE_MS };
  const overDay = { ...retry, forgetAfterMs: DAY_MS };
  const always = rebootOffline({ when: "node.uptime_hours >= 0", steps: [quarantine], retry: overDay });
  const node = ONE_NODE;
  const config = remediationConfig([{ ...always, match: `node.id == "${node}"` }]);
  const network = await startQuietNetwork({ config, scenario });
  await network.advanceUntil(() => notificationsOf(network, "given_up").length === 1);
  await network.commands().release(node);
  await network.advanceUntil(() => network.episodes()[2]?.state === "quarantined");
  await network.advance(5 * MINUTE_MS);
  network.interventions.liftQuarantine(node);
  await network.advanceUntil(() => network.episodes()[2]?.state === "freed");
  await network.advance(retry.everyMs + 10 * MINUTE_MS);
  expect(network.episodes().map(({ state }) => state)).toEqual(["given_up", "given_up", "freed", "quarantined"]);
});

test("a policy that fell back acts again after reset-breaker, and its efficacy is measured from then on", async () => {
  const free = {
    canary: false,
    maxInFlight: 100,
    maxDisrupted: { share: 1, amount: 100 },
    maxUnhealthy: { share: 1 },
    efficacy: { window: 3, minSuccess: 0.5 },
  };
  const once = rebootOffline({ steps: [steps.reboot] });
  const network = await startQuietNetwork({ config: remediationConfig([once], free), scenario });
  const [first, second, third, fourth] = onePerRegion(network, 4);
  for (const node of [first!, second!, third!]) network.failNode(node, "operator");
  await network.advance(40 * MINUTE_MS);
  expect(policyOf(network)).toMatchObject({ mode: "dry_run", hasFallenBack: true });
  expect(notificationsOf(network, "efficacy")).toMatchObject([
    {
      summary:
        "The policy reboot-offline healed 0 of the last 3 nodes that it treated, and falls back to dry_run until its text changes or an operator runs reset-breaker",
    },
  ]);
  const sent = network.postCount();
  expect(await network.commands().resetBreaker()).toEqual({
    ok: true,
    value: "reboot-offline has its configured mode again; efficacy is measured from now on",
  });
  expect(await network.commands().resetBreaker()).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
  network.failNode(fourth!);
  await network.advance(30 * MINUTE_MS);
  expect(policyOf(network)).toMatchObject({ mode: "enforce", hasFallenBack: false });
  expect(nodesActedOn(network)).toContain(fourth);
  expect(network.postCount()).toBeGreaterThan(sent);
});

test("a node is given up although the first of the episodes in a row ended more than 30 days before the last", async () => {
  const monthly = { episodes: 2, everyMs: 29 * DAY_MS, forgetAfterMs: 30 * DAY_MS };
  const quarantine = { ...steps.quarantine, durationMs: 2 * DAY_MS };
  const config = remediationConfig([rebootOffline({ steps: [steps.reboot, quarantine], retry: monthly })]);
  const { network } = await startWithFailedNode({ config, scenario, remedy: "operator" });
  await network.advanceUntil(() => network.episodes()[0]?.state === "quarantined");
  await network.restart({ downMs: 2 * DAY_MS });
  await network.advance(HOUR_MS);
  expect(episodeStates(network)).toEqual(["given_up"]);
  await network.restart({ downMs: 29 * DAY_MS });
  await network.advanceUntil(() => network.episodes()[1]?.state === "quarantined");
  await network.restart({ downMs: 2 * DAY_MS });
  await network.advance(HOUR_MS);
  expect(episodeStates(network)).toEqual(["given_up", "given_up"]);
  expect(notificationsOf(network, "given_up")).toMatchObject([{ summary: expect.stringContaining("(ep-1, ") }]);
});

test("a node is still counted as given up after its episodes were forgotten", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([spec]), scenario, remedy: "operator" });
  await network.advanceUntil(() => notificationsOf(network, "given_up").length > 0);
  await network.restart({ downMs: 31 * DAY_MS });
  await network.advance(20 * MINUTE_MS);
  expect(policyOf(network)).toMatchObject({ firing: 1, episodes: { given_up: 1 } });
  expect(network.postCount()).toBe(2);
});

test("a given-up node that left the list is forgotten after a month", async () => {
  const config = remediationConfig([rebootOffline({ ...spec, retry: withoutRetries })]);
  const network = await startQuietNetwork({ config, scenario });
  const [gone, listed] = onePerRegion(network, 2);
  for (const node of [gone!, listed!]) network.failNode(node, "operator");
  await network.advanceUntil(() => notificationsOf(network, "given_up").length === 2);
  network.interventions.leaveFleet(gone!, Number.POSITIVE_INFINITY);
  const givenUp = () => network.daemon.remediationState.records.allHolds().map(({ node }) => node);
  await network.restart({ downMs: 29 * DAY_MS });
  await network.advance(10 * MINUTE_MS);
  expect(givenUp().toSorted()).toEqual([gone, listed].toSorted());
  await network.restart({ downMs: 2 * DAY_MS });
  await network.advance(10 * MINUTE_MS);
  expect(givenUp()).toEqual([listed]);
  expect((await network.store.journal.load(0)).holds).toMatchObject([{ node: listed }]);
});
