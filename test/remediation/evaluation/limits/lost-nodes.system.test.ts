import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { runAtOnce } from "../../../../src/base/steps.ts";
import type { PolicySpec } from "../../../../src/config/schema/policy.ts";
import type { Scenario } from "../../../../src/config/schema/scenario.ts";
import type { Action } from "../../../../src/model/remediation/episode.ts";
import {
  churnAfterReboots,
  noFailureRates,
  onePerRegion,
  type QuietNetwork,
  type QuietNetworkOptions,
  startQuietNetwork,
} from "../../../harness/daemon/quiet-network.ts";
import { everyMinuteSettings } from "../../../harness/daemon/virtual-daemon.ts";
import { defaultSafety, rebootOffline, remediationConfig, steps, withoutLimits } from "../../../harness/policies.ts";
import { episodeStates, holdReasonsOf, notificationsOf } from "../../../harness/remediation-results.ts";

const NODES = 100;

/** A network in which a rebooted node stays down. */
const rebootsLeaveDown: Partial<Scenario> = {
  nodes: NODES,
  rates: { ...noFailureRates, repairMs: 1_000 * HOUR_MS },
  churn: churnAfterReboots({ failAfterReboot: 1 }),
};

/** A network in which a rebooted node leaves the fleet, for good or for a while. */
const rebootsLoseNodes = ({ forMs = Number.POSITIVE_INFINITY, share = 1 } = {}): Partial<Scenario> => ({
  nodes: NODES,
  rates: noFailureRates,
  churn: churnAfterReboots({ vanishAfterReboot: share, vanishForMs: forMs }),
});

const FORGET_AFTER_MS = HOUR_MS;
const spec = rebootOffline({ retry: { episodes: 2, everyMs: HOUR_MS / 2, forgetAfterMs: FORGET_AFTER_MS } });

const startLosingNodes = (safety: Partial<typeof defaultSafety>, options: Partial<QuietNetworkOptions> = {}) =>
  startQuietNetwork({ config: remediationConfig([spec], safety), scenario: rebootsLoseNodes(), ...options });

/** Returns the nodes that the service no longer lists. */
const lost = (network: QuietNetwork): number => NODES - network.nodes().length;

/**
 * Makes a node fail every ten minutes, each far from the previous one in the list. Returns the maximum number of nodes
 * lost at the same time.
 */
async function failOneByOne(network: QuietNetwork, count: number): Promise<number> {
  const all = network.nodes();
  let most = 0;
  for (let index = 0; index < count; index++) {
    network.failNode(all[(index * 37) % all.length]!);
    await network.advance(10 * MINUTE_MS);
    most = Math.max(most, lost(network));
  }
  return most;
}

