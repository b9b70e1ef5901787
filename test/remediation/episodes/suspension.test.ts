import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { episodeLines, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

const now = (context: QuietNetwork) => context.daemon.clock.now();

/** A policy that is true on nodes with a session and unknown on those without one; each step waits for an approval. */
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
    retry: { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 6 * HOUR_MS },
  });

const ONE = "node_caffe390";

/** A node under `busy` falls ill, so that it has no sessions and the verdict is unknown. */
async function startUnknown(healAfterMs: number, policies = [busy(`node.id == "${ONE}"`)]) {
  const context = await startQuietNetwork({
    rules: remediationRules(policies),
    scenario: { nodes: 60, sessions: 600 },
  });
  await context.advance(12 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["firing"]);
  context.interventions.startFailure(ONE, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: now(context) + healAfterMs,
  });
  await context.advance(2 * MINUTE_MS);
  expect(context.controller().view.explain(ONE).policies[0]!.verdict).toBe("unknown");
  return context;
}

describe("an episode whose verdict stays unknown", () => {
  test("keeps its node for max_age + for, and then frees it for other policies", async () => {
    const context = await startUnknown(24 * HOUR_MS, [busy(`node.id == "${ONE}"`), rebootOffline()]);
    await context.advance(12 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["firing"]);
    expect(context.holdReasons(ONE)).toContain("verdict_unknown");
    await context.advance(3 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["suspended", "acting"]);
    expect(context.actions()).toMatchObject([{ state: "lapsed" }, { policy: "reboot-offline", state: "sent" }]);
    await context.stop();
  });

  test("goes on once `for` is proven again", async () => {
    const context = await startUnknown(HOUR_MS);
    await context.advance(40 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["suspended"]);
    const [{ id } = { id: "" }] = context.episodes();
    // Online again after another 18 minutes.
    await context.advance(26 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["suspended"]);
    await context.advance(20 * MINUTE_MS);
    expect(context.episodes()).toMatchObject([{ id, state: "firing" }]);
    await context.stop();
  });

  test("ends after retry.forget_after", async () => {
    const context = await startUnknown(24 * HOUR_MS);
    await context.advance(6 * HOUR_MS);
    expect(episodeLines(context)).toEqual(["suspended"]);
    await context.advance(30 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["withdrawn"]);
    await context.stop();
  });

  test("is suspended max_age + for after a restart as well", async () => {
    const context = await startUnknown(24 * HOUR_MS);
    await context.restart({ downMs: 10 * MINUTE_MS });
    await context.advance(15 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["firing"]);
    await context.advance(3 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["suspended"]);
    await context.restart();
    await context.advance(5 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["suspended"]);
    await context.stop();
  });
});

test("a node that stays on the list is not lost after an action whose episode is suspended", async () => {
  const twice = { ...busy(`node.id == "${ONE}"`), steps: [steps.disconnect, steps.disconnect] };
  const context = await startQuietNetwork({ rules: remediationRules([twice]), scenario: { nodes: 60, sessions: 600 } });
  await context.advanceUntil(() => context.controller().view.approvals().length === 1);
  context.controller().operatorCommands.approve(context.controller().view.approvals()[0]!.id);
  await context.advanceUntil(() => context.actions()[0]!.outcome === "ineffective");
  context.interventions.startFailure(ONE, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: now(context) + 24 * HOUR_MS,
  });
  await context.advanceUntil(() => episodeLines(context)[0] === "suspended");
  expect(context.episodes()).toMatchObject([{ acted: 1 }]);
  expect(notificationLines(context, "lost")).toEqual([]);
  expect(context.controller().operatorCommands.acceptInventory()).toMatchObject({
    value: expect.not.stringContaining("loss"),
  });
  expect(episodeLines(context)).toEqual(["suspended"]);
  context.interventions.leaveFleet(ONE, Number.POSITIVE_INFINITY);
  await context.advance(30 * MINUTE_MS);
  expect(notificationLines(context, "lost")).toHaveLength(1);
  await context.stop();
});

test("nodes whose verdict stays unknown are no outage of the fleet", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([busy('node.region == "us-east"')], {
      maxUnhealthy: { share: 0.05 },
      breaker: { share: 1, amount: 60, withinMs: HOUR_MS },
      correlated: { by: "region", nodes: 60, share: 1, withinMs: MINUTE_MS },
    }),
    scenario: { nodes: 60, sessions: 600 },
  });
  await context.advance(12 * MINUTE_MS);
  const nodes = context.nodes("us-east");
  expect(context.controller().view.status().stormUntil).not.toBeNull();
  // Another policy text would make them well; here all sessions end, as at night.
  for (const node of nodes)
    context.interventions.startFailure(node, {
      failureMode: "outage",
      remedy: "time",
      recoverAt: now(context) + HOUR_MS,
    });
  await context.advance(HOUR_MS - MINUTE_MS);
  expect(context.controller().view.policies()[0]).toMatchObject({ firing: 0 });
  await context.stop();
});
