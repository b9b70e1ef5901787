import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicyRule } from "../../../src/model/policy/policy.ts";
import { rebootOffline, remediationRules, steps, withoutLimits } from "../../harness/policies.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";
import { nodesActedOn } from "../../harness/remediation-results.ts";

/** Only the canary limits anything. */
const canaryOnly = { ...withoutLimits, canary: true };

const rules = (rule: Partial<PolicyRule> = {}) => remediationRules([rebootOffline(rule)], canaryOnly);

/** Three nodes are unhealthy; the first one is the canary, and its first step was ineffective. */
async function tried(rule: Partial<PolicyRule>): Promise<{ ward: QuietNetwork; ill: readonly string[] }> {
  const network = await startQuietNetwork({ rules: rules(rule) });
  const unhealthy = onePerRegion(network, 3);
  network.failNode(unhealthy[0]!, "person");
  await network.advance(2 * MINUTE_MS);
  for (const node of unhealthy.slice(1)) network.failNode(node);
  return { ward: network, ill: unhealthy };
}

test("two nodes that stood between steps when a step was added are treated one after the other", async () => {
  const open = { steps: [steps.disconnect, steps.reboot] };
  // Proven under its first text, so that two nodes are treated at once; a window closes between their steps.
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline(open)], { ...canaryOnly, canary: false }),
  });
  const unhealthy = onePerRegion(network, 2);
  for (const node of unhealthy) network.failNode(node);
  await network.advanceUntil(() => network.postCount() === 2);
  network.controller().operatorCommands.pause("a release");
  await network.advance(10 * MINUTE_MS);
  expect(network.actions().map(({ outcome }) => outcome)).toEqual(["ineffective", "ineffective"]);
  await network.restart({ rules: rules({ steps: [...open.steps, steps.force] }) });
  network.controller().operatorCommands.resume();
  await network.advance(HOUR_MS);
  expect(network.episodes().map(({ state }) => state)).toEqual(["healed", "healed"]);
  expect(network.postCount()).toBe(4);
  await network.stop();
});

test("a canary that an operator holds between two steps doesn't hold the other nodes", async () => {
  const { ward: network, ill: unhealthy } = await tried({ steps: [steps.reboot, steps.force] });
  await network.advanceUntil(() => network.postCount() === 1);
  expect(network.holdReasons(unhealthy[1]!)).toEqual([]);
  network.controller().operatorCommands.hold(unhealthy[0]!, "looking into it");
  await network.advance(2 * HOUR_MS);
  expect(nodesActedOn(network)).toEqual(unhealthy);
  expect(network.controller().view.policies()).toMatchObject([{ isProven: true }]);
  await network.stop();
});

test("a canary whose next step an operator rejects doesn't hold the other nodes", async () => {
  const { ward: network, ill: unhealthy } = await tried({ mode: "approve", steps: [steps.reboot, steps.force] });
  const approve = async (node: string) => {
    const waiting = () =>
      network
        .controller()
        .view.approvals()
        .find((each) => each.node === node);
    await network.advanceUntil(() => waiting() !== undefined);
    return waiting()!.id;
  };
  network.controller().operatorCommands.approve(await approve(unhealthy[0]!));
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(12 * MINUTE_MS);
  // While the first one's next step waits for an answer the others are held, and say why.
  expect(network.holdReasons(unhealthy[1]!)).toContain("canary");
  network.controller().operatorCommands.reject(await approve(unhealthy[0]!), "not this one");
  network.controller().operatorCommands.approve(await approve(unhealthy[1]!));
  await network.advance(HOUR_MS);
  expect(nodesActedOn(network)).toEqual(unhealthy.slice(0, 2));
  expect(network.controller().view.policies()).toMatchObject([{ isProven: true }]);
  await network.stop();
});

test("a canary in maintenance between two steps doesn't hold the other nodes, and no two are treated at once", async () => {
  const { ward: network, ill: unhealthy } = await tried({
    when: 'node.status != "online"',
    steps: [steps.reboot, steps.force],
  });
  await network.advanceUntil(() => network.postCount() === 1);
  network.interventions.quarantine(unhealthy[0]!, network.daemon.clock.now() + 20 * HOUR_MS);
  await network.advance(12 * MINUTE_MS);
  expect(nodesActedOn(network).length).toBeLessThanOrEqual(2);
  await network.advance(2 * HOUR_MS);
  expect(nodesActedOn(network)).toEqual(unhealthy);
  await network.stop();
});
