import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { minuteSettings } from "../../harness/virtual-daemon.ts";
import { courses } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { listsOnly, startWard, type WardRun } from "../../harness/quiet-network.ts";

const now = (ward: WardRun) => ward.daemon.clock.now();
const minutes = (ms: number) => Math.round(ms / MINUTE_MS);
/** Only a detail says when a node was created (spec, section 2.1). */
const withDetails = { cadences: { ...listsOnly.cadences!, details: minuteSettings.cadences.details } };
const reusingIds = { nodes: 20, churn: { ...defaultScenario.churn, reuseIds: true } };
const slow = rebootOffline({ forMs: 30 * MINUTE_MS });

/** The timer of the first policy on a node: its state, and the minutes that count towards `for`. */
function timerOf(ward: WardRun, node: string) {
  const timer = ward.warden().view.explain(node).policies[0]?.timer ?? null;
  return timer === null ? "inactive" : `${timer.state} ${minutes(timer.trueMs)}m`;
}

/** A node leaves the fleet for a while, and is offline when it is back. */
async function leaveAndReturn(ward: WardRun, node: string, goneMs: number) {
  ward.people.leave(node, now(ward) + goneMs);
  await ward.pass(goneMs);
  ward.fell(node);
}

/** Minutes until the first action on the fleet; throws after three hours. */
async function minutesToAction(ward: WardRun) {
  const from = now(ward);
  await ward.passUntil(() => ward.postCount() > 0);
  return minutes(now(ward) - from);
}

describe("a node that returns after an absence", () => {
  test("is pending, and `for` counts from zero, also for an episode that was open", async () => {
    const ward = await startWard({ rules: rulesOf([slow]), scenario: { nodes: 20, sessions: 0 } });
    const node = ward.nodes("us-east")[0]!;
    ward.warden().orders.hold(node, "a test");
    ward.fell(node);
    await ward.pass(40 * MINUTE_MS);
    expect(courses(ward)).toEqual(["firing"]);
    await leaveAndReturn(ward, node, 20 * HOUR_MS);
    ward.warden().orders.release(node);
    expect(courses(ward)).toEqual(["suspended"]);
    await ward.pass(5 * MINUTE_MS);
    expect(timerOf(ward, node)).toMatch(/^pending [0-5]m$/);
    expect(await minutesToAction(ward)).toBeGreaterThanOrEqual(25);
    expect(courses(ward)).toEqual(["acting"]);
    await ward.stop();
  });

  test("under another created_at is another node: nothing of the old one applies to it", async () => {
    const policy = rebootOffline({
      steps: [steps.reboot],
      retry: { episodes: 1, everyMs: DAY_MS, forgetAfterMs: DAY_MS },
    });
    const ward = await startWard({
      rules: rulesOf([policy], { cooldownMs: DAY_MS }),
      scenario: reusingIds,
      settings: withDetails,
    });
    const node = ward.nodes("us-east")[0]!;
    ward.fell(node, "person");
    await ward.pass(30 * MINUTE_MS);
    expect(courses(ward)).toEqual(["given_up"]);
    expect(ward.reasons(node)).toEqual(expect.arrayContaining(["cooldown", "retry_limit"]));
    await leaveAndReturn(ward, node, 2 * HOUR_MS);
    await ward.pass(10 * MINUTE_MS);
    expect(courses(ward)).toEqual(["given_up", "recovering"]);
    await ward.stop();
  });

  test("between two walks is found to be another one as soon as its detail was read", async () => {
    const ward = await startWard({ rules: rulesOf([slow]), scenario: reusingIds, settings: withDetails });
    const node = ward.nodes("us-east")[0]!;
    ward.fell(node, "person");
    await ward.pass(36 * MINUTE_MS);
    expect(courses(ward)).toEqual(["acting"]);
    ward.people.leave(node, now(ward) + 20 * SECOND_MS);
    await ward.pass(21 * SECOND_MS);
    ward.fell(node);
    await ward.pass(16 * MINUTE_MS);
    expect(courses(ward)).toEqual(["withdrawn"]);
    expect(ward.actions()).toMatchObject([
      { outcome: "in_doubt", detail: expect.stringContaining("another node has the id") },
    ]);
    expect(timerOf(ward, node)).toMatch(/^pending/);
    await ward.stop();
  });

  test("under another created_at closes what was open, and takes no approval over", async () => {
    const ward = await startWard({
      rules: rulesOf([rebootOffline({ mode: "approve" })]),
      scenario: reusingIds,
      settings: withDetails,
    });
    const node = ward.nodes("us-east")[0]!;
    ward.fell(node);
    await ward.pass(10 * MINUTE_MS);
    ward.warden().orders.hold(node, "a test");
    ward.warden().orders.approve(ward.warden().view.approvals()[0]!.id);
    await leaveAndReturn(ward, node, HOUR_MS);
    ward.warden().orders.release(node);
    await ward.pass(20 * MINUTE_MS);
    expect(ward.postCount()).toBe(0);
    expect(courses(ward)).toEqual(["withdrawn", "firing"]);
    expect(ward.actions()).toMatchObject([{ state: "lapsed" }, { state: "awaiting" }]);
    await ward.stop();
  });
});

