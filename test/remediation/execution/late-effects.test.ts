import { expect, test } from "vitest";
import { DAY_MS, type DurationMs, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicySpec } from "../../../src/model/policy/policy.ts";
import type { Clock, Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../harness/policies.ts";
import { onePerRegion, startQuietNetwork } from "../../harness/quiet-network.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";

/** Wraps the service so that it answers each POST at once, and executes it later. */
const executingAfter =
  (delayMs: DurationMs, clock: Clock) =>
  (service: Transport): Transport => ({
    ...service,
    request(request, signal) {
      if (request.method !== "POST") return service.request(request, signal);
      void clock.sleep(delayMs).then(() => service.request(request, new AbortController().signal));
      const headers = { date: new Date(clock.now()).toUTCString() };
      return Promise.resolve({ ok: true, value: { status: 202, headers, body: new Uint8Array() } });
    },
  });

/** Returns how many of six online nodes are unavailable at most, if at most one may be disrupted. */
async function mostUnavailable(spec: Partial<PolicySpec>, delayMs: DurationMs): Promise<number> {
  const clock = createVirtualClock(START_MS);
  const wrapTransport = executingAfter(delayMs, clock);
  const network = await startQuietNetwork({ config: remediationConfig([]), clock, wrapTransport });
  const six = onePerRegion(network, 6);
  const policy = rebootOffline({
    match: `node.id in ${JSON.stringify(six)}`,
    when: 'node.status == "online"',
    ...spec,
  });
  const limits = { ...withoutLimits, maxDisrupted: { share: 1, amount: 1 } };
  await network.reload({ config: remediationConfig([policy], limits) });
  let most = 0;
  for (let minute = 0; minute < 3 * 60; minute++) {
    await network.advance(MINUTE_MS);
    most = Math.max(most, six.filter((node) => network.status(node) !== "online").length);
  }
  return most;
}

test("a hold of a node whose quarantine took effect after its step names the action, not another client", async () => {
  const clock = createVirtualClock(START_MS);
  const quarantine = { ...steps.quarantine, durationMs: DAY_MS };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ steps: [quarantine] })]),
    clock,
    wrapTransport: executingAfter(20 * MINUTE_MS, clock),
  });
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.status(node!) === "quarantined");
  await network.advance(2 * MINUTE_MS);
  const { policies, holds } = network.explain(node!);
  const reason = "the node is in a quarantine, probably by act-2, whose step or episode is over";
  expect(holds).toMatchObject([{ kind: "ownership", reason }]);
  expect(policies[0]!.blockers).toContainEqual({ reason: "ownership", detail: reason });
});

test("a quarantine that takes effect after its step counts toward max_disrupted as long as it lasts", async () => {
  const quarantine = { ...steps.quarantine, durationMs: DAY_MS };
  // The second one was sent before the first one took effect.
  expect(await mostUnavailable({ steps: [quarantine] }, 8 * MINUTE_MS)).toBe(2);
});
