import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../../src/base/duration.ts";
import type { Snapshot } from "../../../../src/model/snapshot.ts";
import { type QuietNetwork, startQuietNetwork } from "../../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../../harness/policies.ts";

/** Publishes snapshots that are made of the last one, once, when a timer of `node` is journaled during an evaluation. */
function publishDuringEvaluation(
  network: QuietNetwork,
  node: string,
  snapshotsOf: (last: Snapshot) => readonly Snapshot[],
): () => boolean {
  let isPublished = false;
  network.injectedFailures.crashAt = {
    when: "after",
    changes(all) {
      if (isPublished || !all.some((change) => change.kind === "timer" && change.row.node === node)) return false;
      isPublished = true;
      for (const snapshot of snapshotsOf(network.daemon.snapshots.last!))
        network.controller().update(snapshot, network.daemon.collectorManager.plan());
      return false;
    },
  };
  return () => isPublished;
}

/** Returns the snapshot of a walk that showed one node, and not `hidden`. */
function shortSnapshot(snapshot: Snapshot, hidden: string): Snapshot {
  const { fleet, sequence } = snapshot;
  const ids = fleet.ids.map((id) => (id === hidden ? "" : id));
  const short = { ...fleet, ids, lastWalk: { ...fleet.lastWalk!, seenNodes: 1 } };
  return { ...snapshot, sequence: sequence + 0.5, fleet: short };
}

test("a short list that arrives during an evaluation does not suspend episodes", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ mode: "approve" })], withoutLimits),
  });
  const [node, other] = network.nodes();
  network.failNode(node!, "operator");
  await network.advanceUntil(() => network.episodes().length === 1);
  const isPublished = publishDuringEvaluation(network, other!, (last) => [shortSnapshot(last, node!)]);
  network.failNode(other!, "operator");
  await network.advance(5 * MINUTE_MS);
  expect(isPublished()).toBe(true);
  const states = network.events.flatMap((event) =>
    event.kind === "commit"
      ? event.changes.flatMap((change) =>
          change.kind === "episode" && change.row.node === node ? [change.row.state] : [],
        )
      : [],
  );
  expect(states).not.toContain("suspended");
});

test("a short list that another walk follows during the same evaluation still begins a cooldown", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], withoutLimits) });
  const [node, other] = network.nodes();
  const isPublished = publishDuringEvaluation(network, node!, (last) => [
    shortSnapshot(last, other!),
    { ...last, sequence: last.sequence + 0.75 },
  ]);
  network.failNode(node!);
  await network.advanceUntil(isPublished);
  await network.advanceUntil(() => network.holdReasons(node!).length > 0);
  expect(network.holdReasons(node!)).toEqual(["sight_cooldown"]);
  expect(network.postCount()).toBe(0);
});

test("a short list that another walk follows before its round has begun still begins a cooldown", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], withoutLimits) });
  const [node, other] = network.nodes();
  network.failNode(node!);
  await network.advance(3 * MINUTE_MS);
  const { last } = network.daemon.snapshots;
  for (const snapshot of [shortSnapshot(last!, other!), { ...last!, sequence: last!.sequence + 0.75 }])
    network.controller().update(snapshot, network.daemon.collectorManager.plan());
  await network.advanceUntil(() => network.holdReasons(node!).length > 0);
  expect(network.holdReasons(node!)).toEqual(["sight_cooldown"]);
  expect(network.postCount()).toBe(0);
});
