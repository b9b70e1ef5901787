import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { courses, told } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

const now = (ward: WardRun) => ward.daemon.clock.now();

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
  const ward = await startWard({ rules: rulesOf(policies), scenario: { nodes: 60, sessions: 600 } });
  await ward.pass(12 * MINUTE_MS);
  expect(courses(ward)).toEqual(["firing"]);
  ward.people.fallIll(ONE, { ailment: "outage", cure: "time", healAt: now(ward) + healAfterMs });
  await ward.pass(2 * MINUTE_MS);
  expect(ward.warden().view.explain(ONE).policies[0]!.verdict).toBe("unknown");
  return ward;
}

describe("an episode whose verdict stays unknown", () => {
  test("keeps its node for max_age + for, and then frees it for other policies", async () => {
    const ward = await startUnknown(24 * HOUR_MS, [busy(`node.id == "${ONE}"`), rebootOffline()]);
    await ward.pass(12 * MINUTE_MS);
    expect(courses(ward)).toEqual(["firing"]);
    expect(ward.reasons(ONE)).toContain("verdict_unknown");
    await ward.pass(3 * MINUTE_MS);
    expect(courses(ward)).toEqual(["suspended", "acting"]);
    expect(ward.actions()).toMatchObject([{ state: "lapsed" }, { policy: "reboot-offline", state: "sent" }]);
    await ward.stop();
  });

  test("goes on once `for` is proven again", async () => {
    const ward = await startUnknown(HOUR_MS);
    await ward.pass(40 * MINUTE_MS);
    expect(courses(ward)).toEqual(["suspended"]);
    const [{ id } = { id: "" }] = ward.episodes();
    // Online again after another 18 minutes.
    await ward.pass(26 * MINUTE_MS);
    expect(courses(ward)).toEqual(["suspended"]);
    await ward.pass(20 * MINUTE_MS);
    expect(ward.episodes()).toMatchObject([{ id, state: "firing" }]);
    await ward.stop();
  });

  test("ends by itself after retry.forget_after", async () => {
    const ward = await startUnknown(24 * HOUR_MS);
    await ward.pass(6 * HOUR_MS);
    expect(courses(ward)).toEqual(["suspended"]);
    await ward.pass(30 * MINUTE_MS);
    expect(courses(ward)).toEqual(["withdrawn"]);
    await ward.stop();
  });

  test("is suspended max_age + for after a restart as well", async () => {
    const ward = await startUnknown(24 * HOUR_MS);
    await ward.restart({ downMs: 10 * MINUTE_MS });
    await ward.pass(15 * MINUTE_MS);
    expect(courses(ward)).toEqual(["firing"]);
    await ward.pass(3 * MINUTE_MS);
    expect(courses(ward)).toEqual(["suspended"]);
    await ward.restart();
    await ward.pass(5 * MINUTE_MS);
    expect(courses(ward)).toEqual(["suspended"]);
    await ward.stop();
  });
});

test("a node that stays on the list is not lost after an action whose episode is suspended", async () => {
  const twice = { ...busy(`node.id == "${ONE}"`), steps: [steps.disconnect, steps.disconnect] };
  const ward = await startWard({ rules: rulesOf([twice]), scenario: { nodes: 60, sessions: 600 } });
  await ward.passUntil(() => ward.warden().view.approvals().length === 1);
  ward.warden().orders.approve(ward.warden().view.approvals()[0]!.id);
  await ward.passUntil(() => ward.actions()[0]!.outcome === "ineffective");
  ward.people.fallIll(ONE, { ailment: "outage", cure: "time", healAt: now(ward) + 24 * HOUR_MS });
  await ward.passUntil(() => courses(ward)[0] === "suspended");
  expect(ward.episodes()).toMatchObject([{ acted: 1 }]);
  expect(told(ward, "lost")).toEqual([]);
  expect(ward.warden().orders.acceptInventory()).toMatchObject({ value: expect.not.stringContaining("loss") });
  expect(courses(ward)).toEqual(["suspended"]);
  ward.people.leave(ONE, Number.POSITIVE_INFINITY);
  await ward.pass(30 * MINUTE_MS);
  expect(told(ward, "lost")).toHaveLength(1);
  await ward.stop();
});

test("nodes whose verdict stays unknown are no outage of the fleet", async () => {
  const ward = await startWard({
    rules: rulesOf([busy('node.region == "us-east"')], {
      maxUnhealthy: { share: 0.05 },
      breaker: { share: 1, amount: 60, withinMs: HOUR_MS },
      correlated: { by: "region", nodes: 60, share: 1, withinMs: MINUTE_MS },
    }),
    scenario: { nodes: 60, sessions: 600 },
  });
  await ward.pass(12 * MINUTE_MS);
  const nodes = ward.nodes("us-east");
  expect(ward.warden().view.status().stormUntil).not.toBeNull();
  // Another policy text would make them well; here all sessions end, as at night.
  for (const node of nodes) ward.people.fallIll(node, { ailment: "outage", cure: "time", healAt: now(ward) + HOUR_MS });
  await ward.pass(HOUR_MS - MINUTE_MS);
  expect(ward.warden().view.policies()[0]).toMatchObject({ firing: 0 });
  await ward.stop();
});