describe("nodes that leave the list after an action", () => {
  test("count as disrupted until they are back, so at most max_disrupted are lost at once", async () => {
    const network = await startLosingNodes({ canary: false });
    expect(await failOneByOne(network, 8)).toBe(5);
    await network.advance(1.25 * FORGET_AFTER_MS);
    expect(lost(network)).toBe(5);
    expect(holdReasonsOf(network)).toContain("disrupted");
    expect(network.actions().filter(({ outcome }) => outcome === "ineffective")).toHaveLength(5);
    expect(notificationsOf(network, "lost")).toHaveLength(5);
  });

  test("count after their policy is proven, too", async () => {
    // With this seed the first node, the canary, returns from its reboot.
    const network = await startLosingNodes({}, { scenario: { ...rebootsLoseNodes({ share: 0.5 }), seed: 3 } });
    expect(await failOneByOne(network, 12)).toBeLessThanOrEqual(5);
    expect(episodeStates(network)).toContain("healed");
  });

  test("count in the limits of their region, and in its number of nodes", async () => {
    const network = await startLosingNodes({ canary: false });
    const [first, second] = network.nodes("us-east");
    network.failNode(first!);
    await network.advance(30 * MINUTE_MS);
    expect(lost(network)).toBe(1);
    network.failNode(second!);
    await network.advance(HOUR_MS);
    expect(network.postCount()).toBe(1);
    expect(network.holdReasons(second!)).toEqual(["disrupted_domain"]);
  });

  test("stay in flight until the time of their step is up, and are then ineffective", async () => {
    const network = await startLosingNodes({
      canary: false,
      maxInFlight: 1,
      maxDisruptedPer: { region: null, country: null },
    });
    const [first, second] = network.nodes("us-east");
    network.failNode(first!);
    await network.advanceUntil(() => lost(network) === 1);
    network.failNode(second!);
    await network.advanceUntil(() => network.postCount() === 2);
    const [one, two] = network.actions();
    expect(one).toMatchObject({ outcome: "ineffective", detail: "the node left the list" });
    expect(two!.sentAt! - one!.sentAt!).toBeGreaterThanOrEqual(10 * MINUTE_MS);
  });

  test("count as failures of their policy, and too many make it fall back to dry_run", async () => {
    const efficacy = { window: 3, minSuccess: 0.5 };
    const network = await startLosingNodes({ canary: false, efficacy });
    expect(await failOneByOne(network, 6)).toBe(3);
    expect(notificationsOf(network, "efficacy")).toHaveLength(1);
  });

  test("count for the circuit breaker together with firing nodes", async () => {
    const breaker = { share: 0, amount: 3, withinMs: HOUR_MS };
    const network = await startLosingNodes({ canary: false, breaker });
    for (const node of onePerRegion(network, 3)) network.failNode(node);
    // By the next firing the earlier firings are more than an hour old; the losses are not.
    await network.advance(62 * MINUTE_MS);
    expect(network.controller().view.status().breaker).toBeNull();
    expect(lost(network)).toBe(3);
    network.failNode(network.nodes()[50]!);
    await network.advance(20 * MINUTE_MS);
    expect(network.controller().view.status().breaker).not.toBeNull();
  });

  test("no longer count once they are back, and their episode continues", async () => {
    const patient = { ...spec, retry: { ...spec.retry, forgetAfterMs: 2 * HOUR_MS } };
    const network = await startQuietNetwork({
      config: remediationConfig([patient], { canary: false }),
      scenario: rebootsLoseNodes({ forMs: 1.5 * HOUR_MS }),
    });
    const [first, second] = network.nodes("us-east");
    network.failNode(first!);
    await network.advance(HOUR_MS / 2);
    network.failNode(second!);
    await network.advance(HOUR_MS / 2);
    expect(network.postCount()).toBe(1);
    await network.advanceUntil(() => network.postCount() === 2);
    expect(network.nodes()).toContain(first);
    await network.advance(15 * MINUTE_MS);
    expect(network.episodes()[0]).toMatchObject({ state: "cleared" });
  });

  test("no longer count once an operator accepts the loss, also after a restart", async () => {
    const network = await startLosingNodes({ canary: false });
    const [first, second] = network.nodes("us-east");
    network.failNode(first!);
    await network.advance(40 * MINUTE_MS);
    await network.restart();
    network.failNode(second!);
    await network.advance(40 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
    const reply = await network.commands().acceptInventory();
    expect(reply).toMatchObject({ ok: true, value: expect.stringContaining("the loss of 1") });
    await network.advance(30 * MINUTE_MS);
    expect(network.postCount()).toBe(2);
    expect(episodeStates(network)).toEqual(["withdrawn", "suspended"]);
  });
});

describe("nodes that stay down after an action", () => {
  const SUSPECTS = 6;
  const inUsEast = (network: QuietNetwork) => network.nodes("us-east");
  const down = (network: QuietNetwork) => network.nodes().filter((node) => network.status(node) !== "online");

  /** Returns a policy that reboots online nodes of us-east. */
  const rebootOnline = (network: QuietNetwork, changed: Partial<PolicySpec> = {}) =>
    rebootOffline({
      name: "reboot-online",
      match: `node.id in ${JSON.stringify(inUsEast(network).slice(0, SUSPECTS))}`,
      when: 'node.status == "online"',
      ...changed,
    });

  /** Starts such a policy in a network in which a rebooted node stays down. */
  async function startLeavingDown(policy: Partial<PolicySpec> = {}, safety: Partial<typeof defaultSafety> = {}) {
    const network = await startQuietNetwork({ config: remediationConfig([], safety), scenario: rebootsLeaveDown });
    await network.reload({ config: remediationConfig([rebootOnline(network, policy)], safety) });
    return network;
  }

  test("count as disrupted in their region although `when` no longer holds, whether or not a step is left", async () => {
    for (const policySteps of [[steps.reboot], [steps.reboot, steps.force]]) {
      const network = await startLeavingDown({ steps: policySteps }, { canary: false });
      await network.advance(60 * MINUTE_MS);
      expect(down(network)).toHaveLength(1);
      expect(network.holdReasons(inUsEast(network)[1]!)).toContain("disrupted_domain");
      expect(notificationsOf(network, "lost")).toHaveLength(1);
    }
  });

  test("count for the circuit breaker together with firing nodes", async () => {
    const safety = { ...withoutLimits, breaker: { share: 0, amount: SUSPECTS, withinMs: HOUR_MS } };
    const network = await startLeavingDown({}, safety);
    const inUsWest = rebootOffline({ match: 'node.region == "us-west"' });
    await network.reload({ config: remediationConfig([rebootOnline(network), inUsWest], safety) });
    // By then their firings are more than an hour old; the losses are not.
    await network.advance(66 * MINUTE_MS);
    expect(down(network)).toHaveLength(SUSPECTS);
    expect(network.controller().view.status().breaker).toBeNull();
    network.failNode(network.nodes("us-west")[0]!);
    await network.advance(7 * MINUTE_MS);
    expect(network.controller().view.status().breaker).not.toBeNull();
  });

  test("stay the canary of a changed policy, so it acts on no other node", async () => {
    const unlimited = { ...withoutLimits, canary: true };
    const network = await startLeavingDown({}, unlimited);
    await network.advance(60 * MINUTE_MS);
    expect(down(network)).toHaveLength(1);
    expect(network.holdReasons(inUsEast(network)[1]!)).toEqual(["canary"]);
  });

  test("no longer count once an operator repairs them or accepts the loss, also after a restart", async () => {
    const network = await startLeavingDown({}, { canary: false });
    await network.advance(40 * MINUTE_MS);
    const [{ node, sentAt }] = network.actions() as [Action];
    const recoverAt = sentAt! + HOUR_MS;
    network.interventions.startFailure(node, { failureMode: "outage", remedy: "operator", recoverAt });
    await network.advanceUntil(() => network.postCount() === 2);
    await network.restart({ config: remediationConfig([rebootOnline(network)], { canary: false }) });
    await network.advance(40 * MINUTE_MS);
    expect(network.postCount()).toBe(2);
    const reply = await network.commands().acceptInventory();
    expect(reply).toMatchObject({ ok: true, value: expect.stringContaining("the loss of 1") });
    await network.advanceUntil(() => network.postCount() === 3);
  });

  test("are held by their episode if no step is left and `when` holds, and the hold says how it ends", async () => {
    const when = 'node.status in ["online", "offline"]';
    const network = await startLeavingDown({ when, steps: [steps.reboot] }, { canary: false });
    await network.advance(HOUR_MS);
    const [node] = down(network);
    const { view } = network.controller();
    const detail = expect.stringMatching(/^ep-1 has left the node down.* accept-inventory/);
    expect(runAtOnce(view.explain(node!)).policies[0]!.blockers).toContainEqual({ reason: "other_episode", detail });
    expect(runAtOnce(view.heldNodes({ node: node! }))).toMatchObject([{ reasons: ["other_episode"] }]);
    await network.commands().acceptInventory();
    await network.advance(MINUTE_MS);
    expect(network.holdReasons(node!)).not.toContain("other_episode");
  });

  test("may be acted on by another policy", async () => {
    const network = await startLeavingDown({}, { canary: false });
    await network.advance(HOUR_MS);
    await network.reload({ config: remediationConfig([rebootOnline(network), rebootOffline()], { canary: false }) });
    await network.advanceUntil(() => network.postCount() === 2);
    const [first, second] = network.actions() as [Action, Action];
    expect(second).toMatchObject({ policy: "reboot-offline", node: first.node });
    expect(second.sentAt! - first.endedAt!).toBeGreaterThanOrEqual(defaultSafety.cooldownMs);
  });

  test("stop counting with accept-inventory while their next step is held", async () => {
    const network = await startLeavingDown({ when: "node.uptime_hours >= 0" }, { canary: false });
    await network.advanceUntil(() => network.postCount() === 1);
    const [{ node }] = network.actions() as [Action];
    await network.commands().hold(node, "broken");
    await network.advance(60 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
    const reply = await network.commands().acceptInventory();
    expect(reply).toMatchObject({ ok: true, value: expect.stringContaining("the loss of 1") });
    await network.advanceUntil(() => network.postCount() === 2);
  });

  test("count if they go down after their reboot was verified", async () => {
    const when = 'node.status == "online" && node.cpu_usage > 0.9';
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline({ when })], { canary: false }),
      settings: everyMinuteSettings,
    });
    const [node] = inUsEast(network) as [string];
    network.interventions.startFailure(node, { failureMode: "hot", remedy: "reboot" });
    await network.advanceUntil(() => network.actions()[0]?.outcome === "verified");
    network.failNode(node, "operator");
    await network.advance(30 * MINUTE_MS);
    expect(notificationsOf(network, "lost")).toHaveLength(1);
    expect(network.episodes()).toMatchObject([{ state: "suspended" }]);
  });

  test("do not count if they were offline before the action", async () => {
    const config = remediationConfig([spec], { canary: false });
    const network = await startQuietNetwork({ config, scenario: rebootsLeaveDown });
    const [first, second] = inUsEast(network);
    network.failNode(first!);
    await network.advance(40 * MINUTE_MS);
    network.failNode(second!);
    await network.advance(40 * MINUTE_MS);
    expect(network.actions().map(({ node }) => node)).toContain(second);
    expect(notificationsOf(network, "lost")).toEqual([]);
  });
});
