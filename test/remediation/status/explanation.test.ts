import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import { type QuietNetwork, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";

const notOnline = { when: 'node.status != "online"', forMs: HOUR_MS };

function blockersBy(network: QuietNetwork, node: string): Record<string, readonly string[]> {
  const { policies } = network.explain(node);
  return Object.fromEntries(
    policies.map(({ policy, blockers }) => [policy, blockers.map(({ reason, detail }) => `${reason}: ${detail}`)]),
  );
}

test("while our reboot of a node is under way, every policy reports it as ours, and not as a blocker of its own node", async () => {
  const policies = [
    rebootOffline(),
    rebootOffline({ name: "other", ...notOnline }),
    rebootOffline({ name: "dry-run", mode: "dry_run", ...notOnline }),
  ];
  const { network, node } = await startWithFailedNode({ config: remediationConfig(policies) });
  await network.advanceUntil(() => network.actions().some(({ rebootingSeen }) => rebootingSeen));
  const [action] = network.actions();
  const blockers = blockersBy(network, node);
  const rebooting = `status: it is being rebooted by ${action!.id} (policy reboot-offline)`;
  expect(blockers["reboot-offline"]).toEqual([]);
  expect(blockers.other).toContain(rebooting);
  expect(blockers["dry-run"]).toContain(rebooting);
  expect(Object.values(blockers).flat().join("\n")).not.toMatch(/not by the daemon|did not (?:start|take)|in_flight/);
});

test("while our quarantine of a node lasts, other policies report that it is ours", async () => {
  const policies = [
    rebootOffline({ steps: [steps.quarantine] }),
    rebootOffline({ name: "dry-run", mode: "dry_run", ...notOnline }),
  ];
  const { network, node } = await startWithFailedNode({ config: remediationConfig(policies), remedy: "operator" });
  await network.advance(15 * MINUTE_MS);
  expect(network.status(node)).toBe("quarantined");
  const [episode] = network.episodes();
  expect(blockersBy(network, node)["dry-run"]).toEqual([
    `status: it is quarantined by ${episode!.id} (policy reboot-offline)`,
  ]);
});

test("a policy that does not match a node reports nothing that would hold its actions", async () => {
  const policies = [rebootOffline(), rebootOffline({ name: "elsewhere", match: 'node.region == "eu-west"' })];
  const network = await startQuietNetwork({ config: remediationConfig(policies) });
  await network.commands().pause("a release");
  const [node] = network.nodes("us-east");
  expect(blockersBy(network, node!)).toEqual({
    "reboot-offline": expect.arrayContaining([expect.stringMatching(/^paused: /)]),
    elsewhere: [],
  });
});

test("during a mass event a node is explained in many steps, and holds that begin meanwhile are reported", async () => {
  const nodes = 3_000;
  const policies = [
    rebootOffline({ when: 'node.status == "online"' }),
    rebootOffline({ name: "dry-run", mode: "dry_run" }),
  ];
  const network = await startQuietNetwork({ config: remediationConfig(policies), scenario: { nodes } });
  const [node] = network.nodes();
  const { view } = network.controller();
  await network.advanceUntil(() => runAtOnce(view.heldNodeCount()) === nodes);
  // A timer was set since the nodes were counted.
  const { records } = network.daemon.remediationState;
  records.setTimer("reboot-offline", node!, records.timer("reboot-offline", node!));
  expect([...view.explain(node!)].length).toBeGreaterThan(15);
  const steps = view.explain(node!);
  steps.next();
  await network.commands().pause("a release");
  const explained = runAtOnce(steps);
  const storm = `${nodes} of ${nodes} nodes are unhealthy (${nodes} firing under reboot-offline); the limit is 600 (storm)`;
  for (const { blockers } of explained.policies) {
    expect(blockers).toContainEqual({ reason: "storm", detail: storm });
    expect(blockers).toContainEqual({ reason: "paused", detail: expect.stringContaining("a release") });
  }
  expect(runAtOnce(view.explain(node!))).toEqual(explained);
});

test("every step that is acted on has its own decision row", async () => {
  const config = remediationConfig([rebootOffline({ steps: [steps.disconnect, steps.reboot, steps.force] })]);
  const { network } = await startWithFailedNode({ config, remedy: "operator" });
  await network.advance(HOUR_MS);
  expect(network.actions()).toHaveLength(3);
  const acts = network.decisions().filter(({ verdict }) => verdict === "act");
  expect(acts.map(({ episode, step }) => [episode, step])).toEqual(
    network.actions().map((action) => [action.episode, action.step]),
  );
});

test("the history of a node holds its latest 100 rows of each kind, as many as explain reads from a journal", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes();
  const { view } = network.controller();
  for (let count = 0; count < 101; count++) await network.commands("alice").hold(node!, `hold ${count}`);
  const { operatorCommands: rows } = await view.historyOf(node!);
  expect(rows).toHaveLength(100);
  expect(rows.at(-1)?.detail).toContain("hold 1;");
});
