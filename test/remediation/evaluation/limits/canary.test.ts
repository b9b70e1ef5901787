import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../../src/base/duration.ts";
import { runAtOnce } from "../../../../src/base/steps.ts";
import type { PolicySpec } from "../../../../src/config/schema/policy.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../../harness/policies.ts";
import { nodesActedOn } from "../../../harness/remediation-results.ts";

/** Limits with the canary only. */
const canaryOnly = { ...withoutLimits, canary: true };

const config = (spec: Partial<PolicySpec> = {}) => remediationConfig([rebootOffline(spec)], canaryOnly);

/** Starts with three unhealthy nodes: the first is the canary, and its first step was ineffective. */
async function startWithFailedCanaryStep(
  spec: Partial<PolicySpec>,
): Promise<{ network: QuietNetwork; unhealthy: readonly string[] }> {
  const network = await startQuietNetwork({ config: config(spec) });
  const unhealthy = onePerRegion(network, 3);
  network.failNode(unhealthy[0]!, "operator");
  await network.advance(2 * MINUTE_MS);
  for (const node of unhealthy.slice(1)) network.failNode(node);
  return { network, unhealthy };
}

test("two nodes that were between steps when a step was added are treated one after the other", async () => {
  const open = { steps: [steps.disconnect, steps.reboot] };
  // The first text is proven, so two nodes are treated at the same time. A window closes between their steps.
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline(open)], { ...canaryOnly, canary: false }),
  });
  const unhealthy = onePerRegion(network, 2);
  for (const node of unhealthy) network.failNode(node);
  await network.advanceUntil(() => network.postCount() === 2);
  await network.commands().pause("a release");
  await network.advance(10 * MINUTE_MS);
  expect(network.actions().map(({ outcome }) => outcome)).toEqual(["ineffective", "ineffective"]);
  await network.restart({ config: config({ steps: [...open.steps, steps.force] }) });
  await network.commands().resume();
  await network.advance(HOUR_MS);
  expect(network.episodes().map(({ state }) => state)).toEqual(["healed", "healed"]);
  expect(network.postCount()).toBe(4);
});

test("a canary that an operator holds between two steps doesn't hold the other nodes", async () => {
  const { network, unhealthy } = await startWithFailedCanaryStep({ steps: [steps.reboot, steps.force] });
  await network.advanceUntil(() => network.postCount() === 1);
  expect(network.holdReasons(unhealthy[1]!)).toEqual([]);
  await network.commands().hold(unhealthy[0]!, "looking into it");
  await network.advance(2 * HOUR_MS);
  expect(nodesActedOn(network)).toEqual(unhealthy);
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ proven: true }]);
});

test("a canary whose next step an operator rejects doesn't hold the other nodes", async () => {
  const { network, unhealthy } = await startWithFailedCanaryStep({
    mode: "approve",
    steps: [steps.reboot, steps.force],
  });
  const approve = async (node: string) => {
    const waiting = () =>
      network
        .controller()
        .view.approvals()
        .find((each) => each.node === node);
    await network.advanceUntil(() => waiting() !== undefined);
    return waiting()!.id;
  };
  await network.commands().approve(await approve(unhealthy[0]!));
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(12 * MINUTE_MS);
  // While the next step of the canary waits for approval, the others are held.
  expect(network.holdReasons(unhealthy[1]!)).toContain("canary");
  await network.commands().reject(await approve(unhealthy[0]!), "not this one");
  await network.commands().approve(await approve(unhealthy[1]!));
  await network.advance(HOUR_MS);
  expect(nodesActedOn(network)).toEqual(unhealthy.slice(0, 2));
  expect(runAtOnce(network.controller().view.policies())).toMatchObject([{ proven: true }]);
});

test("a canary in maintenance between two steps doesn't hold the other nodes, and no two are treated at once", async () => {
  const { network, unhealthy } = await startWithFailedCanaryStep({
    when: 'node.status != "online"',
    steps: [steps.reboot, steps.force],
  });
  await network.advanceUntil(() => network.postCount() === 1);
  network.interventions.quarantine(unhealthy[0]!, network.daemon.clock.now() + 20 * HOUR_MS);
  await network.advance(12 * MINUTE_MS);
  expect(nodesActedOn(network).length).toBeLessThanOrEqual(2);
  await network.advance(2 * HOUR_MS);
  expect(nodesActedOn(network)).toEqual(unhealthy);
});
