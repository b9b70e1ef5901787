import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { actionLines, episodeLines, nodesActedOn, notificationLines } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../../harness/quiet-network.ts";

const distrust = (context: QuietNetwork) =>
  context
    .controller()
    .view.status()
    .trust.map(({ reason }) => reason);

const timerOf = (context: QuietNetwork, node: string) => context.controller().view.explain(node).policies[0]!.timer;

/** Nodes that the fault leaves out: the same ones each time. */
async function vanishing(context: QuietNetwork, share: number): Promise<readonly string[]> {
  context.setFault({ kind: "vanished", share });
  await context.advance(3 * MINUTE_MS);
  const listed = new Set(context.daemon.snapshots.last!.fleet.ids);
  context.setFault(null);
  await context.advance(2 * MINUTE_MS);
  return context.nodes().filter((id) => !listed.has(id));
}

test("after the inventory had vanished pending timers start from zero, and a cool-down passes before any node is acted on", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ forMs: 10 * MINUTE_MS })], { stormCooldownMs: HOUR_MS }),
  });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(9 * MINUTE_MS);
  expect(timerOf(context, node!)).toMatchObject({ state: "pending" });
  context.setFault({ kind: "vanished", share: 0.3 });
  await context.advance(5 * MINUTE_MS);
  context.setFault(null);
  await context.advance(2 * MINUTE_MS);
  expect(timerOf(context, node!)!.trueMs).toBeLessThan(3 * MINUTE_MS);
  expect(distrust(context)).toEqual(["sight_cooldown"]);
  await context.advance(55 * MINUTE_MS);
  expect(timerOf(context, node!)).toMatchObject({ state: "firing" });
  expect(context.holdReasons(node!)).toEqual(["sight_cooldown"]);
  await context.advance(15 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("the cool-down of broken sight outlives a restart, counted from the end of it", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.setFault({ kind: "empty_list" });
  await context.advance(40 * MINUTE_MS);
  context.setFault(null);
  await context.advance(2 * MINUTE_MS);
  context.kill();
  await context.restart();
  context.failedNodes(node!);
  await context.advance(20 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["sight_cooldown"]);
  await context.stop();
});

test("an episode whose step is under way while the inventory vanishes goes on: it is verified when sight returns", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!, "forced_reboot");
  await context.advance(8 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["acting"]);
  context.setFault({ kind: "empty_list" });
  await context.advance(40 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["acting"]);
  context.setFault(null);
  await context.advance(5 * MINUTE_MS);
  // The first step is judged by what is seen now; the second waits for the cool-down.
  expect(actionLines(context)).toEqual(["reboot: ineffective"]);
  expect(episodeLines(context)).toEqual(["firing"]);
  await context.advance(40 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  await context.stop();
});

test("a last_seen that is frozen for the whole fleet makes no single node stale: fleet data is not trusted, and timers start over", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ when: 'now - node.last_seen > duration("2m")', forMs: 5 * MINUTE_MS })]),
  });
  context.setFault({ kind: "stale_last_seen" });
  await context.advance(HOUR_MS);
  expect(distrust(context)).toEqual(["last_seen_stale"]);
  expect(context.episodes()).toEqual([]);
  context.setFault(null);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(context.episodes()).toEqual([]);
  await context.stop();
});

test("one walk that fails holds every node until the next whole one, and resets nothing", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(4 * MINUTE_MS + 30 * SECOND_MS);
  context.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await context.advance(70 * SECOND_MS);
  expect(distrust(context)).toEqual(["inventory_incomplete"]);
  expect(context.postCount()).toBe(0);
  context.setFault(null);
  await context.advance(2 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("walks that fail for three intervals are blindness: what is pending starts from zero", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ forMs: 10 * MINUTE_MS })]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(8 * MINUTE_MS);
  context.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await context.advance(5 * MINUTE_MS);
  expect(timerOf(context, node!)).toBeNull();
  expect(notificationLines(context, "untrusted")).toHaveLength(1);
  await context.stop();
});

test("too many records that can't be read hold everybody", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  context.setFault({ kind: "bad_records", share: 0.8 }, "GET /v1/nodes?");
  await context.advance(30 * MINUTE_MS);
  expect(distrust(context)).toContain("inventory_unknown");
  expect(context.postCount()).toBe(0);
  await context.stop();
});

test("no node is acted on before as many whole walks as warmup_walks says, though a node fired before the restart", async () => {
  const trust = {
    minInventory: 0.8,
    maxMissing: 0.02,
    maxUnknown: 0.1,
    maxFreshestLastSeenMs: 5 * MINUTE_MS,
    warmupWalks: 20,
  };
  const rules = remediationRules([rebootOffline()]);
  const context = await startQuietNetwork({ rules });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!, "forced_reboot");
  await context.advance(7 * MINUTE_MS);
  await context.restart({ rules: remediationRules([rebootOffline()], { trust }) });
  await context.advance(15 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(context.holdReasons(node!)).toEqual(["warming_up"]);
  await context.advance(10 * MINUTE_MS);
  expect(context.postCount()).toBe(2);
  await context.stop();
});

