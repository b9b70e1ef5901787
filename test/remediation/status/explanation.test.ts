import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

const notOnline = { when: 'node.status != "online"', forMs: HOUR_MS };

function blockersBy(ward: WardRun, node: string): Record<string, readonly string[]> {
  const { policies } = ward.warden().view.explain(node);
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
  const ward = await startWard({ rules: rulesOf(policies) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.passUntil(() => ward.actions().some(({ rebootingSeen }) => rebootingSeen));
  const [action] = ward.actions();
  const blockers = blockersBy(ward, node!);
  const rebooting = `status: it is rebooting for ${action!.id} of the policy reboot-offline`;
  expect(blockers["reboot-offline"]).toEqual([]);
  expect(blockers.other).toContain(rebooting);
  expect(blockers.rehearsed).toContain(rebooting);
  expect(Object.values(blockers).flat().join("\n")).not.toMatch(/not for us|not ours|in_flight/);
  await ward.stop();
});

test("while our quarantine of a node lasts, other policies say that it is ours", async () => {
  const policies = [
    rebootOffline({ steps: [steps.quarantine] }),
    rebootOffline({ name: "rehearsed", mode: "dry_run", ...notOnline }),
  ];
  const ward = await startWard({ rules: rulesOf(policies) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "person");
  await ward.pass(15 * MINUTE_MS);
  expect(ward.status(node!)).toBe("quarantined");
  const [episode] = ward.episodes();
  expect(blockersBy(ward, node!).rehearsed).toEqual([
    `status: it is in our quarantine of ${episode!.id} of the policy reboot-offline`,
  ]);
  await ward.stop();
});

test("every step that is acted on has a decision row of its own", async () => {
  const rules = rulesOf([rebootOffline({ steps: [steps.disconnect, steps.reboot, steps.force] })]);
  const ward = await startWard({ rules });
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(HOUR_MS);
  expect(ward.actions()).toHaveLength(3);
  const acts = ward.decisions().filter(({ verdict }) => verdict === "act");
  expect(acts.map(({ episode, step }) => [episode, step])).toEqual(
    ward.actions().map((each) => [each.episode, each.step]),
  );
  await ward.stop();
});
