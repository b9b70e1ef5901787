import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/base/duration.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../harness/policies.ts";
import { startQuietNetwork } from "../../harness/quiet-network.ts";
import { changingRecords } from "../../harness/simulator/changed-responses.ts";

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
    await network.advance(2 * HOUR_MS);
    expect(network.postCount()).toBe(1);
  },
);
