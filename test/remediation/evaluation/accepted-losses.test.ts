import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { noFailureRates, startQuietNetwork } from "../../harness/quiet-network.ts";
import { episodeStates } from "../../harness/remediation-results.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";

test("accept-inventory does not accept the loss of a node while its next step is being sent, and it still counts", async () => {
  const clock = createVirtualClock(START_MS);
  let posts = 0;
  const slowPosts = (service: Transport): Transport => ({
    async request(request, signal) {
      if (request.method === "POST") {
        posts++;
        await clock.sleep(5 * SECOND_MS, signal);
      }
      return service.request(request, signal);
    },
    close: () => service.close(),
  });
  const safety = { canary: false };
  const network = await startQuietNetwork({
    config: remediationConfig([], safety),
    clock,
    wrapTransport: slowPosts,
    // A rebooted node stays down.
    scenario: {
      nodes: 100,
      rates: { ...noFailureRates, repairMs: 1_000 * HOUR_MS },
      churn: { ...defaultScenario.churn, vanishAfterReboot: 0, failAfterReboot: 1 },
    },
  });
  const nodes = network.nodes("us-east").slice(0, 6);
  const rebootOnline = rebootOffline({
    match: `node.id in ${JSON.stringify(nodes)}`,
    when: "node.uptime_hours >= 0",
    steps: [steps.reboot, steps.force],
  });
  await network.reload({ config: remediationConfig([rebootOnline], safety) });
  await network.advanceUntil(() => posts === 2);
  const reply = await network.commands().acceptInventory();
  expect(reply).toMatchObject({ ok: true, value: expect.not.stringContaining("the loss of") });
  await network.advance(MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "ended" }, { step: 1, state: "sent", outcome: null }]);
  expect(episodeStates(network)[0]).toBe("acting");
  expect(network.holdReasons(nodes[1]!)).toEqual(expect.arrayContaining(["in_flight", "disrupted_domain"]));
});
