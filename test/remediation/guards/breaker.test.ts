import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { rebootOffline, rulesOf } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

/** Only the breaker limits anything: it opens when more than 10 nodes fire within 10 minutes. */
const breakerOnly = {
  canary: false,
  maxInFlight: 100,
  maxDisrupted: { share: 1, amount: 100 },
  maxDisruptedPer: { region: null, country: null },
  minOnlinePer: { region: null, country: null },
  maxActions: { amount: 1_000, perMs: HOUR_MS },
  maxUnhealthy: { share: 1 },
  correlated: { by: "region", nodes: 1_000, share: 1, withinMs: 5 * MINUTE_MS },
  breaker: { share: 0.05, amount: 10, withinMs: 10 * MINUTE_MS },
  efficacy: { window: 100, minSuccess: 0 },
} as const;

const scenario = { nodes: 40 };
const breakerOf = (ward: WardRun) => ward.warden().view.status().breaker;

/** Half of the fleet goes offline at once. */
function fellHalf(ward: WardRun): void {
  for (const node of ward.nodes().slice(0, 20)) ward.fell(node, "person");
}

test("opens after a kill between the commit of the timers that fire and the next commit", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], breakerOnly), scenario });
  fellHalf(ward);
  ward.mishaps.deathAt = {
    when: "after",
    changes: (all) => all.some((change) => change.kind === "timer" && change.row.state === "firing"),
  };
  await ward.pass(20 * MINUTE_MS);
  expect(ward.isAlive()).toBe(false);
  await ward.restart();
  await ward.pass(30 * MINUTE_MS);
  expect(breakerOf(ward)).toMatchObject({ nodes: 20 });
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("counts the nodes that fire under a dry run when a reload makes the policy enforce", async () => {
  const rules = (mode: "dry_run" | "enforce") => rulesOf([rebootOffline({ mode })], breakerOnly);
  const ward = await startWard({ rules: rules("dry_run"), scenario });
  fellHalf(ward);
  await ward.pass(30 * MINUTE_MS);
  expect(breakerOf(ward)).toBeNull();
  await ward.reload({ rules: rules("enforce") });
  await ward.pass(30 * MINUTE_MS);
  expect(breakerOf(ward)).toMatchObject({ nodes: 20 });
  expect(ward.postCount()).toBe(0);
  // Reset by an operator, it counts from zero, also over a kill.
  expect(ward.warden().orders.resetBreaker()).toMatchObject({ ok: true });
  ward.kill();
  await ward.restart({ rules: rules("enforce") });
  await ward.pass(10 * MINUTE_MS);
  expect(breakerOf(ward)).toBeNull();
  expect(ward.postCount()).toBeGreaterThan(0);
  await ward.stop();
});

test("counts the nodes that fire under a dry run when a restart makes the policy enforce and a kill follows", async () => {
  const rules = (mode: "dry_run" | "enforce") => rulesOf([rebootOffline({ mode })], breakerOnly);
  const ward = await startWard({ rules: rules("dry_run"), scenario });
  fellHalf(ward);
  await ward.pass(30 * MINUTE_MS);
  await ward.restart({ rules: rules("enforce") });
  ward.kill();
  await ward.restart({ rules: rules("enforce") });
  await ward.pass(30 * MINUTE_MS);
  expect(breakerOf(ward)).toMatchObject({ nodes: 20 });
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});
