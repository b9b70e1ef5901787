import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { runAtOnce } from "../../../../src/base/steps.ts";
import {
  onePerRegion,
  type QuietNetwork,
  startQuietNetwork,
  startWithFailedNode,
} from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../../harness/policies.ts";
import { episodeStates, holdReasonsOf, nodesActedOn, notificationsOf } from "../../../harness/remediation-results.ts";
import { changingBodies } from "../../../harness/simulator/changed-responses.ts";

type Body = Readonly<Record<string, unknown>>;

const failAllNodes = (network: QuietNetwork, nodes: readonly string[]) => {
  for (const node of nodes) network.failNode(node, "operator");
};

test("max_in_flight limits the actions that are sent and not yet verified", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { ...withoutLimits, maxInFlight: 3 }),
  });
  const unhealthy = onePerRegion(network, 6);
  failAllNodes(network, unhealthy);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(3);
  expect(network.controller().view.status().inFlight).toBe(3);
  expect(network.holdReasons(unhealthy[5]!)).toEqual(["in_flight"]);
});

/** A policy that quarantines online nodes. */
const quarantineOnline = (nodes: readonly string[], durationMs = steps.quarantine.durationMs) =>
  rebootOffline({
    match: `node.id in ${JSON.stringify(nodes)}`,
    when: 'node.status == "online"',
    steps: [{ ...steps.quarantine, durationMs }],
  });

test("max_disrupted counts a node in our quarantine for as long as that lasts", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([]) });
  const four = onePerRegion(network, 4);
  await network.reload({
    config: remediationConfig([quarantineOnline(four)], { ...withoutLimits, maxDisrupted: { share: 1, amount: 2 } }),
  });
  await network.advance(HOUR_MS);
  expect(episodeStates(network).toSorted()).toEqual(["firing", "firing", "quarantined", "quarantined"]);
  expect(holdReasonsOf(network)).toEqual(["disrupted"]);
});

test("a hold by max_disrupted names the quarantines that the service did not end, and who can end them", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([]) });
  const two = onePerRegion(network, 2);
  await network.reload({
    config: remediationConfig([quarantineOnline(two, 30 * MINUTE_MS)], {
      ...withoutLimits,
      maxDisrupted: { share: 1, amount: 1 },
    }),
  });
  await network.advance(20 * MINUTE_MS);
  const quarantined = two.find((node) => network.status(node) === "quarantined")!;
  network.interventions.quarantine(quarantined, Number.MAX_SAFE_INTEGER);
  await network.advance(HOUR_MS);
  const held = two.find((node) => node !== quarantined)!;
  expect(network.explain(held).policies[0]!.blockers).toEqual([
    {
      reason: "disrupted",
      detail: `1 node is disrupted; the limit is 1; 1 of them is still in a quarantine that should have ended (${quarantined}); such nodes count until the service or an operator ends it`,
    },
  ]);
});

test("a node that was offline before our quarantine is not disrupted, so another node of its region is healed", async () => {
  const spec = rebootOffline({ steps: [steps.reboot, { ...steps.quarantine, durationMs: 24 * HOUR_MS }] });
  const network = await startQuietNetwork({ config: remediationConfig([spec]) });
  const [dead, curable] = network.nodes("us-east");
  network.failNode(dead!, "operator");
  await network.advance(HOUR_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  network.failNode(curable!);
  const before = network.daemon.clock.monotonic();
  await network.advanceUntil(() => network.status(curable!) === "rebooting");
  expect(network.daemon.clock.monotonic() - before).toBeLessThan(15 * MINUTE_MS);
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined", "healed"]);
});

test("max_disrupted_per limits the disrupted nodes of one region", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([]) });
  const nodes = [...network.nodes("us-east").slice(0, 3), network.nodes("eu-west")[0]!];
  const limits = { ...withoutLimits, maxDisruptedPer: { region: 2, country: null } };
  await network.reload({ config: remediationConfig([quarantineOnline(nodes)], limits) });
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(3);
  expect(nodesActedOn(network)).toContain(nodes[3]);
  expect(holdReasonsOf(network)).toEqual(["disrupted_domain"]);
});

