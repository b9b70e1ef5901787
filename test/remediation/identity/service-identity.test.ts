import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { ONE_NODE, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actionLines, episodeStates, nodesActedOn } from "../../harness/remediation-results.ts";

const otherService = { serviceUrl: "https://otherService.example.net" };

test("timers start over at another service: a node with the same id has to be unhealthy for the whole of `for`", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ forMs: 30 * MINUTE_MS })]),
  });
  await network.advance(25 * MINUTE_MS);
  await network.restart(otherService);
  await network.advance(25 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("an approval at one service does not apply at another", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ mode: "approve" })], { mode: "approve" }),
  });
  await network.advance(10 * MINUTE_MS);
  const [request] = network.controller().view.approvals();
  await network.commands().pause("a move");
  await network.commands().approve(request!.id);
  await network.restart(otherService);
  await network.commands().resume();
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  const [action] = network.actions();
  expect(action).toMatchObject({
    id: request!.id,
    state: "withdrawn",
    detail: expect.stringContaining("base_url changed"),
  });
  expect(episodeStates(network)).toEqual(["withdrawn", "firing"]);
  expect(network.notifications.filter(({ kind, endsAt }) => kind === "episode" && endsAt !== null)).toHaveLength(1);
});

test("after a change of the service an action under way ends in doubt, no further step is taken, and limits still count it", async () => {
  const config = remediationConfig([rebootOffline()], { maxActions: { amount: 1, perMs: 24 * HOUR_MS } });
  const { network, node } = await startWithFailedNode({ config, remedy: "operator" });
  await network.advanceUntil(() => network.postCount() === 1);
  await network.reload(otherService);
  await network.advance(HOUR_MS);
  expect(actionLines(network)).toEqual(["reboot: in_doubt"]);
  expect(episodeStates(network)[0]).toBe("withdrawn");
  expect(network.postCount()).toBe(1);
  expect(network.holdReasons(node)).toEqual(["max_actions"]);
});

test("after a return to the first service nothing resumes: our earlier quarantine there counts as external and is left alone", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [{ ...steps.quarantine, durationMs: DAY_MS }] })]),
    remedy: "operator",
  });
  await network.advance(10 * MINUTE_MS);
  expect(network.status(node)).toBe("quarantined");
  await network.commands().hold(ONE_NODE, "not to be touched");
  await network.restart(otherService);
  await network.advance(10 * MINUTE_MS);
  await network.restart();
  await network.advance(2 * HOUR_MS);
  expect(network.postCount()).toBe(1);
  expect(nodesActedOn(network)).toEqual([node]);
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  // A hold by an operator stays at every service.
  expect(network.explain(ONE_NODE).holds).toHaveLength(1);
});

test("the inventory of one service is not compared with that of another", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  expect(network.controller().view.status().largestWalkNodes).toBe(60);
  await network.restart(otherService);
  expect(network.controller().view.status().largestWalkNodes).toBe(0);
});
