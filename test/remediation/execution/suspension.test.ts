import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import { ONE_NODE, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { episodeStates, notificationsOf } from "../../harness/remediation-results.ts";

const now = (network: QuietNetwork) => network.daemon.clock.now();

/** A policy that is true for nodes with sessions, and unknown for nodes without; each step waits for approval. */
const busy = (match: string) =>
  rebootOffline({
    name: "busy",
    mode: "approve",
    match,
    when: "ratio(node.active_sessions, node.active_sessions) > 0.5",
    forMs: 10 * MINUTE_MS,
    clearForMs: 10 * MINUTE_MS,
    maxAgeMs: 5 * MINUTE_MS,
    steps: [steps.disconnect],
    retry: { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 3 * HOUR_MS },
  });

/** Makes a node under `busy` fail, so that it has no sessions and the verdict is unknown. */
async function startUnknown(healAfterMs: number, policies = [busy(`node.id == "${ONE_NODE}"`)]) {
  const network = await startQuietNetwork({
    config: remediationConfig(policies),
    scenario: { nodes: 60, sessions: 600 },
  });
  await network.advance(12 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["firing"]);
  network.interventions.startFailure(ONE_NODE, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: now(network) + healAfterMs,
  });
  await network.advance(2 * MINUTE_MS);
  expect(network.explain(ONE_NODE).policies[0]!.verdict).toBe("unknown");
  return network;
}

describe("an episode whose verdict stays unknown", () => {
  test("keeps its node for max_age + for, and then frees it for other policies", async () => {
    const network = await startUnknown(24 * HOUR_MS, [busy(`node.id == "${ONE_NODE}"`), rebootOffline()]);
    await network.advance(12 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["firing"]);
    expect(network.holdReasons(ONE_NODE)).toContain("verdict_unknown");
    await network.advance(3 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["suspended", "acting"]);
    expect(network.actions()).toMatchObject([{ state: "lapsed" }, { policy: "reboot-offline", state: "sent" }]);
  });

  test("continues once the condition has been true for `for` again", async () => {
    const network = await startUnknown(HOUR_MS);
    await network.advance(40 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["suspended"]);
    const [{ id } = { id: "" }] = network.episodes();
    // Online again after another 18 minutes.
    await network.advance(26 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["suspended"]);
    await network.advance(20 * MINUTE_MS);
    expect(network.episodes()).toMatchObject([{ id, state: "firing" }]);
  });

  test("ends after retry.forget_after", async () => {
    const network = await startUnknown(24 * HOUR_MS);
    await network.advance(3 * HOUR_MS);
    expect(episodeStates(network)).toEqual(["suspended"]);
    await network.advance(30 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["withdrawn"]);
  });

  test("is suspended after max_age + for, also across a restart", async () => {
    const network = await startUnknown(24 * HOUR_MS);
    await network.restart({ downMs: 10 * MINUTE_MS });
    await network.advance(15 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["firing"]);
    await network.advance(3 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["suspended"]);
    await network.restart();
    await network.advance(5 * MINUTE_MS);
    expect(episodeStates(network)).toEqual(["suspended"]);
  });
});

test("a node that stays on the list is not lost when its episode is suspended after an action", async () => {
  const twice = { ...busy(`node.id == "${ONE_NODE}"`), steps: [steps.disconnect, steps.disconnect] };
  const network = await startQuietNetwork({
    config: remediationConfig([twice]),
    scenario: { nodes: 60, sessions: 600 },
  });
  await network.advanceUntil(() => network.controller().view.approvals().length === 1);
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advanceUntil(() => network.actions()[0]!.outcome === "ineffective");
  network.interventions.startFailure(ONE_NODE, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: now(network) + 24 * HOUR_MS,
  });
  await network.advanceUntil(() => episodeStates(network)[0] === "suspended");
  expect(network.episodes()).toMatchObject([{ acted: 1 }]);
  expect(notificationsOf(network, "lost")).toEqual([]);
  expect(await network.commands().acceptInventory()).toMatchObject({
    value: expect.not.stringContaining("loss"),
  });
  expect(episodeStates(network)).toEqual(["suspended"]);
  network.interventions.leaveFleet(ONE_NODE, Number.POSITIVE_INFINITY);
  await network.advance(30 * MINUTE_MS);
  expect(notificationsOf(network, "lost")).toHaveLength(1);
});

test("nodes whose verdict stays unknown don't count towards a storm", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([busy('node.region == "us-east"')], {
      maxUnhealthy: { share: 0.05 },
      breaker: { share: 1, amount: 60, withinMs: HOUR_MS },
      correlated: { by: "region", nodes: 60, share: 1, withinMs: MINUTE_MS },
    }),
    scenario: { nodes: 60, sessions: 600 },
  });
  await network.advance(12 * MINUTE_MS);
  const nodes = network.nodes("us-east");
  expect(network.controller().view.status().stormUntil).not.toBeNull();
  // All sessions end, as at night.
  for (const node of nodes)
    network.interventions.startFailure(node, {
      failureMode: "outage",
      remedy: "time",
      recoverAt: now(network) + HOUR_MS,
    });
  await network.advance(HOUR_MS - MINUTE_MS);
  expect(runAtOnce(network.controller().view.policies())[0]).toMatchObject({ firing: 0 });
});
