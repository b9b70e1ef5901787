import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { actionLines, episodeLines, nodesActedOn } from "../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../harness/policies.ts";
import { startQuietNetwork } from "../harness/quiet-network.ts";

const other = { serviceUrl: "https://other.example.net" };

test("timers don't go on at another service: a node of equal id has to be unhealthy for the whole of for", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ forMs: 30 * MINUTE_MS })]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(25 * MINUTE_MS);
  await context.restart(other);
  await context.advance(25 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("an approval of an action at one service is none at another", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ mode: "approve" })], { mode: "approve" }),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  const [asked] = context.controller().view.approvals();
  context.controller().operatorCommands.pause("a move");
  context.controller().operatorCommands.approve(asked!.id);
  await context.restart(other);
  context.controller().operatorCommands.resume();
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  const [action] = context.actions();
  expect(action).toMatchObject({ id: asked!.id, state: "lapsed", detail: expect.stringContaining("base_url changed") });
  expect(episodeLines(context)).toEqual(["withdrawn", "firing"]);
  expect(context.notices.filter(({ kind, endsAt }) => kind === "episode" && endsAt !== null)).toHaveLength(1);
  await context.stop();
});

test("an episode with an action under way ends at another service in doubt, its next step is not taken there, and limits still count it", async () => {
  const rules = remediationRules([rebootOffline()], { maxActions: { amount: 1, perMs: 24 * HOUR_MS } });
  const context = await startQuietNetwork({ rules });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advanceUntil(() => context.postCount() === 1);
  await context.reload(other);
  await context.advance(HOUR_MS);
  expect(actionLines(context)).toEqual(["reboot: in_doubt"]);
  expect(episodeLines(context)[0]).toBe("withdrawn");
  expect(context.postCount()).toBe(1);
  expect(context.holdReasons(node!)).toEqual(["max_actions"]);
  await context.stop();
});

test("back at the first service nothing of the time before goes on: our quarantine there is not ours any more, and is left alone", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [{ ...steps.quarantine, durationMs: DAY_MS }] })]),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "person");
  await context.advance(10 * MINUTE_MS);
  expect(context.status(node!)).toBe("quarantined");
  context.controller().operatorCommands.hold("node_caffe390", "not to be touched");
  await context.restart(other);
  await context.advance(10 * MINUTE_MS);
  await context.restart();
  await context.advance(2 * HOUR_MS);
  expect(context.postCount()).toBe(1);
  expect(nodesActedOn(context)).toEqual([node]);
  expect(episodeLines(context)).toEqual(["withdrawn"]);
  // What a person ordered stays, here and there.
  expect(context.controller().view.explain("node_caffe390").holds).toHaveLength(1);
  await context.stop();
});

test("the size of one service's inventory is no measure of another's", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  expect(context.controller().view.status().largestWalkNodes).toBe(60);
  await context.restart(other);
  expect(context.controller().view.status().largestWalkNodes).toBe(0);
  await context.stop();
});
