import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { episodeLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { listsOnlySettings, type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";
import { everyMinuteSettings } from "../../harness/virtual-daemon.ts";

const now = (context: QuietNetwork) => context.daemon.clock.now();
const minutes = (ms: number) => Math.round(ms / MINUTE_MS);
/** Only a detail says when a node was created (spec, section 2.1). */
const withDetails = { schedules: { ...listsOnlySettings.schedules!, details: everyMinuteSettings.schedules.details } };
const reusingIds = { nodes: 20, churn: { ...defaultScenario.churn, reuseIds: true } };
const slow = rebootOffline({ forMs: 30 * MINUTE_MS });

/** The timer of the first policy on a node: its state, and the minutes that count towards `for`. */
function timerOf(context: QuietNetwork, node: string) {
  const timer = context.controller().view.explain(node).policies[0]?.timer ?? null;
  return timer === null ? "inactive" : `${timer.state} ${minutes(timer.trueMs)}m`;
}

/** A node leaves the fleet for a while, and is offline when it is back. */
async function leaveAndReturn(context: QuietNetwork, node: string, goneMs: number) {
  context.interventions.leaveFleet(node, now(context) + goneMs);
  await context.advance(goneMs);
  context.failedNodes(node);
}

/** Minutes until the first action on the fleet; throws after three hours. */
async function minutesToAction(context: QuietNetwork) {
  const from = now(context);
  await context.advanceUntil(() => context.postCount() > 0);
  return minutes(now(context) - from);
}

describe("a node that returns after an absence", () => {
  test("is pending, and `for` counts from zero, also for an episode that was open", async () => {
    const context = await startQuietNetwork({ rules: remediationRules([slow]), scenario: { nodes: 20, sessions: 0 } });
    const node = context.nodes("us-east")[0]!;
    context.controller().operatorCommands.hold(node, "a test");
    context.failedNodes(node);
    await context.advance(40 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["firing"]);
    await leaveAndReturn(context, node, 20 * HOUR_MS);
    context.controller().operatorCommands.release(node);
    expect(episodeLines(context)).toEqual(["suspended"]);
    await context.advance(5 * MINUTE_MS);
    expect(timerOf(context, node)).toMatch(/^pending [0-5]m$/);
    expect(await minutesToAction(context)).toBeGreaterThanOrEqual(25);
    expect(episodeLines(context)).toEqual(["acting"]);
    await context.stop();
  });

  test("under another created_at is another node: nothing of the old one applies to it", async () => {
    const policy = rebootOffline({
      steps: [steps.reboot],
      retry: { episodes: 1, everyMs: DAY_MS, forgetAfterMs: DAY_MS },
    });
    const context = await startQuietNetwork({
      rules: remediationRules([policy], { cooldownMs: DAY_MS }),
      scenario: reusingIds,
      settings: withDetails,
    });
    const node = context.nodes("us-east")[0]!;
    context.failedNodes(node, "person");
    await context.advance(30 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["given_up"]);
    expect(context.holdReasons(node)).toEqual(expect.arrayContaining(["cooldown", "retry_limit"]));
    await leaveAndReturn(context, node, 2 * HOUR_MS);
    await context.advance(10 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["given_up", "recovering"]);
    await context.stop();
  });

  test("between two walks is found to be another one as soon as its detail was read", async () => {
    const context = await startQuietNetwork({
      rules: remediationRules([slow]),
      scenario: reusingIds,
      settings: withDetails,
    });
    const node = context.nodes("us-east")[0]!;
    context.failedNodes(node, "person");
    await context.advance(36 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["acting"]);
    context.interventions.leaveFleet(node, now(context) + 20 * SECOND_MS);
    await context.advance(21 * SECOND_MS);
    context.failedNodes(node);
    await context.advance(16 * MINUTE_MS);
    expect(episodeLines(context)).toEqual(["withdrawn"]);
    expect(context.actions()).toMatchObject([
      { outcome: "in_doubt", detail: expect.stringContaining("another node has the id") },
    ]);
    expect(timerOf(context, node)).toMatch(/^pending/);
    await context.stop();
  });

  test("under another created_at closes what was open, and takes no approval over", async () => {
    const context = await startQuietNetwork({
      rules: remediationRules([rebootOffline({ mode: "approve" })]),
      scenario: reusingIds,
      settings: withDetails,
    });
    const node = context.nodes("us-east")[0]!;
    context.failedNodes(node);
    await context.advance(10 * MINUTE_MS);
    context.controller().operatorCommands.hold(node, "a test");
    context.controller().operatorCommands.approve(context.controller().view.approvals()[0]!.id);
    await leaveAndReturn(context, node, HOUR_MS);
    context.controller().operatorCommands.release(node);
    await context.advance(20 * MINUTE_MS);
    expect(context.postCount()).toBe(0);
    expect(episodeLines(context)).toEqual(["withdrawn", "firing"]);
    expect(context.actions()).toMatchObject([{ state: "lapsed" }, { state: "awaiting" }]);
    await context.stop();
  });
});

describe("after downtime", () => {
  test("of three days an approval has expired, and the episode asks anew", async () => {
    const context = await startQuietNetwork({ rules: remediationRules([{ ...slow, mode: "approve" }]) });
    const node = context.nodes("us-east")[0]!;
    context.failedNodes(node, "person");
    await context.advance(40 * MINUTE_MS);
    const [request] = context.controller().view.approvals();
    context.controller().operatorCommands.hold(node, "a test");
    context.controller().operatorCommands.approve(request!.id);
    await context.advance(MINUTE_MS);
    await context.restart({ downMs: 3 * DAY_MS });
    await context.advance(5 * MINUTE_MS);
    context.controller().operatorCommands.release(node);
    await context.advance(20 * MINUTE_MS);
    expect(context.postCount()).toBe(0);
    expect(context.actions()[0]).toMatchObject({ state: "lapsed", detail: "the approval expired after 4h" });
    expect(context.controller().view.approvals()).toMatchObject([{ node, state: "awaiting" }]);
    await context.stop();
  });

  test("a timer starts over on a node that has the id of the old one and another created_at", async () => {
    const context = await startQuietNetwork({
      rules: remediationRules([slow]),
      scenario: reusingIds,
      settings: withDetails,
    });
    const node = context.nodes("us-east")[0]!;
    context.failedNodes(node);
    await context.advance(25 * MINUTE_MS);
    expect(timerOf(context, node)).toMatch(/^pending 2\dm$/);
    context.interventions.leaveFleet(node, now(context) + 20 * MINUTE_MS);
    await context.restart({ downMs: 30 * MINUTE_MS });
    context.failedNodes(node);
    expect(await minutesToAction(context)).toBeGreaterThanOrEqual(30);
    await context.stop();
  });

  test("a timer goes on where it was", async () => {
    const context = await startQuietNetwork({ rules: remediationRules([slow]) });
    const node = context.nodes("us-east")[0]!;
    context.failedNodes(node);
    await context.advance(20 * MINUTE_MS);
    await context.restart({ downMs: 10 * HOUR_MS });
    expect(await minutesToAction(context)).toBeLessThan(15);
    await context.stop();
  });
});

describe("an approval", () => {
  const approving = rebootOffline({ mode: "approve" });

  test("that waits longer than safety.approval_ttl for its action expires, and is asked for anew", async () => {
    const context = await startQuietNetwork({ rules: remediationRules([approving], { approvalTtlMs: HOUR_MS }) });
    const node = context.nodes("us-east")[0]!;
    context.failedNodes(node);
    await context.advance(10 * MINUTE_MS);
    const [request] = context.controller().view.approvals();
    context.controller().operatorCommands.hold(node, "a test");
    await context.advance(50 * MINUTE_MS);
    context.controller().operatorCommands.approve(request!.id);
    await context.advance(55 * MINUTE_MS);
    expect(context.actions()).toMatchObject([{ id: request!.id, state: "approved" }]);
    await context.advance(10 * MINUTE_MS);
    expect(context.actions()).toMatchObject([{ state: "lapsed", detail: "the approval expired after 1h" }]);
    context.controller().operatorCommands.release(node);
    await context.advance(5 * MINUTE_MS);
    expect(context.postCount()).toBe(0);
    expect(context.controller().view.approvals()).toMatchObject([{ node, state: "awaiting" }]);
    const explained = context.controller().view.explain(node).policies[0]!.blockers;
    expect(explained).toMatchObject([
      { reason: "approval", detail: expect.stringContaining(`${request!.id} lapsed: the approval expired after 1h`) },
    ]);
    await context.stop();
  });

  test("that is not given within safety.approval_ttl can't be given any more; a new request has the evidence of now", async () => {
    const context = await startQuietNetwork({ rules: remediationRules([approving], { approvalTtlMs: HOUR_MS }) });
    const node = context.nodes("us-east")[0]!;
    context.failedNodes(node);
    await context.advance(90 * MINUTE_MS);
    const [old, fresh] = context.actions();
    expect(old).toMatchObject({ state: "lapsed", detail: "it was not approved within 1h" });
    expect(context.controller().operatorCommands.approve(old!.id)).toMatchObject({
      ok: false,
      error: { kind: "conflict" },
    });
    expect(fresh!.evidence.observedAt - old!.evidence.observedAt).toBeGreaterThanOrEqual(HOUR_MS - MINUTE_MS);
    expect(context.controller().operatorCommands.approve(fresh!.id)).toMatchObject({ ok: true });
    await context.advance(MINUTE_MS);
    expect(context.postCount()).toBe(1);
    await context.stop();
  });
});
