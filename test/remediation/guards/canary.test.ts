import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { PolicyRule } from "../../../src/model/policy/policy.ts";
import { touched } from "../../harness/action-lines.ts";
import { free, rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { oneOfEach, startWard, type WardRun } from "../../harness/quiet-network.ts";

/** Only the canary limits anything. */
const canaryOnly = { ...free, canary: true };

const rules = (rule: Partial<PolicyRule> = {}) => rulesOf([rebootOffline(rule)], canaryOnly);

/** Three nodes are unhealthy; the first one is the canary, and its first step was ineffective. */
async function tried(rule: Partial<PolicyRule>): Promise<{ ward: WardRun; ill: readonly string[] }> {
  const ward = await startWard({ rules: rules(rule) });
  const ill = oneOfEach(ward, 3);
  ward.fell(ill[0]!, "person");
  await ward.pass(2 * MINUTE_MS);
  for (const node of ill.slice(1)) ward.fell(node);
  return { ward, ill };
}

test("two nodes that stood between steps when a step was added are treated one after the other", async () => {
  const open = { steps: [steps.disconnect, steps.reboot] };
  // Proven under its first text, so that two nodes are treated at once; a window closes between their steps.
  const ward = await startWard({ rules: rulesOf([rebootOffline(open)], { ...canaryOnly, canary: false }) });
  const ill = oneOfEach(ward, 2);
  for (const node of ill) ward.fell(node);
  await ward.passUntil(() => ward.postCount() === 2);
  ward.warden().orders.pause("a release");
  await ward.pass(10 * MINUTE_MS);
  expect(ward.actions().map(({ outcome }) => outcome)).toEqual(["ineffective", "ineffective"]);
  await ward.restart({ rules: rules({ steps: [...open.steps, steps.force] }) });
  ward.warden().orders.resume();
  await ward.pass(HOUR_MS);
  expect(ward.episodes().map(({ state }) => state)).toEqual(["healed", "healed"]);
  expect(ward.postCount()).toBe(4);
  await ward.stop();
});

test("a canary that an operator holds between two steps doesn't hold the other nodes", async () => {
  const { ward, ill } = await tried({ steps: [steps.reboot, steps.force] });
  await ward.passUntil(() => ward.postCount() === 1);
  expect(ward.reasons(ill[1]!)).toEqual([]);
  ward.warden().orders.hold(ill[0]!, "looking into it");
  await ward.pass(2 * HOUR_MS);
  expect(touched(ward)).toEqual(ill);
  expect(ward.warden().view.policies()).toMatchObject([{ proven: true }]);
  await ward.stop();
});

test("a canary whose next step an operator rejects doesn't hold the other nodes", async () => {
  const { ward, ill } = await tried({ mode: "approve", steps: [steps.reboot, steps.force] });
  const approve = async (node: string) => {
    const waiting = () =>
      ward
        .warden()
        .view.approvals()
        .find((each) => each.node === node);
    await ward.passUntil(() => waiting() !== undefined);
    return waiting()!.id;
  };
  ward.warden().orders.approve(await approve(ill[0]!));
  await ward.passUntil(() => ward.postCount() === 1);
  await ward.pass(12 * MINUTE_MS);
  // While the first one's next step waits for an answer the others are held, and say why.
  expect(ward.reasons(ill[1]!)).toContain("canary");
  ward.warden().orders.reject(await approve(ill[0]!), "not this one");
  ward.warden().orders.approve(await approve(ill[1]!));
  await ward.pass(HOUR_MS);
  expect(touched(ward)).toEqual(ill.slice(0, 2));
  expect(ward.warden().view.policies()).toMatchObject([{ proven: true }]);
  await ward.stop();
});

test("a canary in maintenance between two steps doesn't hold the other nodes, and no two are treated at once", async () => {
  const { ward, ill } = await tried({ when: 'node.status != "online"', steps: [steps.reboot, steps.force] });
  await ward.passUntil(() => ward.postCount() === 1);
  ward.people.quarantine(ill[0]!, ward.daemon.clock.now() + 20 * HOUR_MS);
  await ward.pass(12 * MINUTE_MS);
  expect(touched(ward).length).toBeLessThanOrEqual(2);
  await ward.pass(2 * HOUR_MS);
  expect(touched(ward)).toEqual(ill);
  await ward.stop();
});
