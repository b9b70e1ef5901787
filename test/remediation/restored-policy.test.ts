import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { type QuietNetwork, startQuietNetwork } from "../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../harness/policies.ts";
import { actionLines, episodeStates } from "../harness/remediation-results.ts";

const policy = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: HOUR_MS }, steps.force] });

/** Quarantines an offline node, and removes the policy for ten minutes meanwhile. */
async function quarantineWithoutPolicy(recoverAfterMs: number | null): Promise<QuietNetwork> {
  const network = await startQuietNetwork({ config: remediationConfig([policy]) });
  const recoverAt = network.daemon.clock.now() + (recoverAfterMs ?? Number.POSITIVE_INFINITY);
  network.interventions.startFailure(network.nodes()[0]!, { failureMode: "outage", remedy: "time", recoverAt });
  await network.advanceUntil(() => episodeStates(network)[0] === "quarantined");
  await network.reload({ config: remediationConfig([]) });
  await network.advance(10 * MINUTE_MS);
  await network.reload({ config: remediationConfig([policy]) });
  return network;
}

test("after its policy was removed and added again, an episode takes the next step if the node is still unhealthy", async () => {
  const network = await quarantineWithoutPolicy(null);
  await network.advance(HOUR_MS);
  expect(actionLines(network)).toEqual(["quarantine: verified", "forced reboot: verified"]);
  expect(network.episodes()).toHaveLength(1);
});

test("after its policy was removed and added again, an episode is healed if the node stays healthy for clear_for", async () => {
  const network = await quarantineWithoutPolicy(20 * MINUTE_MS);
  await network.advanceUntil(() => network.status(network.nodes()[0]!) === "online");
  await network.advance(5 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ closedAt: null }]);
  await network.advance(10 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed"]);
});
