import { expect, test } from "vitest";
import { DAY_MS, type DurationMs, MINUTE_MS } from "../../../../src/base/duration.ts";
import type { PolicySpec } from "../../../../src/config/schema/policy.ts";
import type { Clock, Transport } from "../../../../src/model/ports.ts";
import { createVirtualClock } from "../../../../src/simulator/clock.ts";
import { onePerRegion, startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../../harness/policies.ts";

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

test("a quarantine that takes effect after its step is not taken for one by others", async () => {
  const clock = createVirtualClock(START_MS);
  const wrapTransport = executingAfter(8 * MINUTE_MS, clock);
  const policy = rebootOffline({ steps: [steps.quarantine, steps.reboot] });
  const network = await startQuietNetwork({ config: remediationConfig([policy]), clock, wrapTransport });
  const [node] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.status(node!) === "quarantined");
  await network.advance(2 * MINUTE_MS);
  expect(network.explain(node!).holds).toEqual([]);
  expect(network.explain(node!).policies[0]!.blockers).toMatchObject([
    {
      reason: "status",
      detail: expect.stringMatching(/^it is quarantined, probably by act-\d+, whose step or episode is over$/),
    },
  ]);
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

test("a quarantine that takes effect after its step counts toward max_disrupted as long as it lasts", async () => {
  const quarantine = { ...steps.quarantine, durationMs: DAY_MS };
  // The second one was sent before the first one took effect.
  expect(await mostUnavailable({ steps: [quarantine] }, 8 * MINUTE_MS)).toBe(2);
});
