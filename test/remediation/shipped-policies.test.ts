import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { HOLD_MS_MAX } from "../../src/policy/guards/guard.ts";
import { actualNode } from "../../src/simulator/inspection.ts";
import { listsOnlySettings, startQuietNetwork } from "../harness/quiet-network.ts";
import { enforcedShippedPolicies } from "../harness/shipped-policies.ts";
import { everyMinuteSettings } from "../harness/virtual-daemon.ts";

/** 20 nodes under the shipped policies. Lists and details are collected. */
const startSmallFleet = () =>
  startQuietNetwork({
    rules: enforcedShippedPolicies().rules,
    scenario: { nodes: 20, sessions: 0 },
    settings: { schedules: { ...listsOnlySettings.schedules!, details: everyMinuteSettings.schedules.details } },
  });

test.each([
  ["hot", "cool-hot-cpu"],
  ["full", "reboot-full-disk"],
] as const)(
  "a node with the fault %s that only a forced reboot heals is healed within six hours",
  async (ailment, policy) => {
    const context = await startSmallFleet();
    const [node] = context.nodes();
    context.interventions.startFailure(node!, { failureMode: ailment, remedy: "forced_reboot" });
    await context.advance(HOLD_MS_MAX);
    expect(actualNode(context.daemon.service, node!)).toMatchObject({ failureMode: "none", status: "online" });
    expect(context.actions().at(-1)).toMatchObject({
      policy,
      request: { kind: "reboot", force: true },
      outcome: "verified",
    });
    await context.stop();
  },
  300_000,
);

test("a node that a shipped policy quarantines holds a node that a reboot heals for less than six hours", async () => {
  const context = await startSmallFleet();
  const [full, offline] = [context.nodes()[0]!, context.nodes().at(-1)!];
  const quarantine = () => context.actions().find(({ request }) => request.kind === "quarantine");
  context.interventions.startFailure(full, { failureMode: "full", remedy: "person" });
  for (let hour = 0; hour < 6 && quarantine() === undefined; hour++) await context.advance(HOUR_MS);
  expect(quarantine()).toMatchObject({ node: full, policy: "reboot-full-disk", outcome: "verified" });
  context.failedNodes(offline);
  const from = context.daemon.clock.now();
  await context.advance(40 * MINUTE_MS);
  expect(context.holdReasons(offline)).toContain("disrupted");
  for (let hour = 0; hour < 24 && context.actions().every(({ node }) => node !== offline); hour++)
    await context.advance(HOUR_MS);
  const reboot = context.actions().find(({ node }) => node === offline);
  expect(reboot).toMatchObject({ policy: "reboot-offline" });
  expect(reboot!.sentAt! - from).toBeLessThan(HOLD_MS_MAX);
  await context.stop();
}, 300_000);
