import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import type { Transport, TransportRequest } from "../../../../src/model/ports.ts";
import { createVirtualClock } from "../../../../src/simulator/clock.ts";
import {
  churnAfterReboots,
  createSlowStore,
  noFailureRates,
  startQuietNetwork,
} from "../../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../../harness/policies.ts";
import { episodeStates } from "../../../harness/remediation-results.ts";

/**
 * Starts a network in which a rebooted node stays down, and online nodes are rebooted, then rebooted with force. Slow
 * requests take five seconds.
 */
async function startWithSlowRequests(isSlow: (request: TransportRequest) => boolean) {
  const clock = createVirtualClock(START_MS);
  const slow = { requests: 0, commandMs: 0 };
  const journaled: string[] = [];
  const store = createSlowStore(clock, (changes) => {
    for (const change of changes) if (change.kind === "action") journaled.push(`${change.row.id} ${change.row.state}`);
    return changes.some(({ kind }) => kind === "command") ? slow.commandMs : 0;
  });
  const slowRequests = (service: Transport): Transport => ({
    async request(request, signal) {
      if (isSlow(request)) {
        slow.requests++;
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
    store,
    wrapTransport: slowRequests,
    scenario: {
      nodes: 100,
      rates: { ...noFailureRates, repairMs: 1_000 * HOUR_MS },
      churn: churnAfterReboots({ vanishAfterReboot: 0, failAfterReboot: 1 }),
    },
  });
  const nodes = network.nodes("us-east").slice(0, 6);
  const rebootOnline = rebootOffline({
    match: `node.id in ${JSON.stringify(nodes)}`,
    when: "node.uptime_hours >= 0",
    steps: [steps.reboot, steps.force],
  });
  await network.reload({ config: remediationConfig([rebootOnline], safety) });
  return { network, nodes, slow, journaled };
}

test("accept-inventory does not accept the loss of a node while its next step is being sent, and it still counts", async () => {
  const { network, nodes, slow } = await startWithSlowRequests(({ method }) => method === "POST");
  await network.advanceUntil(() => slow.requests === 2);
  const reply = await network.commands().acceptInventory();
  expect(reply).toMatchObject({ ok: true, value: expect.not.stringContaining("the loss of") });
  await network.advance(MINUTE_MS);
  expect(network.actions()).toMatchObject([{ state: "ended" }, { step: 1, state: "sent", outcome: null }]);
  expect(episodeStates(network)[0]).toBe("acting");
  expect(network.holdReasons(nodes[1]!)).toEqual(expect.arrayContaining(["in_flight", "disrupted_domain"]));
});

test("accept-inventory while the node is read before its next step prevents the step, and the action says why", async () => {
  const { network, nodes } = await startWithSlowRequests(({ path }) => path.startsWith("/v1/nodes/"));
  await network.advanceUntil(() => network.actions()[1]?.state === "intended");
  const reply = await network.commands().acceptInventory();
  expect(reply).toMatchObject({ ok: true, value: expect.stringContaining("the loss of 1 node") });
  await network.advance(MINUTE_MS);
  const { node, state, detail } = network.actions()[1]!;
  expect([node, state, detail]).toEqual([nodes[0], "withdrawn", "its episode has moved on"]);
  expect(network.explain(node).known).toBe(true);
});

test("an action that accept-inventory withdraws while it is written is not journaled as being sent", async () => {
  const { network, slow, journaled } = await startWithSlowRequests(({ path }) => path.startsWith("/v1/nodes/"));
  await network.advanceUntil(() => network.actions()[1]?.state === "intended");
  slow.commandMs = 20 * SECOND_MS;
  const reply = network.commands().acceptInventory();
  await network.advance(MINUTE_MS);
  expect(await reply).toMatchObject({ ok: true, value: expect.stringContaining("the loss of 1 node") });
  const { id, state, sentAt } = network.actions()[1]!;
  expect({ state, sentAt }).toEqual({ state: "withdrawn", sentAt: null });
  expect(journaled).not.toContain(`${id} posting`);
});

test("accept-inventory while the node is read does not fail the round if there is no permit to send the step", async () => {
  const { network } = await startWithSlowRequests(({ path }) => path.startsWith("/v1/nodes/"));
  await network.advanceUntil(() => network.actions()[1]?.state === "intended");
  const { rateLimiter, log } = network.daemon;
  const permit = await rateLimiter.acquire("node_management", "action", new AbortController().signal);
  rateLimiter.release(permit!, { kind: "rate_limited", reading: null, retryAfterMs: HOUR_MS });
  expect(await network.commands().acceptInventory()).toMatchObject({ ok: true });
  await network.advance(MINUTE_MS);
  expect(log.lines.filter(({ level }) => level === "error")).toEqual([]);
  const detail = expect.stringContaining("allows no call for another");
  expect(network.actions()[1]).toMatchObject({ state: "withdrawn", outcome: null, sentAt: null, detail });
});
