import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { told, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { oneOfEach, startWard, type WardRun } from "../../harness/quiet-network.ts";

const scenario = { nodes: 24 };
/** Two episodes, half an hour apart. */
const retry = { episodes: 2, everyMs: 30 * MINUTE_MS, forgetAfterMs: HOUR_MS };
const rule = rebootOffline({ steps: [steps.reboot], retry });

const policyOf = (ward: WardRun) => ward.warden().view.policies()[0]!;

test("three nodes that nothing heals don't make the policy fall back to dry_run", async () => {
  const ward = await startWard({ rules: rulesOf([rule]), scenario });
  const dead = oneOfEach(ward, 3);
  for (const node of dead) ward.fell(node, "person");
  await ward.pass(4 * HOUR_MS);
  expect(policyOf(ward)).toMatchObject({ mode: "enforce", fallen: false });
  // Each was tried twice, given up, and reported once.
  expect(ward.postCount()).toBe(6);
  expect(
    told(ward, "given_up")
      .map(({ node }) => node)
      .toSorted(),
  ).toEqual(dead.toSorted());
  expect(told(ward, "given_up").map(({ severity }) => severity)).toEqual(["critical", "critical", "critical"]);
  await ward.stop();
});

test("a node given up by a ladder that takes longer than forget_after stays given up", async () => {
  const quarantine = { ...steps.quarantine, durationMs: 90 * MINUTE_MS };
  const ladder = rebootOffline({ steps: [steps.reboot, quarantine, steps.notify], retry });
  const ward = await startWard({ rules: rulesOf([ladder]), scenario });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(6 * HOUR_MS);
  expect(ward.episodes().map(({ state }) => state)).toEqual(["given_up", "given_up"]);
  expect(told(ward, "given_up")).toHaveLength(1);
  expect(told(ward, "step")).toHaveLength(2);
  await ward.stop();
});

test("a node given up stays so over a kill at the end of its last episode, until it was seen healthy", async () => {
  const ward = await startWard({ rules: rulesOf([rule]), scenario });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.passUntil(() => ward.postCount() === 2);
  ward.mishaps.deathAt = {
    when: "after",
    changes: (all) => all.some((change) => change.kind === "episode" && change.row.state === "given_up"),
  };
  await ward.pass(HOUR_MS);
  expect(ward.isAlive()).toBe(false);
  await ward.restart();
  await ward.pass(2 * HOUR_MS);
  expect(ward.postCount()).toBe(2);
  const blockers = ward.warden().view.explain(node!).policies[0]!.blockers;
  expect(blockers).toMatchObject([
    {
      reason: "retry_limit",
      detail: `given up: 2 episodes in a row did not heal it; the hold ends when the node is seen healthy, or with "release ${node}"`,
    },
  ]);
  // An operator mends it; later it fails again.
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt: ward.daemon.clock.now() + MINUTE_MS });
  await ward.pass(30 * MINUTE_MS);
  const { holds } = ward.warden().view.explain(node!);
  expect(holds.filter(({ kind }) => kind === "given_up")).toEqual([]);
  await ward.pass(HOUR_MS);
  ward.fell(node!);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(3);
  expect(ward.episodes().at(-1)).toMatchObject({ state: "healed" });
  await ward.stop();
});

test("release makes a policy try a node again that was given up, as often as the first time", async () => {
  const ward = await startWard({ rules: rulesOf([rule]), scenario });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(3 * HOUR_MS);
  expect(ward.postCount()).toBe(2);
  expect(ward.warden().orders.release(node!)).toEqual({
    ok: true,
    value: `${node} is released; reboot-offline may try it again`,
  });
  expect(ward.warden().orders.release(node!)).toMatchObject({ ok: false, error: { kind: "not_found" } });
  expect(ward.warden().view.explain(node!).holds).toEqual([]);
  ward.kill();
  await ward.restart();
  await ward.pass(4 * HOUR_MS);
  expect(ward.postCount()).toBe(4);
  expect(told(ward, "given_up")).toHaveLength(2);
  await ward.stop();
});

test("a policy that fell back acts again after reset-breaker, and is measured anew", async () => {
  const free = {
    canary: false,
    maxInFlight: 100,
    maxDisrupted: { share: 1, amount: 100 },
    maxUnhealthy: { share: 1 },
    efficacy: { window: 3, minSuccess: 0.5 },
  };
  const once = rebootOffline({ steps: [steps.reboot] });
  const ward = await startWard({ rules: rulesOf([once], free), scenario });
  const [first, second, third, fourth] = oneOfEach(ward, 4);
  for (const node of [first!, second!, third!]) ward.fell(node, "person");
  await ward.pass(40 * MINUTE_MS);
  expect(policyOf(ward)).toMatchObject({ mode: "dry_run", fallen: true });
  expect(told(ward, "efficacy")).toMatchObject([
    {
      summary:
        "The policy reboot-offline healed 0 of the last 3 nodes that it treated, and falls back to dry_run until its text changes or an operator orders reset-breaker",
    },
  ]);
  const sent = ward.postCount();
  expect(ward.warden().orders.resetBreaker()).toEqual({
    ok: true,
    value: "reboot-offline acts again, and its efficacy is measured anew",
  });
  expect(ward.warden().orders.resetBreaker()).toMatchObject({ ok: false, error: { kind: "conflict" } });
  ward.fell(fourth!);
  await ward.pass(30 * MINUTE_MS);
  expect(policyOf(ward)).toMatchObject({ mode: "enforce", fallen: false });
  expect(touched(ward)).toContain(fourth);
  expect(ward.postCount()).toBeGreaterThan(sent);
  await ward.stop();
});
