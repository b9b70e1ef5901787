import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { runAtOnce } from "../../../src/base/steps.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { openRemediationState } from "../../../src/remediation/state/journaled-state.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { createRecordingLog, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../harness/policies.ts";
import { marksOf } from "../../harness/remediation-results.ts";

test("a node has the most important mark of its current state", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline({ mode: "approve" })]) });
  const [node] = network.nodes("us-east");
  const { view } = network.controller();
  const commands = network.commands();
  expect([...marksOf(view)]).toEqual([]);
  network.failNode(node!);
  await network.advanceUntil(() => marksOf(view).get(node!) === "pending");
  await network.advanceUntil(() => marksOf(view).get(node!) === "awaiting");
  expect([...marksOf(view).keys()]).toEqual([node]);
  // A request for approval is more important than a hold. Once it is approved, the hold is shown.
  expect(await commands.hold(node!, "its disk is swapped")).toMatchObject({ ok: true });
  expect(marksOf(view).get(node!)).toBe("awaiting");
  expect(await commands.approve(view.approvals()[0]!.id)).toMatchObject({ ok: true });
  expect(marksOf(view).get(node!)).toBe("held");
  await commands.release(node!);
  await network.advanceUntil(() => marksOf(view).get(node!) === "acting");
  await network.advanceUntil(() => marksOf(view).get(node!) === "episode");
  await network.advanceUntil(() => marksOf(view).size === 0);
});

test("dry runs and firing nodes without an episode have their own marks", async () => {
  const policies = [
    rebootOffline({ name: "dry-run", mode: "dry_run", match: 'node.region != "us-east"', steps: [steps.reboot] }),
    rebootOffline({ name: "real", match: 'node.region == "us-east"', steps: [steps.reboot] }),
  ];
  const network = await startQuietNetwork({ config: remediationConfig(policies) });
  const [dryRun, real] = [network.nodes("eu-west")[0]!, network.nodes("us-east")[0]!];
  const { view } = network.controller();
  network.failNode(dryRun, "operator");
  await network.advanceUntil(() => marksOf(view).get(dryRun) === "dry_run");
  network.failNode(real, "operator");
  // The only step was ineffective: the node is given up, and still fires.
  await network.advanceUntil(() => marksOf(view).get(real) === "given_up");
});

test("nodes that wait for other actions are told from nodes that guards hold", async () => {
  const config = remediationConfig([rebootOffline({ steps: [steps.reboot] })], {
    ...withoutLimits,
    maxInFlight: 1,
    canary: true,
  });
  const network = await startQuietNetwork({ config });
  const nodes = network.nodes("us-east").slice(0, 3);
  const { view } = network.controller();
  const operatorCommands = network.commands();
  const marks = () => nodes.map((node) => marksOf(view).get(node)).toSorted();
  for (const node of nodes) network.failNode(node);
  // The first action is the canary, and the only one in flight.
  await network.advanceUntil(() => marks().join() === "acting,canary,canary");
  await network.advanceUntil(() => marks().join() === "acting,episode,in_flight");
  const [waiting] = runAtOnce(view.heldNodes({}));
  expect(runAtOnce(view.heldNodeCount())).toBe(runAtOnce(view.heldNodes({})).length);
  expect(runAtOnce(view.heldNodes({}))).toMatchObject([
    {
      policy: "reboot-offline",
      region: "us-east",
      ipAddress: expect.stringMatching(/^198\.18\./),
      reasons: ["in_flight"],
      until: null,
    },
  ]);
  await operatorCommands.hold(nodes[0]!, "its disk is swapped", 60_000);
  await operatorCommands.hold(waiting!.node, "its disk is swapped", 60_000);
  await operatorCommands.pause("a deploy");
  await network.advanceUntil(() => runAtOnce(view.heldNodes({})).some(({ reasons }) => reasons.includes("paused")));
  expect(runAtOnce(view.heldNodes({})).every(({ until }) => until !== null)).toBe(true);
  expect(runAtOnce(view.heldNodeCount())).toBe(runAtOnce(view.heldNodes({})).length);
  const [first] = runAtOnce(view.heldNodes({ limit: 1 }));
  expect(runAtOnce(view.heldNodes({ node: first!.node }))).toEqual([first]);
  expect(runAtOnce(view.heldNodes({ policy: "another" }))).toEqual([]);
});

test("a node that two policies hold is found under either of them, and counted once", async () => {
  const policies = ["early", "late"].map((name, index) => rebootOffline({ name, forMs: (index + 1) * 5 * MINUTE_MS }));
  const network = await startQuietNetwork({ config: remediationConfig(policies) });
  const [node] = network.nodes("us-east");
  const { view } = network.controller();
  const operatorCommands = network.commands();
  await operatorCommands.pause("a deploy");
  network.failNode(node!);
  await network.advance(15 * MINUTE_MS);
  expect(runAtOnce(view.heldNodes({}))).toMatchObject([{ node, policy: "early" }]);
  for (const policy of ["early", "late"])
    expect(runAtOnce(view.heldNodes({ policy }))).toMatchObject([{ node, policy }]);
  expect(runAtOnce(view.heldNodeCount())).toBe(1);
});

test("onChange gets committed and recorded changes, but no change whose commit failed", async () => {
  const recorded: JournalChange[] = [];
  const { journal } = createMemoryStateStore();
  const disk = { isFull: false };
  const remediationState = await openRemediationState({
    journal: {
      ...journal,
      async commit(changes) {
        if (disk.isFull) throw new Error("disk full");
        await journal.commit(changes);
      },
    },
    clock: createVirtualClock(START_MS),
    log: createRecordingLog(),
    lostReason: null,
    onChange: (changes) => recorded.push(...changes),
  });
  const fact = (value: string): JournalChange => ({ kind: "fact", key: "remediation.test", value });
  expect(await remediationState.commit(() => [fact("1")])).toBe(true);
  disk.isFull = true;
  expect(await remediationState.commit(() => [fact("2")])).toBe(false);
  // What has happened is recorded, even if it can't be journaled.
  remediationState.record([fact("3")]);
  remediationState.runBatched(() => remediationState.record([fact("4")]));
  expect(recorded).toEqual([fact("1"), fact("3"), fact("4")]);
});
