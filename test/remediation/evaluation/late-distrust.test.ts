import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import { rebootOffline, remediationRules, withoutLimits } from "../../harness/policies.ts";
import { startQuietNetwork } from "../../harness/quiet-network.ts";

test("a short list that arrives during an evaluation does not suspend episodes", async () => {
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ mode: "approve" })], withoutLimits),
  });
  const [node, other] = network.nodes();
  network.failNode(node!, "person");
  await network.advanceUntil(() => network.episodes().length === 1);
  let isPublished = false;
  network.injectedFailures.crashAt = {
    when: "after",
    changes(all) {
      if (isPublished || !all.some((change) => change.kind === "timer" && change.row.node === other)) return false;
      isPublished = true;
      const snapshot = network.daemon.snapshots.last!;
      const { fleet } = snapshot;
      const short = {
        ...fleet,
        ids: fleet.ids.map((id) => (id === node ? "" : id)),
        lastWalk: { ...fleet.lastWalk!, seenNodes: 1 },
      };
      const sequence = snapshot.sequence + 0.5;
      network.controller().update({ ...snapshot, sequence, fleet: short }, network.daemon.collectorManager.plan());
      return false;
    },
  };
  network.failNode(other!, "person");
  await network.advance(5 * MINUTE_MS);
  expect(isPublished).toBe(true);
  const states = network.events.flatMap((event) =>
    event.kind === "commit"
      ? event.changes.flatMap((change) =>
          change.kind === "episode" && change.row.node === node ? [change.row.state] : [],
        )
      : [],
  );
  expect(states).not.toContain("suspended");
});