test("min_online holds an online node if too few would stay, even if several are decided on at once", async () => {
  // Two of three nodes must stay. When the second node is decided on, the first is still listed as online.
  const pair = 'node.name in ["mad-0014", "mad-0063"]';
  const scenario = { nodes: 120 };
  const policy = rebootOffline({ match: pair, when: "node.uptime_hours >= 0", steps: [steps.quarantine] });
  const config = remediationConfig([policy], { ...withoutLimits, minOnlinePer: { region: 2, country: null } });
  const network = await startQuietNetwork({ config, scenario });
  await network.advance(20 * MINUTE_MS);
  expect(network.nodes("eu-south").map(network.status).toSorted()).toEqual(["online", "online", "quarantined"]);
  expect(holdReasonsOf(network)).toEqual(["min_online"]);
});

test("min_online does not count a node that the list hides, whose record may be old", async () => {
  const two: string[] = [];
  let isHidden = false;
  const isOfTwo = ({ id }: Body) => two.includes(String(id));
  const inOneRegion = (node: Body) => (isOfTwo(node) ? { ...node, region: "small" } : node);
  const wrapTransport = changingBodies((body, { method }) => {
    const json = JSON.parse(body) as Body & { readonly data?: readonly Body[] };
    if (method === "POST") return null;
    if (json.data === undefined) return JSON.stringify(inOneRegion(json));
    const data = json.data.filter(({ id }) => !(isHidden && id === two[0])).map(inOneRegion);
    return JSON.stringify({ ...json, data });
  });
  const network = await startQuietNetwork({ config: remediationConfig([]), wrapTransport });
  two.push(...network.nodes().slice(0, 2));
  await network.advance(2 * MINUTE_MS);
  isHidden = true;
  // Lookups find it, but ever more rarely.
  await network.advance(100 * MINUTE_MS);
  network.failNode(two[0]!, "operator");
  await network.reload({ config: remediationConfig([quarantineOnline([two[1]!])]) });
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(two[1]!)).toEqual(["min_online"]);
});

test("min_online does not hold an offline node", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { ...withoutLimits, minOnlinePer: { region: 3, country: null } }),
  });
  const [node] = network.nodes("eu-south");
  network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("max_actions counts across restarts, so a crash loop does not refill it", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { ...withoutLimits, maxActions: { amount: 2, perMs: HOUR_MS } }),
  });
  const unhealthy = onePerRegion(network, 4);
  failAllNodes(network, unhealthy);
  await network.advance(8 * MINUTE_MS);
  for (let crash = 0; crash < 3; crash++) {
    network.kill();
    await network.restart();
    await network.advance(8 * MINUTE_MS);
  }
  expect(network.postCount()).toBe(2);
  expect(network.holdReasons(unhealthy[3]!)).toEqual(["max_actions"]);
});

test("the cooldown passes between two episodes of a node, under any policies and across a restart", async () => {
  const policies = [
    rebootOffline(),
    rebootOffline({
      name: "other",
      when: 'node.status == "offline" && node.uptime_hours < 1000000',
      forMs: 10 * MINUTE_MS,
    }),
  ];
  const { network, node } = await startWithFailedNode({ config: remediationConfig(policies, { cooldownMs: HOUR_MS }) });
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
  network.failNode(node);
  await network.restart();
  await network.advance(25 * MINUTE_MS);
  expect(network.holdReasons(node)).toEqual(["cooldown"]);
  expect(episodeStates(network)).toEqual(["healed"]);
  await network.advance(40 * MINUTE_MS);
  expect(episodeStates(network)).toHaveLength(2);
  expect(network.postCount()).toBe(2);
});

test("of two policies on one node the first one acts, and the other names it as a blocker", async () => {
  const policies = [
    rebootOffline({ name: "second-to-fire", forMs: 5 * MINUTE_MS }),
    rebootOffline({ name: "also", forMs: 5 * MINUTE_MS }),
  ];
  const { network } = await startWithFailedNode({ config: remediationConfig(policies) });
  await network.advance(30 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ policy: "second-to-fire", state: "healed" }]);
  expect(network.decisions().filter(({ policy }) => policy === "also")[0]!.blockers).toMatchObject([
    { reason: "other_episode" },
  ]);
  expect(network.postCount()).toBe(1);
});

