import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { ONE_NODE, startQuietNetwork } from "../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../harness/policies.ts";
import { actionLines, episodeStates } from "../harness/remediation-results.ts";

/** A node that has sessions while it is online. */

test("a longer `for` does not end a suspended episode with actions whose node another policy has", async () => {
  const busy = rebootOffline({
    name: "busy",
    match: `node.id == "${ONE_NODE}"`,
    when: "ratio(node.active_sessions, node.active_sessions) > 0.5",
    maxAgeMs: 5 * MINUTE_MS,
    steps: [steps.disconnect, steps.disconnect],
  });
  const offline = rebootOffline({ clearForMs: 6 * HOUR_MS });
  const config = (forMs: number) =>
    remediationConfig([{ ...busy, forMs }, offline], { maxActions: { amount: 1, perMs: 24 * HOUR_MS } });
  const network = await startQuietNetwork({
    config: config(5 * MINUTE_MS),
    scenario: { nodes: 60, sessions: 600 },
  });
  await network.advanceUntil(() => network.actions()[0]?.outcome === "ineffective");
  const recoverAt = network.daemon.clock.now() + HOUR_MS;
  network.interventions.startFailure(ONE_NODE, { failureMode: "outage", remedy: "time", recoverAt });
  await network.advance(90 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["suspended", "firing"]);
  expect(network.explain(ONE_NODE).policies[0]!.timer).toMatchObject({ state: "firing" });
  await network.reload({ config: config(30 * MINUTE_MS) });
  await network.advance(5 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["suspended", "firing"]);
});

test("after reset-breaker, a policy that fell back continues the episode of a node in its quarantine", async () => {
  const policy = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: HOUR_MS }, steps.force] });
  const network = await startQuietNetwork({
    config: remediationConfig([policy], { ...withoutLimits, efficacy: { window: 1, minSuccess: 0.5 } }),
  });
  const [first, second] = network.nodes() as [string, string];
  network.failNode(first, "forced_reboot");
  await network.advanceUntil(() => episodeStates(network)[0] === "quarantined");
  network.setFault({ kind: "status", status: 422 }, "POST");
  network.failNode(second, "operator");
  await network.advanceUntil(() => episodeStates(network)[1] === "given_up");
  network.setFault(null);
  await network.advance(15 * MINUTE_MS);
  await network.commands().resetBreaker();
  await network.advanceUntil(() => episodeStates(network)[0] !== "quarantined");
  await network.advance(30 * MINUTE_MS);
  const actions = () => network.actions().filter(({ node }) => node === first);
  expect(actionLines({ actions })).toEqual(["quarantine: verified", "forced reboot: verified"]);
});

test("an episode resumes although another one ended within the cooldown, if that was before it was suspended", async () => {
  const config = (cooldownMs: number) =>
    remediationConfig([rebootOffline()], { cooldownMs, maxActions: { amount: 2, perMs: 24 * HOUR_MS } });
  const network = await startQuietNetwork({ config: config(30 * MINUTE_MS) });
  const [node] = network.nodes() as [string];
  network.failNode(node);
  await network.advanceUntil(() => episodeStates(network)[0] === "healed");
  await network.advance(HOUR_MS);
  network.failNode(node, "operator");
  await network.advanceUntil(() => network.actions()[1]?.outcome === "ineffective");
  network.interventions.leaveFleet(node, network.daemon.clock.now() + 20 * MINUTE_MS);
  await network.advanceUntil(() => episodeStates(network)[1] === "suspended");
  await network.reload({ config: config(24 * HOUR_MS) });
  await network.advanceUntil(() => network.explain(node).known);
  network.failNode(node, "operator");
  await network.advance(HOUR_MS);
  expect(episodeStates(network)).toEqual(["healed", "firing"]);
});
