import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Clock, Transport } from "../../src/model/ports.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { startQuietNetwork } from "../harness/daemon/quiet-network.ts";
import { START_MS } from "../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../harness/policies.ts";
import { nodesActedOn } from "../harness/remediation-results.ts";

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

/** A read that hangs takes three timeouts of 10 s, and the waits between them. */
const HANGING_READ_MS = 35 * SECOND_MS;

test("nodes whose reads have hung before delay the step of another one by one read at most", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: MINUTE_MS })], withoutLimits),
  });
  const [healable, ...hanging] = network
    .nodes()
    .filter((node) => network.status(node) === "online")
    .slice(0, 12);
  network.setFaults(hanging.map((node) => ({ fault: { kind: "hang" }, match: `GET /v1/nodes/${node}` })));
  for (const node of hanging) network.failNode(node);
  const isTried = (node: string) =>
    network.actions().some((action) => action.node === node && action.state === "withdrawn");
  await network.advanceUntil(() => hanging.every(isTried));
  network.failNode(healable!);
  const failedAt = network.daemon.clock.monotonic();
  await network.advanceUntil(() => network.postCount() > 0);
  // It fires at the second walk that shows it offline.
  expect(network.daemon.clock.monotonic() - failedAt).toBeLessThan(2 * MINUTE_MS + HANGING_READ_MS);
  expect(network.actions().find(({ node }) => node === healable)).toMatchObject({ state: "sent" });
});

test("nodes whose reads hang are tried again for as long as they fire", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ forMs: MINUTE_MS })], withoutLimits),
  });
  const hanging = network
    .nodes()
    .filter((node) => network.status(node) === "online")
    .slice(0, 12);
  network.setFaults(hanging.map((node) => ({ fault: { kind: "hang" }, match: `GET /v1/nodes/${node}` })));
  for (const node of hanging) network.failNode(node);
  await network.advance(30 * MINUTE_MS);
  for (const node of hanging)
    expect(network.actions().filter((action) => action.node === node).length).toBeGreaterThan(2);
  network.setFaults([]);
  await network.advance(40 * MINUTE_MS);
  expect(nodesActedOn(network).length).toBe(hanging.length);
});
