import { expect, test } from "vitest";
import { HOUR_MS } from "../../../../src/base/duration.ts";
import type { Safety } from "../../../../src/config/schema/safety.ts";
import { startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../../harness/policies.ts";

test.each<[string, string, Partial<Safety>]>([
  ["max_disrupted", "disrupted", { maxDisrupted: { share: 1, amount: 1 } }],
  ["max_disrupted_per", "disrupted_domain", { maxDisruptedPer: { region: 1, country: null } }],
])(
  "if steps have left more nodes down than %s allows, their hold names the nodes and the command that ends it",
  async (_, reason, limit) => {
    const network = await startQuietNetwork({ config: remediationConfig([]) });
    const two = network.nodes("us-east").slice(0, 2);
    const policy = rebootOffline({
      match: `node.id in ${JSON.stringify(two)}`,
      when: 'node.status == "online" || node.status == "offline"',
    });
    await network.reload({ config: remediationConfig([policy], withoutLimits) });
    await network.advanceUntil(() => two.every((node) => network.status(node) === "rebooting"));
    for (const node of two) network.failNode(node, "forced_reboot");
    await network.reload({ config: remediationConfig([policy], { ...withoutLimits, ...limit }) });
    await network.advance(HOUR_MS);
    expect(network.postCount()).toBe(2);
    const causes = `2 of them left the list or stayed down after an action (${two.join(", ")})`;
    for (const node of two)
      expect(network.explain(node).policies[0]!.blockers).toMatchObject([
        {
          reason,
          detail: expect.stringContaining(
            `${causes}; such nodes count until they are available again or accept-inventory is run`,
          ),
        },
      ]);
    await network.commands().acceptInventory();
    await network.advance(HOUR_MS);
    expect(network.postCount()).toBeGreaterThan(2);
  },
);

test("a node that a step has left down counts although an episode of another policy has it for longer than forget_after", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([]) });
  const [node] = network.nodes("us-east");
  const treated = rebootOffline({
    name: "treated",
    match: `node.id == "${node}"`,
    when: 'node.status == "online" || node.status == "offline"',
    forMs: HOUR_MS,
    retry: { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 3 * HOUR_MS },
  });
  const waiting = rebootOffline({ name: "waiting", mode: "approve" });
  await network.reload({ config: remediationConfig([treated, waiting], withoutLimits) });
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(30_000);
  network.interventions.leaveFleet(node!, network.daemon.clock.now() + HOUR_MS / 2);
  await network.advance(HOUR_MS / 2);
  network.failNode(node!, "operator");
  await network.advance(8 * HOUR_MS);
  expect(network.episodes()).toMatchObject([
    { policy: "treated", state: "suspended" },
    { policy: "waiting", state: "firing" },
  ]);
  await network.commands().acceptInventory();
  expect(network.episodes()).toMatchObject([{ policy: "treated", state: "withdrawn" }, { policy: "waiting" }]);
});
