import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

const notOnline = { when: 'node.status != "online"', forMs: HOUR_MS };

function blockersBy(context: QuietNetwork, node: string): Record<string, readonly string[]> {
  const { policies } = context.controller().view.explain(node);
  return Object.fromEntries(
    policies.map(({ policy, blockers }) => [policy, blockers.map(({ reason, detail }) => `${reason}: ${detail}`)]),
  );
}

test("while our reboot of a node is under way, every policy says whose it is, and none names it as a blocker of its own node", async () => {
  const policies = [
    rebootOffline(),
    rebootOffline({ name: "other", ...notOnline }),
    rebootOffline({ name: "rehearsed", mode: "dry_run", ...notOnline }),
  ];
  const context = await startQuietNetwork({ rules: remediationRules(policies) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advanceUntil(() => context.actions().some(({ rebootingSeen }) => rebootingSeen));
  const [action] = context.actions();
  const blockers = blockersBy(context, node!);
  const rebooting = `status: it is rebooting for ${action!.id} of the policy reboot-offline`;
  expect(blockers["reboot-offline"]).toEqual([]);
  expect(blockers.other).toContain(rebooting);
  expect(blockers.rehearsed).toContain(rebooting);
  expect(Object.values(blockers).flat().join("\n")).not.toMatch(/not for us|not ours|in_flight/);
  await context.stop();
});

test("while our quarantine of a node lasts, other policies say that it is ours", async () => {
  const policies = [
    rebootOffline({ steps: [steps.quarantine] }),
    rebootOffline({ name: "rehearsed", mode: "dry_run", ...notOnline }),
  ];
  const context = await startQuietNetwork({ rules: remediationRules(policies) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(15 * MINUTE_MS);
  expect(context.status(node!)).toBe("quarantined");
  const [episode] = context.episodes();
  expect(blockersBy(context, node!).rehearsed).toEqual([
    `status: it is in our quarantine of ${episode!.id} of the policy reboot-offline`,
  ]);
  await context.stop();
});

test("every step that is acted on has a decision row of its own", async () => {
  const rules = remediationRules([rebootOffline({ steps: [steps.disconnect, steps.reboot, steps.force] })]);
  const context = await startQuietNetwork({ rules });
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(HOUR_MS);
  expect(context.actions()).toHaveLength(3);
  const acts = context.decisions().filter(({ verdict }) => verdict === "act");
  expect(acts.map(({ episode, step }) => [episode, step])).toEqual(
    context.actions().map((each) => [each.episode, each.step]),
  );
  await context.stop();
});
