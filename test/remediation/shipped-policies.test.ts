import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { HOLD_MS_MAX } from "../../src/model/remediation/hold-reasons.ts";
import { nodeTruth } from "../../src/simulator/inspection.ts";
import { minuteSettings } from "../harness/virtual-daemon.ts";
import { shippedAndEnforced } from "../harness/shipped-policies.ts";
import { listsOnly, startWard } from "../harness/quiet-network.ts";

/** 20 nodes under the shipped policies. Lists and details are collected. */
const startSmallFleet = () =>
  startWard({
    rules: shippedAndEnforced().rules,
    scenario: { nodes: 20, sessions: 0 },
    settings: { cadences: { ...listsOnly.cadences!, details: minuteSettings.cadences.details } },
  });

test.each([
  ["hot", "cool-hot-cpu"],
  ["full", "reboot-full-disk"],
] as const)(
  "a node with the fault %s that only a forced reboot heals is healed within six hours",
  async (ailment, policy) => {
    const ward = await startSmallFleet();
    const [node] = ward.nodes();
    ward.people.fallIll(node!, { ailment, cure: "forced_reboot" });
    await ward.pass(HOLD_MS_MAX);
    expect(nodeTruth(ward.daemon.service, node!)).toMatchObject({ ailment: "none", status: "online" });
    expect(ward.actions().at(-1)).toMatchObject({
      policy,
      request: { kind: "reboot", force: true },
      outcome: "verified",
    });
    await ward.stop();
  },
  300_000,
);

test("a node that a shipped policy quarantines holds a node that a reboot heals for less than six hours", async () => {
  const ward = await startSmallFleet();
  const [full, offline] = [ward.nodes()[0]!, ward.nodes().at(-1)!];
  const quarantine = () => ward.actions().find(({ request }) => request.kind === "quarantine");
  ward.people.fallIll(full, { ailment: "full", cure: "person" });
  for (let hour = 0; hour < 6 && quarantine() === undefined; hour++) await ward.pass(HOUR_MS);
  expect(quarantine()).toMatchObject({ node: full, policy: "reboot-full-disk", outcome: "verified" });
  ward.fell(offline);
  const from = ward.daemon.clock.now();
  await ward.pass(40 * MINUTE_MS);
  expect(ward.reasons(offline)).toContain("disrupted");
  for (let hour = 0; hour < 24 && ward.actions().every(({ node }) => node !== offline); hour++)
    await ward.pass(HOUR_MS);
  const reboot = ward.actions().find(({ node }) => node === offline);
  expect(reboot).toMatchObject({ policy: "reboot-offline" });
  expect(reboot!.sentAt! - from).toBeLessThan(HOLD_MS_MAX);
  await ward.stop();
}, 300_000);
