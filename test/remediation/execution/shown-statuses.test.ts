import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../harness/policies.ts";
import { onePerRegion, startQuietNetwork } from "../../harness/quiet-network.ts";
import { actionLines, holdReasonsOf } from "../../harness/remediation-results.ts";

/** Wraps the service so that it shows another status than `quarantined`. */
const showingQuarantineAs =
  (status: string) =>
  (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const answer = await service.request(request, signal);
      if (!answer.ok || request.method !== "GET") return answer;
      const text = new TextDecoder().decode(answer.value.body).replaceAll('"quarantined"', JSON.stringify(status));
      return { ok: true, value: { ...answer.value, body: new TextEncoder().encode(text) } };
    },
  });

/** A policy that quarantines online nodes for a day. */
const quarantineForADay = (nodes: readonly string[]) =>
  rebootOffline({
    match: `node.id in ${JSON.stringify(nodes)}`,
    when: 'node.status == "online"',
    steps: [{ ...steps.quarantine, durationMs: DAY_MS }],
  });

const twoDisrupted = { ...withoutLimits, maxDisrupted: { share: 1, amount: 2 } };

// The spec does not state the status of a quarantined node (section 3.1).
describe.each(["maintenance", "offline", "disabled"])("if quarantined nodes have the status %s", (status) => {
  test("max_disrupted counts them until their quarantine ends", async () => {
    const wrapTransport = showingQuarantineAs(status);
    const network = await startQuietNetwork({ config: remediationConfig([]), wrapTransport });
    const four = onePerRegion(network, 4);
    await network.reload({ config: remediationConfig([quarantineForADay(four)], twoDisrupted) });
    await network.advance(6 * HOUR_MS);
    expect(four.map(network.status).toSorted()).toEqual(["online", "online", "quarantined", "quarantined"]);
    expect(holdReasonsOf(network)).toContain("disrupted");
    await network.advance(DAY_MS);
    expect(network.postCount()).toBe(4);
  });
});

test("a node that is offline because of our quarantine is not rebooted by another policy", async () => {
  const node = "node_caffe390";
  const config = remediationConfig([rebootOffline(), { ...quarantineForADay([node]), name: "hide" }]);
  const network = await startQuietNetwork({ config, wrapTransport: showingQuarantineAs("offline") });
  await network.advance(20 * HOUR_MS);
  expect(actionLines(network)).toEqual(["quarantine: verified"]);
  expect(network.explain(node).policies[0]!.blockers).toMatchObject([{ reason: "other_episode" }]);
  await network.advance(5 * HOUR_MS);
  expect(network.status(node)).toBe("online");
  expect(actionLines(network)).toEqual(["quarantine: verified"]);
});
