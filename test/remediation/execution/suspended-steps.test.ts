import { expect, test } from "vitest";
import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { ExternalBlockers, Transport } from "../../../src/model/ports.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

/** Suspends the machine: the monotonic clock stands still while the wall clock and the service's clock advance. */
function suspend(network: QuietNetwork, ms: DurationMs): void {
  network.daemon.clock.stepWallClock(ms);
  network.setFault({ kind: "clock_skew", skewMs: ms });
}

test("no action is sent on data from before a suspension that began after the read of its node", async () => {
  let onRead = () => {};
  const wrapTransport = (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      const answer = await service.request(request, signal);
      if (request.method === "GET" && request.path.startsWith("/v1/nodes/")) onRead();
      return answer;
    },
  });
  const config = remediationConfig([rebootOffline({ forMs: MINUTE_MS, steps: [steps.reboot] })]);
  const network = await startQuietNetwork({ config, wrapTransport });
  const [node] = network.nodes();
  let suspensions = 0;
  onRead = () => {
    if (suspensions++ === 0) suspend(network, 6 * HOUR_MS);
  };
  network.failNode(node!, "operator");
  await network.advanceUntil(() => suspensions > 0);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.advance(90 * MINUTE_MS);
  expect(network.postCount()).toBeGreaterThan(0);
});

test("an approval that expired during a suspension is not used after it", async () => {
  let isBlocked = false;
  let onQuery = () => {};
  const externalBlockers: ExternalBlockers = {
    blocks() {
      onQuery();
      return Promise.resolve({ ok: true, value: isBlocked });
    },
  };
  const policy = rebootOffline({ mode: "approve", forMs: MINUTE_MS, blockedBy: [{ kind: "query", query: "up" }] });
  const network = await startQuietNetwork({ config: remediationConfig([policy]), externalBlockers });
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  isBlocked = true;
  await network.advance(2 * MINUTE_MS);
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  await network.advance(5 * MINUTE_MS);
  let isSuspended = false;
  onQuery = () => {
    if (!isSuspended) suspend(network, 12 * HOUR_MS);
    [isSuspended, isBlocked] = [true, false];
  };
  await network.advance(3 * HOUR_MS);
  expect(isSuspended).toBe(true);
  expect(network.postCount()).toBe(0);
  expect(network.controller().view.approvals()).toHaveLength(1);
});
