import { expect, test } from "vitest";
import { DAY_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { defaultServiceOptions } from "../../../../src/simulator/default-scenarios.ts";
import { listsAndDetailsSettings, startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../../harness/policies.ts";
import { changingRecords } from "../../../harness/simulator/changed-responses.ts";

test.each([null, "", "pool"])(
  "nodes that are listed with the region %o while they are quarantined count in their earlier region",
  async (region) => {
    const wrapTransport = changingRecords("nodes", (node) =>
      node.status === "quarantined" ? { ...node, region, country: region } : node,
    );
    const network = await startQuietNetwork({ config: remediationConfig([]), wrapTransport });
    const nodes = network.nodes("us-east").slice(0, 4);
    const policy = rebootOffline({
      match: `node.id in ${JSON.stringify(nodes)}`,
      when: 'node.status == "online"',
      steps: [{ ...steps.quarantine, durationMs: DAY_MS }],
    });
    const limits = { ...withoutLimits, maxDisruptedPer: { region: 1, country: null } };
    await network.reload({ config: remediationConfig([policy], limits) });
    await network.advance(40 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
  },
);

test("nodes whose details name their region differently from the list count in one region", async () => {
  const policy = rebootOffline({
    when: 'node.status == "offline" && node.cpu_usage >= 0.0',
    steps: [steps.reboot],
  });
  const limits = { ...withoutLimits, maxDisruptedPer: { region: 1, country: null } };
  const network = await startQuietNetwork({
    config: remediationConfig([policy], limits),
    scenario: { service: { ...defaultServiceOptions, detailLocation: "other_case" } },
    settings: listsAndDetailsSettings,
    warmUpMs: 20 * MINUTE_MS,
  });
  for (const node of network.nodes("us-east").slice(0, 6)) network.failNode(node, "operator");
  const inFlight = () => network.controller().view.status().inFlight;
  await network.advanceUntil(() => inFlight() === 1);
  for (let minute = 0; minute < 60; minute++) {
    await network.advance(MINUTE_MS);
    expect(inFlight()).toBeLessThanOrEqual(1);
  }
  expect(network.postCount()).toBeGreaterThan(1);
});
