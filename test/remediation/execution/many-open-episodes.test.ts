import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { JournalChange } from "../../../src/model/remediation/journal.ts";
import { startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, withoutLimits } from "../../harness/policies.ts";
import { episodeStates } from "../../harness/remediation-results.ts";

/** Nodes that fail at once. */
const FAILED = 1_100;
/** Episodes that are updated in one turn of the event loop. */
const PER_TURN = 1_000;

const isCleared = (change: JournalChange) => change.kind === "episode" && change.row.state === "cleared";

test("the open episodes of a mass event close in more than one turn of the event loop", async () => {
  const safety = {
    ...withoutLimits,
    maxActions: { amount: 0, perMs: HOUR_MS },
    breaker: { share: 1, amount: 10_000, withinMs: HOUR_MS },
    correlated: { ...withoutLimits.correlated, nodes: 10_000 },
  };
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()], safety),
    scenario: { nodes: FAILED + 50, sessions: 0 },
  });
  let clearedAtOnce = 0;
  network.injectedFailures.crashAt = {
    when: "after",
    changes(all) {
      clearedAtOnce = Math.max(clearedAtOnce, all.filter(isCleared).length);
      return false;
    },
  };
  const recoverAt = network.daemon.clock.now() + 11 * MINUTE_MS;
  for (const node of network.nodes().slice(0, FAILED))
    network.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt });
  await network.advance(9 * MINUTE_MS);
  const open = episodeStates(network);
  expect(open.length).toBeGreaterThan(PER_TURN);
  expect(new Set(open)).toEqual(new Set(["firing"]));
  await network.advance(16 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(open.map(() => "cleared"));
  expect(clearedAtOnce).toBeLessThanOrEqual(PER_TURN);
});
