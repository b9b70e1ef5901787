import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { HOLD_MS_MAX } from "../../src/policy/decision.ts";
import { listsAndDetailsSettings, startQuietNetwork } from "../harness/daemon/quiet-network.ts";
import { enforcedShippedPolicies } from "../harness/shipped-policies.ts";
import { actualNode } from "../harness/simulator/actual-state.ts";

/** Starts 20 nodes with the shipped policies. Lists and details are collected. */
const startSmallFleet = () =>
  startQuietNetwork({
    config: enforcedShippedPolicies().config,
    scenario: { nodes: 20, sessions: 0 },
    settings: listsAndDetailsSettings,
  });

test.each([
  ["hot", "cool-hot-cpu"],
  ["full", "reboot-full-disk"],
] as const)(
  "a node with the fault %s that only a forced reboot heals is healed within six hours",
  async (failureMode, policy) => {
    const network = await startSmallFleet();
    const [node] = network.nodes();
    network.interventions.startFailure(node!, { failureMode, remedy: "forced_reboot" });
    await network.advance(HOLD_MS_MAX);
    expect(actualNode(network.daemon.service, node!)).toMatchObject({ failureMode: "none", status: "online" });
    expect(network.actions().at(-1)).toMatchObject({
      policy,
      request: { kind: "reboot", force: true },
      outcome: "verified",
    });
  },
  300_000,
);

test("a quarantine by a shipped policy holds a node that a reboot heals for less than six hours", async () => {
  const network = await startSmallFleet();
  const [full, offline] = [network.nodes()[0]!, network.nodes().at(-1)!];
  const quarantine = () => network.actions().find(({ request }) => request.kind === "quarantine");
  network.interventions.startFailure(full, { failureMode: "full", remedy: "operator" });
  for (let hour = 0; hour < 6 && quarantine() === undefined; hour++) await network.advance(HOUR_MS);
  expect(quarantine()).toMatchObject({ node: full, policy: "reboot-full-disk", outcome: "verified" });
  network.failNode(offline);
  const from = network.daemon.clock.now();
  await network.advance(40 * MINUTE_MS);
  expect(network.holdReasons(offline)).toContain("disrupted");
  for (let hour = 0; hour < 24 && network.actions().every(({ node }) => node !== offline); hour++)
    await network.advance(HOUR_MS);
  const reboot = network.actions().find(({ node }) => node === offline);
  expect(reboot).toMatchObject({ policy: "reboot-offline" });
  expect(reboot!.sentAt! - from).toBeLessThan(HOLD_MS_MAX);
}, 300_000);
