import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { Clock, Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { rebootOffline, remediationRules } from "../../harness/policies.ts";
import { onePerRegion, startQuietNetwork } from "../../harness/quiet-network.ts";
import { nodesActedOn } from "../../harness/remediation-results.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";

/** A read of a node takes longer than the interval between two walks of the list. */
const READ_MS = 2.5 * MINUTE_MS;

const slowReads =
  (clock: Clock) =>
  (service: Transport): Transport => ({
    async request(request, signal) {
      if (request.path.startsWith("/v1/nodes/")) await clock.sleep(READ_MS, signal);
      return service.request(request, signal);
    },
    close: () => service.close(),
  });

test("a storm that begins while a node is read before its action holds that action and the next one", async () => {
  const clock = createVirtualClock(START_MS);
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline()], { maxInFlight: 2 }),
    ...{ clock, between: slowReads(clock) },
  });
  for (const node of onePerRegion(network, 2)) network.failNode(node);
  await network.advanceUntil(() => network.actions().length > 0);
  for (const node of network.nodes().slice(0, 30)) network.failNode(node);
  await network.advance(3 * READ_MS);
  expect(network.controller().view.status().stormUntil).not.toBeNull();
  expect(nodesActedOn(network)).toEqual([]);
});
