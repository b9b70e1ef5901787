import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import {
  churnAfterReboots,
  listsOnlySettings,
  noFailureRates,
  type QuietNetwork,
  startQuietNetwork,
} from "../../harness/quiet-network.ts";
import { episodeStates } from "../../harness/remediation-results.ts";
import { businessLimits, START_MS } from "../../harness/virtual-daemon.ts";

/** A rebooted node stays down. */
const staysDownAfterReboot = {
  nodes: 100,
  rates: { ...noFailureRates, repairMs: 1_000 * HOUR_MS },
  churn: churnAfterReboots({ vanishAfterReboot: 0, failAfterReboot: 1 }),
};

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
    scenario: staysDownAfterReboot,
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

test("accept-inventory accepts the loss of a node while its next step waits for a permit that does not come", async () => {
  let network: QuietNetwork | null = null;
  let isLimited = false;
  const wrapTransport = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      if (request.path.startsWith("/v1/sessions?") && isLimited) {
        const headers = { "x-ratelimit-limit": "500", "x-ratelimit-remaining": "0", "retry-after": "300" };
        return { ok: true, value: { status: 429, headers, body: new Uint8Array() } };
      }
      const response = await service.request(request, signal);
      const isRead = request.method === "GET" && request.path.startsWith("/v1/nodes/");
      isLimited ||= isRead && network?.actions()[1]?.state === "intended";
      return response;
    },
  });
  const safety = { canary: false };
  const schedules = {
    ...listsOnlySettings.schedules!,
    sessions: { kind: "every", intervalMs: 5 * SECOND_MS } as const,
  };
  // Between the read of a node and its action are 30 s.
  const node_management = { requests: 5, burst: 10, windowMs: MINUTE_MS };
  const limits = { ...businessLimits, categories: { ...businessLimits.categories, node_management } };
  network = await startQuietNetwork({
    config: remediationConfig([], safety),
    settings: { schedules, limits },
    wrapTransport,
    scenario: staysDownAfterReboot,
  });
  const [node] = network.nodes("us-east");
  const rebootOnline = rebootOffline({
    match: `node.id == "${node}"`,
    when: "node.uptime_hours >= 0",
    steps: [steps.reboot, steps.force],
  });
  await network.reload({ config: remediationConfig([rebootOnline], safety) });
  await network.advanceUntil(() => isLimited);
  await network.advance(20 * SECOND_MS);
  const reply = await network.commands().acceptInventory();
  expect(reply).toMatchObject({ ok: true, value: expect.stringContaining("the loss of") });
  await network.advance(6 * MINUTE_MS);
  expect(network.daemon.log.lines.filter(({ message }) => message.startsWith("remediation round failed"))).toEqual([]);
  expect(network.actions()).toMatchObject([{ state: "ended" }, { step: 1, state: "withdrawn", outcome: null }]);
  expect(episodeStates(network)[0]).toBe("withdrawn");
});
