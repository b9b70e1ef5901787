import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Clock, Transport } from "../../src/model/ports.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../harness/policies.ts";
import { startQuietNetwork } from "../harness/quiet-network.ts";
import { nodesActedOn } from "../harness/remediation-results.ts";
import { START_MS } from "../harness/virtual-daemon.ts";

/** Each node is read before its action. The list is walked every minute: after six of them. */
const READ_MS = 9 * SECOND_MS;

const slowReads =
  (clock: Clock) =>
  (service: Transport): Transport => ({
    async request(request, signal) {
      if (request.path.startsWith("/v1/nodes/") && request.method === "GET") await clock.sleep(READ_MS, signal);
      return service.request(request, signal);
    },
    close: () => service.close(),
  });

test("the breaker that opens between the steps of a round holds the steps that are left", async () => {
  const clock = createVirtualClock(START_MS);
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: MINUTE_MS })], {
      ...withoutLimits,
      breaker: { share: 0, amount: 35, withinMs: HOUR_MS },
    }),
    clock,
    wrapTransport: slowReads(clock),
  });
  const online = network.nodes().filter((node) => network.status(node) === "online");
  for (const node of online.slice(0, 30)) network.failNode(node);
  await network.advanceUntil(() => network.actions().length > 0);
  for (const node of online.slice(30, 45)) network.failNode(node);
  await network.advanceUntil(() => network.controller().view.status().breaker !== null);
  const { length: actedOn } = nodesActedOn(network);
  await network.advance(5 * MINUTE_MS);
  expect(nodesActedOn(network).length).toBe(actedOn);
  expect(actedOn).toBeLessThan(25);
});
