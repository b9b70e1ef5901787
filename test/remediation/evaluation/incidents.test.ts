import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { heldBy, told, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

const scenario = { nodes: 300 };
const REGION = "us-east";
/** As many nodes as make an incident, of a region that has many more. */
const five = (ward: WardRun): readonly string[] => ward.nodes(REGION).slice(0, 5);

/** A policy whose condition holds for no node. */
const idle = rebootOffline({ name: "idle", when: 'node.status == "maintenance"' });

/** Five nodes of one region go offline, ten minutes apart. */
async function fellApart(ward: WardRun): Promise<void> {
  for (const node of five(ward)) {
    ward.fell(node);
    await ward.pass(10 * MINUTE_MS);
  }
}

async function expectHealed(ward: WardRun): Promise<void> {
  await ward.pass(3 * HOUR_MS);
  expect(touched(ward).toSorted()).toEqual([...five(ward)].toSorted());
  expect(told(ward, "incident")).toEqual([]);
  expect(heldBy(ward)).not.toContain("correlated");
  await ward.stop();
}

test("nodes that were unhealthy at the first look are no incident", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]), scenario, settleMs: 0 });
  for (const node of five(ward)) ward.fell(node);
  await expectHealed(ward);
});

test("nodes that are unhealthy when a condition is edited are no incident", async () => {
  const ward = await startWard({ rules: rulesOf([{ ...idle, name: "reboot-offline" }]), scenario });
  await fellApart(ward);
  await ward.reload({ rules: rulesOf([rebootOffline()]) });
  await expectHealed(ward);
});

test("nodes that are unhealthy when a policy is added are no incident", async () => {
  const ward = await startWard({ rules: rulesOf([idle]), scenario });
  await fellApart(ward);
  await ward.restart({ rules: rulesOf([idle, rebootOffline()]) });
  await expectHealed(ward);
});

test("nodes that are unhealthy when trust returns are no incident", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: HOUR_MS })]), scenario });
  await fellApart(ward);
  ward.strike({ kind: "empty_list" });
  await ward.pass(10 * MINUTE_MS);
  ward.strike(null);
  await expectHealed(ward);
});

test("nodes whose details are read for the first time are no incident", async () => {
  const when = 'node.status == "offline" && node.cpu_usage >= 0.0';
  const ward = await startWard({
    rules: rulesOf([rebootOffline({ when })]),
    scenario,
    settings: {},
  });
  await ward.restart();
  for (const node of five(ward)) ward.fell(node);
  await ward.pass(40 * MINUTE_MS);
  expect(told(ward, "incident")).toEqual([]);
  await ward.stop();
});

/** A region goes dark as one, and all but five of its nodes come back after an hour. */
async function outage(ward: WardRun): Promise<void> {
  const healAt = ward.daemon.clock.now() + HOUR_MS;
  for (const node of ward.nodes(REGION).slice(5))
    ward.people.fallIll(node, { ailment: "outage", cure: "time", healAt });
  for (const node of five(ward)) ward.fell(node);
}

/** Neither a storm nor the breaker. */
const calm = { maxUnhealthy: { share: 1 }, breaker: { share: 1, amount: 1_000, withinMs: HOUR_MS } } as const;

test("an incident ends half an hour after most of its nodes came back, and the others are healed", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], calm), scenario });
  await outage(ward);
  await ward.pass(85 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(five(ward)[0]!)).toEqual(["correlated"]);
  expect(told(ward, "incident")).toMatchObject([{ region: REGION, endsAt: null }]);
  await ward.pass(2 * HOUR_MS + 30 * MINUTE_MS);
  expect(touched(ward).toSorted()).toEqual([...five(ward)].toSorted());
  expect(told(ward, "incident")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await ward.stop();
});

test("an incident whose nodes stay unhealthy ends six hours after the last of them went bad, also over a kill", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], calm), scenario: { nodes: 60 } });
  for (const node of five(ward)) ward.fell(node);
  await ward.pass(3 * HOUR_MS);
  ward.kill();
  await ward.restart();
  await ward.pass(2 * HOUR_MS + 50 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(five(ward)[0]!)).toEqual(["correlated"]);
  const explained = ward.warden().view.explain(five(ward)[0]!);
  expect(explained.policies[0]!.blockers[0]!.detail).toMatch(/it ends 30m after .* at the latest at 2026-03-01T06:0\d/);
  await ward.pass(2 * HOUR_MS + 30 * MINUTE_MS);
  expect(touched(ward).toSorted()).toEqual([...five(ward)].toSorted());
  await ward.stop();
});

test("onsets before and after a kill make one incident", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: 10 * MINUTE_MS })]), scenario });
  for (const node of five(ward).slice(0, 3)) ward.fell(node);
  await ward.pass(90_000);
  ward.kill();
  await ward.restart({ downMs: 1_000 });
  await ward.pass(75_000);
  for (const node of five(ward).slice(3)) ward.fell(node);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(told(ward, "incident")).toMatchObject([{ region: REGION }]);
  await ward.stop();
});

test("an incident that a dry run saw holds its nodes when the policy comes to enforce", async () => {
  const rules = (mode: "dry_run" | "enforce") => rulesOf([rebootOffline({ mode })], calm);
  const ward = await startWard({ rules: rules("dry_run"), scenario });
  for (const node of five(ward)) ward.fell(node);
  await ward.pass(HOUR_MS);
  await ward.reload({ rules: rules("enforce") });
  await ward.pass(HOUR_MS);
  expect(ward.reasons(five(ward)[0]!)).toEqual(["correlated"]);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("an outage of fleet data doesn't end an incident", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: 15 * MINUTE_MS })], calm), scenario });
  for (const node of five(ward)) ward.fell(node);
  await ward.pass(5 * MINUTE_MS);
  ward.strike({ kind: "empty_list" });
  await ward.pass(45 * MINUTE_MS);
  ward.strike(null);
  await ward.pass(HOUR_MS);
  expect(ward.reasons(five(ward)[0]!)).toEqual(["correlated"]);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});
