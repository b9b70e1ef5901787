import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicyRule } from "../../../src/model/policy/policy.ts";
import { nodesActedOn } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps, withoutLimits } from "../../harness/policies.ts";
import { onePerRegion, type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

/** Only the canary limits anything. */
const canaryOnly = { ...withoutLimits, canary: true };

const rules = (rule: Partial<PolicyRule> = {}) => remediationRules([rebootOffline(rule)], canaryOnly);

/** Three nodes are unhealthy; the first one is the canary, and its first step was ineffective. */
async function tried(rule: Partial<PolicyRule>): Promise<{ ward: QuietNetwork; ill: readonly string[] }> {
  const context = await startQuietNetwork({ rules: rules(rule) });
  const unhealthy = onePerRegion(context, 3);
  context.failedNodes(unhealthy[0]!, "person");
  await context.advance(2 * MINUTE_MS);
  for (const node of unhealthy.slice(1)) context.failedNodes(node);
  return { ward: context, ill: unhealthy };
}

test("two nodes that stood between steps when a step was added are treated one after the other", async () => {
  const open = { steps: [steps.disconnect, steps.reboot] };
  // Proven under its first text, so that two nodes are treated at once; a window closes between their steps.
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline(open)], { ...canaryOnly, canary: false }),
  });
  const unhealthy = onePerRegion(context, 2);
  for (const node of unhealthy) context.failedNodes(node);
  await context.advanceUntil(() => context.postCount() === 2);
  context.controller().operatorCommands.pause("a release");
  await context.advance(10 * MINUTE_MS);
  expect(context.actions().map(({ outcome }) => outcome)).toEqual(["ineffective", "ineffective"]);
  await context.restart({ rules: rules({ steps: [...open.steps, steps.force] }) });
  context.controller().operatorCommands.resume();
  await context.advance(HOUR_MS);
  expect(context.episodes().map(({ state }) => state)).toEqual(["healed", "healed"]);
  expect(context.postCount()).toBe(4);
  await context.stop();
});

test("a canary that an operator holds between two steps doesn't hold the other nodes", async () => {
  const { ward: context, ill: unhealthy } = await tried({ steps: [steps.reboot, steps.force] });
  await context.advanceUntil(() => context.postCount() === 1);
  expect(context.holdReasons(unhealthy[1]!)).toEqual([]);
  context.controller().operatorCommands.hold(unhealthy[0]!, "looking into it");
  await context.advance(2 * HOUR_MS);
  expect(nodesActedOn(context)).toEqual(unhealthy);
  expect(context.controller().view.policies()).toMatchObject([{ isProven: true }]);
  await context.stop();
});

test("a canary whose next step an operator rejects doesn't hold the other nodes", async () => {
  const { ward: context, ill: unhealthy } = await tried({ mode: "approve", steps: [steps.reboot, steps.force] });
  const approve = async (node: string) => {
    const waiting = () =>
      context
        .controller()
        .view.approvals()
        .find((each) => each.node === node);
    await context.advanceUntil(() => waiting() !== undefined);
    return waiting()!.id;
  };
  context.controller().operatorCommands.approve(await approve(unhealthy[0]!));
  await context.advanceUntil(() => context.postCount() === 1);
  await context.advance(12 * MINUTE_MS);
  // While the first one's next step waits for an answer the others are held, and say why.
  expect(context.holdReasons(unhealthy[1]!)).toContain("canary");
  context.controller().operatorCommands.reject(await approve(unhealthy[0]!), "not this one");
  context.controller().operatorCommands.approve(await approve(unhealthy[1]!));
  await context.advance(HOUR_MS);
  expect(nodesActedOn(context)).toEqual(unhealthy.slice(0, 2));
  expect(context.controller().view.policies()).toMatchObject([{ isProven: true }]);
  await context.stop();
});

test("a canary in maintenance between two steps doesn't hold the other nodes, and no two are treated at once", async () => {
  const { ward: context, ill: unhealthy } = await tried({
    when: 'node.status != "online"',
    steps: [steps.reboot, steps.force],
  });
  await context.advanceUntil(() => context.postCount() === 1);
  context.interventions.quarantine(unhealthy[0]!, context.daemon.clock.now() + 20 * HOUR_MS);
  await context.advance(12 * MINUTE_MS);
  expect(nodesActedOn(context).length).toBeLessThanOrEqual(2);
  await context.advance(2 * HOUR_MS);
  expect(nodesActedOn(context)).toEqual(unhealthy);
  await context.stop();
});