test("a fleet that was made smaller on purpose is held until an operator accepts its inventory", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const gone = new Set(await vanishing(context, 0.3));
  const node = context.nodes("us-east").find((id) => !gone.has(id))!;
  context.setFault({ kind: "vanished", share: 0.3 });
  await context.advance(3 * MINUTE_MS);
  context.failedNodes(node);
  await context.advance(HOUR_MS);
  expect(distrust(context)).toEqual(["inventory_shrunk"]);
  expect(context.controller().operatorCommands.acceptInventory()).toMatchObject({ ok: true });
  await context.advance(20 * MINUTE_MS);
  expect(context.holdReasons(node)).toEqual(["sight_cooldown"]);
  await context.advance(30 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  // It is the measure from now on, also after a restart.
  await context.restart();
  await context.advance(5 * MINUTE_MS);
  expect(distrust(context)).toEqual([]);
  await context.stop();
});

test("a node that leaves the list in mid-episode is suspended, and goes on where it was once it is back", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], { canary: false }) });
  const gone = await vanishing(context, 0.05);
  const [other] = context.nodes("us-east").filter((id) => !gone.includes(id));
  context.failedNodes(gone[0]!, "forced_reboot");
  await context.advance(8 * MINUTE_MS);
  context.setFault({ kind: "vanished", share: 0.05 });
  await context.advance(4 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["suspended"]);
  context.failedNodes(other!);
  await context.advance(25 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["suspended", "healed"]);
  context.setFault(null);
  await context.advance(30 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["healed", "healed"]);
  expect(context.actions().filter(({ node }) => node === gone[0])).toMatchObject([
    { outcome: "ineffective" },
    { outcome: "verified", request: { force: true } },
  ]);
  await context.stop();
});

test("a node that vanishes in its probation is in its probation when it is back, and is not quarantined again", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [steps.quarantine, steps.notify] })]),
  });
  const gone = await vanishing(context, 0.05);
  context.failedNodes(gone[0]!, "person");
  await context.advance(2 * HOUR_MS + 8 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["probation"]);
  context.setFault({ kind: "vanished", share: 0.05 });
  await context.advance(4 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["suspended"]);
  context.setFault(null);
  await context.advance(30 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  expect(episodeLines(context)).toEqual(["given_up"]);
  await context.stop();
});

const forgetful = { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 2 * HOUR_MS };

test("a node that does not come back is forgotten after forget_after if nothing was sent to it", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ retry: forgetful, mode: "approve" })]),
  });
  const gone = await vanishing(context, 0.05);
  context.failedNodes(gone[0]!, "person");
  await context.advance(8 * MINUTE_MS);
  context.setFault({ kind: "vanished", share: 0.05 });
  await context.advance(2 * HOUR_MS + 5 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["withdrawn"]);
  expect(notificationLines(context, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await context.stop();
});

test("a kill while fleet data is not trusted keeps the whole cool-down, from when trust returns", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(2 * MINUTE_MS);
  context.setFault({ kind: "empty_list" });
  await context.advance(2 * HOUR_MS);
  context.kill();
  context.setFault(null);
  await context.restart();
  await context.advance(29 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(node!)).toEqual(["sight_cooldown"]);
  await context.advance(3 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("the cool-down begins with the first complete walk after a restart, not with the restart", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await context.advance(20 * MINUTE_MS);
  context.kill();
  await context.restart();
  await context.advance(2 * HOUR_MS);
  context.setFault(null);
  context.failedNodes(node!);
  await context.advance(25 * MINUTE_MS);
  expect(context.holdReasons(node!)).toEqual(["sight_cooldown"]);
  expect(context.postCount()).toBe(0);
  await context.advance(10 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("a service that answers nothing from the start on is a break of trust: a cool-down follows", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  context.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await context.restart();
  await context.advance(2 * HOUR_MS);
  context.setFault(null);
  await context.advance(20 * MINUTE_MS);
  expect(context.postCount()).toBe(0);
  await context.advance(15 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("a node that was acted on and does not come back stays lost after forget_after, and starts over once it is back", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ retry: forgetful })]) });
  const gone = await vanishing(context, 0.05);
  context.failedNodes(gone[0]!, "person");
  await context.advance(8 * MINUTE_MS);
  context.setFault({ kind: "vanished", share: 0.05 });
  await context.advance(2 * HOUR_MS + 5 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["suspended"]);
  expect(context.actions()).toMatchObject([{ state: "ended", outcome: "ineffective" }]);
  context.setFault(null);
  await context.advance(3 * MINUTE_MS);
  expect(episodeLines(context)[0]).toBe("withdrawn");
  await context.stop();
});
