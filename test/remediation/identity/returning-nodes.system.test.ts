import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { PolicySpec } from "../../../src/config/schema/policy.ts";
import type { Safety } from "../../../src/config/schema/safety.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { listsAndDetailsSettings, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { episodeStates } from "../../harness/remediation-results.ts";

const now = (network: QuietNetwork) => network.daemon.clock.now();
const minutes = (ms: number) => Math.round(ms / MINUTE_MS);
/** Details are collected, because only they have `created_at` (spec, section 2.1). */
const reusingIds = { nodes: 20, churn: { ...defaultScenario.churn, reuseIds: true } };
const slow = rebootOffline({ forMs: 30 * MINUTE_MS });

/** Starts a network in which an id may return as another node, with the first node of a region. */
async function startReusingIds(policy: PolicySpec, safety: Partial<Safety> = {}) {
  const config = remediationConfig([policy], safety);
  const network = await startQuietNetwork({ config, scenario: reusingIds, settings: listsAndDetailsSettings });
  return { network, node: network.nodes("us-east")[0]! };
}

/** Returns the timer of the first policy on a node: its state, and the minutes that count towards `for`. */
function timerOf(network: QuietNetwork, node: string) {
  const timer = network.explain(node).policies[0]?.timer ?? null;
  return timer === null ? "inactive" : `${timer.state} ${minutes(timer.trueMs)}m`;
}

/** Takes a node out of the fleet for a while; it is offline when it is back. */
async function leaveAndReturn(network: QuietNetwork, node: string, goneMs: number) {
  network.interventions.leaveFleet(node, now(network) + goneMs);
  await network.advance(goneMs);
  network.failNode(node);
}

/** Returns the minutes until the first action. Throws after three hours. */
async function minutesToAction(network: QuietNetwork) {
  const from = now(network);
  await network.advanceUntil(() => network.postCount() > 0);
  return minutes(now(network) - from);
}

describe("a node that returns after an absence", () => {
  test("is pending, and `for` counts from zero, also if an episode was open", async () => {
    const network = await startQuietNetwork({
      config: remediationConfig([slow]),
      scenario: { nodes: 20, sessions: 0 },
    });
    const node = network.nodes("us-east")[0]!;
    await network.commands().hold(node, "a test");
    network.failNode(node);
    await network.advance(40 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["firing"]);
    await leaveAndReturn(network, node, HOUR_MS);
    await network.commands().release(node);
    expect(episodeStates(network)).toEqual(["suspended"]);
    await network.advance(5 * MINUTE_MS);
    expect(timerOf(network, node)).toMatch(/^pending [0-5]m$/);
    expect(await minutesToAction(network)).toBeGreaterThanOrEqual(25);
    expect(episodeStates(network)).toEqual(["acting"]);
  });

  test("with another created_at is another node: of the old one's state, only the cooldown applies", async () => {
    const policy = rebootOffline({
      steps: [steps.reboot],
      retry: { episodes: 1, everyMs: DAY_MS, forgetAfterMs: DAY_MS },
    });
    const { network, node } = await startReusingIds(policy, { cooldownMs: 1.5 * HOUR_MS });
    network.failNode(node, "operator");
    await network.advance(30 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["given_up"]);
    expect(network.holdReasons(node)).toEqual(expect.arrayContaining(["cooldown", "retry_limit"]));
    await leaveAndReturn(network, node, 40 * MINUTE_MS);
    await network.advance(10 * MINUTE_MS);
    expect(network.holdReasons(node)).toEqual(["cooldown"]);
    await network.advance(HOUR_MS);
    expect(episodeStates(network)).toEqual(["given_up", "healed"]);
  });

  test("is found to be another one as soon as its detail is read, even between two walks", async () => {
    const { network, node } = await startReusingIds(slow);
    network.failNode(node, "operator");
    await network.advance(36 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["acting"]);
    network.interventions.leaveFleet(node, now(network) + 20 * SECOND_MS);
    await network.advance(21 * SECOND_MS);
    network.failNode(node);
    await network.advance(16 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["withdrawn"]);
    expect(network.actions()).toMatchObject([
      { outcome: "in_doubt", detail: expect.stringContaining("the id belongs to another node") },
    ]);
    expect(timerOf(network, node)).toMatch(/^pending/);
  });

  test("with another created_at ends the step of a dry run as a dry run, not in doubt: nothing was sent", async () => {
    const { network, node } = await startReusingIds({ ...slow, mode: "dry_run" });
    network.failNode(node, "operator");
    await network.advance(36 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["acting"]);
    await leaveAndReturn(network, node, 20 * SECOND_MS);
    await network.advance(16 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["withdrawn"]);
    expect(network.actions()).toMatchObject([{ state: "ended", outcome: "dry_run" }]);
  });

  test("and is found to be another one by the read before an action is not acted on until `for` is proven again", async () => {
    // No details are collected, so only that read shows created_at.
    const network = await startQuietNetwork({
      config: remediationConfig([rebootOffline({ steps: [steps.reboot] })], { cooldownMs: HOUR_MS }),
      scenario: reusingIds,
    });
    const node = network.nodes("us-east")[0]!;
    network.failNode(node);
    await network.advance(40 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["healed"]);
    network.interventions.leaveFleet(node, now(network) + HOUR_MS);
    await network.advance(HOUR_MS);
    network.failNode(node, "operator");
    await network.advanceUntil(() => episodeStates(network).includes("withdrawn"));
    expect(network.postCount()).toBe(1);
    await network.advanceUntil(() => network.postCount() === 2);
    const withdrawn = network.episodes().find(({ state }) => state === "withdrawn");
    expect(network.actions().at(-1)!.sentAt! - withdrawn!.closedAt!).toBeGreaterThanOrEqual(rebootOffline().forMs);
  });

  test("with another created_at closes the open episode, and does not inherit an approval", async () => {
    const { network, node } = await startReusingIds(rebootOffline({ mode: "approve" }));
    network.failNode(node);
    await network.advance(10 * MINUTE_MS);
    await network.commands().hold(node, "a test");
    await network.commands().approve(network.controller().view.approvals()[0]!.id);
    await leaveAndReturn(network, node, HOUR_MS);
    await network.commands().release(node);
    await network.advance(20 * MINUTE_MS);
    expect(network.postCount()).toBe(0);
    expect(episodeStates(network)).toEqual(["withdrawn", "firing"]);
    expect(network.actions()).toMatchObject([{ state: "lapsed" }, { state: "awaiting" }]);
  });
});

