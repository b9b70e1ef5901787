import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import type { Transport, TransportRequest } from "../../../../src/model/ports.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";

/** Wraps the service so that it answers the first request that `isRejected` matches with 429 and a Retry-After of a day. */
function rejectingOnce(isRejected: (request: TransportRequest) => boolean, limit: number) {
  let isDone = false;
  return (service: Transport): Transport => ({
    ...service,
    async request(request, signal) {
      if (isDone || !isRejected(request)) return service.request(request, signal);
      isDone = true;
      const used = { "x-ratelimit-limit": String(limit), "x-ratelimit-remaining": "0" };
      return { ok: true, value: { status: 429, headers: { ...used, "retry-after": "86400" }, body: new Uint8Array() } };
    },
  });
}

/** Returns the blockers of a node, each with its detail. */
const blockersOf = (network: QuietNetwork, node: string) =>
  network
    .explain(node)
    .policies.flatMap(({ blockers }) => blockers.map(({ reason, detail }) => `${reason}: ${detail}`));

test("after a 429 of an action with a long Retry-After the list is still read, and the actions that wait name their end", async () => {
  const wrapTransport = rejectingOnce(({ method }) => method === "POST", 100);
  const network = await startQuietNetwork({ wrapTransport, config: remediationConfig([rebootOffline()]) });
  const [first, second] = onePerRegion(network, 2);
  network.failNode(first!);
  await network.advanceUntil(() => network.actions().some(({ outcome }) => outcome === "failed"));
  network.failNode(second!);
  await network.advance(HOUR_MS);
  expect(network.daemon.snapshots.last!.fleet.settledAt).toBeGreaterThan(
    network.daemon.clock.monotonic() - 2 * MINUTE_MS,
  );
  expect(blockersOf(network, first!)).toEqual([expect.stringMatching(/^backoff: .*answered 429.*; the next in 5h$/)]);
  expect(blockersOf(network, second!)).toEqual([
    expect.stringMatching(/^backoff: .*429, or .* and allows no call for another 5h.*; a reload that changes `limits`/),
  ]);
  await network.advance(6 * HOUR_MS);
  expect(network.postCount()).toBe(2);
});

test("while a 429 with a long Retry-After stops the walks, the blocker names the end and what ends it earlier", async () => {
  let isTimeUp = false;
  const wrapTransport = rejectingOnce(() => isTimeUp, 1_000_000);
  const network = await startQuietNetwork({ wrapTransport, config: remediationConfig([rebootOffline()]) });
  network.failNode(network.nodes()[0]!);
  await network.advance(2 * MINUTE_MS);
  isTimeUp = true;
  await network.advance(HOUR_MS);
  const end =
    /^inventory_incomplete: .*; the service answered 429, or 5xx with Retry-After, and the list is read again in 5h.*, or after a reload that changes limits$/;
  expect(blockersOf(network, network.nodes()[0]!)).toContainEqual(expect.stringMatching(end));
  expect(network.daemon.collectorManager.collectorHealth().nodes.failure?.message).toMatch(/ for another 5h/);
});