describe("after downtime", () => {
  test("of three days an approval has expired, and the episode asks anew", async () => {
    const ward = await startWard({ rules: rulesOf([{ ...slow, mode: "approve" }]) });
    const node = ward.nodes("us-east")[0]!;
    ward.fell(node, "person");
    await ward.pass(40 * MINUTE_MS);
    const [request] = ward.warden().view.approvals();
    ward.warden().orders.hold(node, "a test");
    ward.warden().orders.approve(request!.id);
    await ward.pass(MINUTE_MS);
    await ward.restart({ downMs: 3 * DAY_MS });
    await ward.pass(5 * MINUTE_MS);
    ward.warden().orders.release(node);
    await ward.pass(20 * MINUTE_MS);
    expect(ward.postCount()).toBe(0);
    expect(ward.actions()[0]).toMatchObject({ state: "lapsed", detail: "the approval expired after 4h" });
    expect(ward.warden().view.approvals()).toMatchObject([{ node, state: "awaiting" }]);
    await ward.stop();
  });

  test("a timer begins anew on a node that has the id of the old one and another created_at", async () => {
    const ward = await startWard({ rules: rulesOf([slow]), scenario: reusingIds, settings: withDetails });
    const node = ward.nodes("us-east")[0]!;
    ward.fell(node);
    await ward.pass(25 * MINUTE_MS);
    expect(timerOf(ward, node)).toMatch(/^pending 2\dm$/);
    ward.people.leave(node, now(ward) + 20 * MINUTE_MS);
    await ward.restart({ downMs: 30 * MINUTE_MS });
    ward.fell(node);
    expect(await minutesToAction(ward)).toBeGreaterThanOrEqual(30);
    await ward.stop();
  });

  test("a timer goes on where it was", async () => {
    const ward = await startWard({ rules: rulesOf([slow]) });
    const node = ward.nodes("us-east")[0]!;
    ward.fell(node);
    await ward.pass(20 * MINUTE_MS);
    await ward.restart({ downMs: 10 * HOUR_MS });
    expect(await minutesToAction(ward)).toBeLessThan(15);
    await ward.stop();
  });
});

describe("an approval", () => {
  const approving = rebootOffline({ mode: "approve" });

  test("that waits longer than safety.approval_ttl for its action expires, and is asked for anew", async () => {
    const ward = await startWard({ rules: rulesOf([approving], { approvalTtlMs: HOUR_MS }) });
    const node = ward.nodes("us-east")[0]!;
    ward.fell(node);
    await ward.pass(10 * MINUTE_MS);
    const [request] = ward.warden().view.approvals();
    ward.warden().orders.hold(node, "a test");
    await ward.pass(50 * MINUTE_MS);
    ward.warden().orders.approve(request!.id);
    await ward.pass(55 * MINUTE_MS);
    expect(ward.actions()).toMatchObject([{ id: request!.id, state: "approved" }]);
    await ward.pass(10 * MINUTE_MS);
    expect(ward.actions()).toMatchObject([{ state: "lapsed", detail: "the approval expired after 1h" }]);
    ward.warden().orders.release(node);
    await ward.pass(5 * MINUTE_MS);
    expect(ward.postCount()).toBe(0);
    expect(ward.warden().view.approvals()).toMatchObject([{ node, state: "awaiting" }]);
    const explained = ward.warden().view.explain(node).policies[0]!.blockers;
    expect(explained).toMatchObject([
      { reason: "approval", detail: expect.stringContaining(`${request!.id} lapsed: the approval expired after 1h`) },
    ]);
    await ward.stop();
  });

  test("that is not given within safety.approval_ttl can't be given any more; a new request has the evidence of now", async () => {
    const ward = await startWard({ rules: rulesOf([approving], { approvalTtlMs: HOUR_MS }) });
    const node = ward.nodes("us-east")[0]!;
    ward.fell(node);
    await ward.pass(90 * MINUTE_MS);
    const [old, fresh] = ward.actions();
    expect(old).toMatchObject({ state: "lapsed", detail: "it was not approved within 1h" });
    expect(ward.warden().orders.approve(old!.id)).toMatchObject({ ok: false, error: { kind: "conflict" } });
    expect(fresh!.evidence.observedAt - old!.evidence.observedAt).toBeGreaterThanOrEqual(HOUR_MS - MINUTE_MS);
    expect(ward.warden().orders.approve(fresh!.id)).toMatchObject({ ok: true });
    await ward.pass(MINUTE_MS);
    expect(ward.postCount()).toBe(1);
    await ward.stop();
  });
});