test("under a changed policy the first action is verified before a second is sent, also after a restart", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], { ...withoutLimits, canary: true }),
  });
  const [first, second, third] = onePerRegion(network, 3);
  for (const node of [first!, second!]) network.failNode(node);
  await network.advance(7 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(holdReasonsOf(network)).toEqual(["canary"]);
  await network.advance(20 * MINUTE_MS);
  expect(network.postCount()).toBe(2);
  // The policy is proven now, until its text changes.
  await network.restart();
  await network.advance(3 * MINUTE_MS);
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ proven: true }]);
  await network.restart({
    config: remediationConfig([rebootOffline({ steps: [steps.reboot] })], { ...withoutLimits, canary: true }),
  });
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ proven: false }]);
  network.failNode(third!);
  await network.advance(20 * MINUTE_MS);
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ proven: true }]);
});

test("a policy that heals too few nodes falls back to dry_run until its text changes, also across a restart", async () => {
  const efficacy = { window: 3, minSuccess: 0.5 };
  const config = remediationConfig([rebootOffline({ steps: [steps.reboot] })], { ...withoutLimits, efficacy });
  const network = await startQuietNetwork({ config });
  const unhealthy = onePerRegion(network, 6);
  failAllNodes(network, unhealthy.slice(0, 3));
  await network.advance(20 * MINUTE_MS);
  const real = () => network.actions().filter(({ dryRun }) => !dryRun);
  expect(real().map(({ outcome }) => outcome)).toEqual(["ineffective", "ineffective", "ineffective"]);
  expect(notificationsOf(network, "efficacy")).toHaveLength(1);
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ mode: "dry_run", hasFallenBack: true }]);
  const gauge = 'proxywarden_policy_ineffective{policy="reboot-offline"}';
  expect(await network.daemon.metrics.render("text")).toContain(`${gauge} 1\n`);
  network.kill();
  await network.restart();
  network.failNode(unhealthy[3]!);
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(3);
  expect(network.actions().at(-1)).toMatchObject({ dryRun: true, outcome: "dry_run" });
  const changed = rebootOffline({ steps: [steps.reboot], clearForMs: 11 * MINUTE_MS });
  await network.restart({ config: remediationConfig([changed], { ...withoutLimits, efficacy }) });
  await network.advance(20 * MINUTE_MS);
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ mode: "enforce", hasFallenBack: false }]);
  expect(await network.daemon.metrics.render("text")).toContain(`${gauge} 0\n`);
  expect(nodesActedOn(network)).toContain(unhealthy[3]);
});

test("a policy that heals enough nodes does not fall back", async () => {
  const config = remediationConfig([rebootOffline()], { ...withoutLimits, efficacy: { window: 3, minSuccess: 0.5 } });
  const network = await startQuietNetwork({ config });
  for (const node of onePerRegion(network, 5)) network.failNode(node);
  await network.advance(40 * MINUTE_MS);
  expect(new Set(episodeStates(network))).toEqual(new Set(["healed"]));
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ mode: "enforce", hasFallenBack: false }]);
});

test("the circuit breaker opens when too many nodes fire within its time, even one by one, and is notified", async () => {
  const config = remediationConfig([rebootOffline({ steps: [steps.notify] })], {
    ...withoutLimits,
    breaker: { share: 0, amount: 4, withinMs: 2 * HOUR_MS },
  });
  const network = await startQuietNetwork({ config });
  for (const node of onePerRegion(network, 6)) {
    network.failNode(node, "operator");
    await network.advance(12 * MINUTE_MS);
  }
  expect(network.controller().view.status().breaker).toMatchObject({ nodes: 5 });
  expect(notificationsOf(network, "breaker")).toHaveLength(1);
  expect(await network.commands().resetBreaker()).toMatchObject({ ok: true });
  expect(await network.commands().resetBreaker()).toMatchObject({
    ok: false,
    error: { kind: "conflict" },
  });
});