test("an id found to belong to another node just before a reload has no timer after it", async () => {
  const { network, node } = await startReusingIds(slow);
  network.failNode(node, "operator");
  // Between two walks, so that none misses the node.
  await network.advance(25.5 * MINUTE_MS);
  const createdAt = () => {
    const { ids, createdAtMs } = network.daemon.collected.inventory.currentFleet();
    return createdAtMs.at(ids.indexOf(node));
  };
  const before = createdAt();
  network.interventions.leaveFleet(node, now(network) + 2 * SECOND_MS);
  await network.advance(2 * SECOND_MS);
  network.failNode(node);
  // In steps that are shorter than the time until the next round.
  while (createdAt() === before) await network.advance(20);
  await network.reload({});
  await network.advance(2 * MINUTE_MS);
  expect(timerOf(network, node)).toMatch(/^pending [0-3]m$/);
});

describe("after downtime", () => {
  test("of three days an approval has expired, and is requested again", async () => {
    const network = await startQuietNetwork({ config: remediationConfig([{ ...slow, mode: "approve" }]) });
    const node = network.nodes("us-east")[0]!;
    network.failNode(node, "operator");
    await network.advance(40 * MINUTE_MS);
    const [request] = network.controller().view.approvals();
    await network.commands().hold(node, "a test");
    await network.commands().approve(request!.id);
    await network.advance(MINUTE_MS);
    await network.restart({ downMs: 3 * DAY_MS });
    await network.advance(5 * MINUTE_MS);
    await network.commands().release(node);
    await network.advance(20 * MINUTE_MS);
    expect(network.postCount()).toBe(0);
    expect(network.actions()[0]).toMatchObject({ state: "lapsed", detail: "the approval expired after 4h" });
    expect(network.controller().view.approvals()).toMatchObject([{ node, state: "awaiting" }]);
  });

  test("a timer starts over if the id has another created_at", async () => {
    const { network, node } = await startReusingIds(slow);
    network.failNode(node);
    await network.advance(25 * MINUTE_MS);
    expect(timerOf(network, node)).toMatch(/^pending 2\dm$/);
    network.interventions.leaveFleet(node, now(network) + 20 * MINUTE_MS);
    await network.restart({ downMs: 30 * MINUTE_MS });
    network.failNode(node);
    expect(await minutesToAction(network)).toBeGreaterThanOrEqual(30);
  });

  test("a timer continues where it was", async () => {
    const network = await startQuietNetwork({ config: remediationConfig([slow]) });
    const node = network.nodes("us-east")[0]!;
    network.failNode(node);
    await network.advance(20 * MINUTE_MS);
    await network.restart({ downMs: 10 * HOUR_MS });
    expect(await minutesToAction(network)).toBeLessThan(15);
  });
});

describe("an approval", () => {
  const approving = rebootOffline({ mode: "approve" });

  test("expires if its action waits longer than safety.approval_ttl, and is requested again", async () => {
    const network = await startQuietNetwork({ config: remediationConfig([approving], { approvalTtlMs: HOUR_MS }) });
    const node = network.nodes("us-east")[0]!;
    network.failNode(node);
    await network.advance(10 * MINUTE_MS);
    const [request] = network.controller().view.approvals();
    await network.commands().hold(node, "a test");
    await network.advance(50 * MINUTE_MS);
    await network.commands().approve(request!.id);
    await network.advance(55 * MINUTE_MS);
    expect(network.actions()).toMatchObject([{ id: request!.id, state: "approved" }]);
    await network.advance(10 * MINUTE_MS);
    expect(network.actions()).toMatchObject([{ state: "lapsed", detail: "the approval expired after 1h" }]);
    await network.commands().release(node);
    await network.advance(5 * MINUTE_MS);
    expect(network.postCount()).toBe(0);
    expect(network.controller().view.approvals()).toMatchObject([{ node, state: "awaiting" }]);
    const explained = network.explain(node).policies[0]!.blockers;
    expect(explained).toMatchObject([
      { reason: "approval", detail: expect.stringContaining(`${request!.id} lapsed: the approval expired after 1h`) },
    ]);
  });

  test("can't be given after safety.approval_ttl; a new request has current evidence", async () => {
    const network = await startQuietNetwork({ config: remediationConfig([approving], { approvalTtlMs: HOUR_MS }) });
    const node = network.nodes("us-east")[0]!;
    network.failNode(node);
    await network.advance(90 * MINUTE_MS);
    const [old, fresh] = network.actions();
    expect(old).toMatchObject({ state: "lapsed", detail: "it was not approved within 1h" });
    expect(await network.commands().approve(old!.id)).toMatchObject({
      ok: false,
      error: { kind: "conflict" },
    });
    expect(fresh!.evidence.observedAt - old!.evidence.observedAt).toBeGreaterThanOrEqual(HOUR_MS - MINUTE_MS);
    expect(await network.commands().approve(fresh!.id)).toMatchObject({ ok: true });
    await network.advance(MINUTE_MS);
    expect(network.postCount()).toBe(1);
  });
});
