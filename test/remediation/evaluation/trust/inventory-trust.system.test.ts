import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import { NODE_STATUSES } from "../../../../src/model/node.ts";
import { type QuietNetwork, startQuietNetwork, startWithFailedNode } from "../../../harness/daemon/quiet-network.ts";
import { defaultSafety, rebootOffline, remediationConfig, steps } from "../../../harness/policies.ts";
import {
  actionLines,
  episodeStates,
  nodesActedOn,
  notificationsOf,
  timerOf,
  trustReasons,
} from "../../../harness/remediation-results.ts";

/** Nodes that the fault hides: the same ones each time. */
async function hideNodes(network: QuietNetwork, missing: number): Promise<readonly string[]> {
  network.setFault({ kind: "vanished", missing });
  await network.advance(3 * MINUTE_MS);
  const listed = new Set(network.daemon.snapshots.last!.fleet.ids);
  network.setFault(null);
  await network.advance(2 * MINUTE_MS);
  return network.nodes().filter((id) => !listed.has(id));
}

test("after the inventory vanished, pending timers start from zero, and a cooldown passes before any action", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ forMs: 10 * MINUTE_MS })], { stormCooldownMs: HOUR_MS }),
  });
  await network.advance(9 * MINUTE_MS);
  expect(timerOf(network, node)).toMatchObject({ state: "pending" });
  network.setFault({ kind: "vanished", missing: 0.3 });
  await network.advance(5 * MINUTE_MS);
  network.setFault(null);
  await network.advance(2 * MINUTE_MS);
  expect(timerOf(network, node)!.trueMs).toBeLessThan(3 * MINUTE_MS);
  expect(trustReasons(network)).toEqual(["sight_cooldown"]);
  await network.advance(55 * MINUTE_MS);
  expect(timerOf(network, node)).toMatchObject({ state: "firing" });
  expect(network.holdReasons(node)).toEqual(["sight_cooldown"]);
  await network.advance(15 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("the cooldown after untrusted data survives a restart", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes("us-east");
  network.setFault({ kind: "empty_list" });
  await network.advance(40 * MINUTE_MS);
  network.setFault(null);
  await network.advance(2 * MINUTE_MS);
  network.kill();
  await network.restart();
  network.failNode(node!);
  await network.advance(20 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["sight_cooldown"]);
});

test("a step that is under way while the inventory vanishes is verified when trust returns", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    remedy: "forced_reboot",
  });
  await network.advance(8 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  network.setFault({ kind: "empty_list" });
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  network.setFault(null);
  await network.advance(5 * MINUTE_MS);
  // The first step is verified with current data; the second waits for the cooldown.
  expect(actionLines(network)).toEqual(["reboot: ineffective"]);
  expect(episodeStates(network)).toEqual(["firing"]);
  await network.advance(40 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
});

test("a last_seen that is frozen for the whole fleet makes fleet data untrusted, and timers start over", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ when: 'now - node.last_seen > duration("2m")', forMs: 5 * MINUTE_MS })]),
  });
  network.setFault({ kind: "stale_last_seen" });
  await network.advance(30 * MINUTE_MS);
  expect(trustReasons(network)).toEqual(["last_seen_stale"]);
  expect(network.episodes()).toEqual([]);
  network.setFault(null);
  await network.advance(40 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.episodes()).toEqual([]);
});

test("a failed walk holds every node until the next complete one, and resets nothing", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  await network.advance(4 * MINUTE_MS + 30 * SECOND_MS);
  network.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await network.advance(70 * SECOND_MS);
  expect(trustReasons(network)).toEqual(["inventory_incomplete"]);
  expect(network.postCount()).toBe(0);
  network.setFault(null);
  await network.advance(2 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("after walks have failed for three intervals, pending timers start from zero", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ forMs: 10 * MINUTE_MS })]),
  });
  await network.advance(8 * MINUTE_MS);
  network.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await network.advance(5 * MINUTE_MS);
  expect(timerOf(network, node)).toBeNull();
  expect(notificationsOf(network, "untrusted")).toHaveLength(1);
});

test("too many unreadable records hold every node", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "bad_records", spoiled: 0.8 }, "GET /v1/nodes?");
  await network.advance(30 * MINUTE_MS);
  expect(trustReasons(network)).toContain("inventory_unknown");
  expect(network.postCount()).toBe(0);
});

test("after a restart no node is acted on before warmup_walks complete walks, even if its timer fired before", async () => {
  const trust = { ...defaultSafety.trust, warmupWalks: 20 };
  const config = remediationConfig([rebootOffline()]);
  const { network, node } = await startWithFailedNode({ config, remedy: "forced_reboot" });
  await network.advance(7 * MINUTE_MS);
  await network.restart({ config: remediationConfig([rebootOffline()], { trust }) });
  await network.advance(15 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(network.holdReasons(node)).toEqual(["warming_up"]);
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBe(2);
});

test("a fleet that was reduced on purpose is held until an operator accepts the inventory", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const hidden = new Set(await hideNodes(network, 0.3));
  const node = network.nodes("us-east").find((id) => !hidden.has(id))!;
  network.setFault({ kind: "vanished", missing: 0.3 });
  await network.advance(3 * MINUTE_MS);
  network.failNode(node);
  await network.advance(30 * MINUTE_MS);
  expect(trustReasons(network).toSorted()).toEqual(["inventory_incomplete", "inventory_shrunk"]);
  expect(await network.commands().acceptInventory()).toMatchObject({ ok: true });
  await network.advance(20 * MINUTE_MS);
  expect(network.holdReasons(node)).toEqual(["sight_cooldown"]);
  await network.advance(30 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
  // It is the baseline from now on, also after a restart.
  await network.restart();
  await network.advance(5 * MINUTE_MS);
  expect(trustReasons(network)).toEqual([]);
});

test("the episode of a node that leaves the list is suspended, and continues once the node is back", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], { canary: false }) });
  const hidden = await hideNodes(network, 0.05);
  const [other] = network.nodes("us-east").filter((id) => !hidden.includes(id));
  network.failNode(hidden[0]!, "forced_reboot");
  await network.advance(8 * MINUTE_MS);
  network.setFault({ kind: "vanished", missing: 0.05 });
  await network.advance(4 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["suspended"]);
  network.failNode(other!);
  await network.advance(25 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["suspended", "healed"]);
  network.setFault(null);
  await network.advance(30 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["healed", "healed"]);
  expect(network.actions().filter(({ node }) => node === hidden[0])).toMatchObject([
    { outcome: "ineffective" },
    { outcome: "verified", request: { force: true } },
  ]);
});

test("a node that leaves the list during its probation is in probation when it is back, and is not quarantined again", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([
      rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify] }),
    ]),
  });
  const hidden = await hideNodes(network, 0.05);
  network.failNode(hidden[0]!, "operator");
  await network.advance(38 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["probation"]);
  network.setFault({ kind: "vanished", missing: 0.05 });
  await network.advance(4 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["suspended"]);
  network.setFault(null);
  await network.advance(30 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(episodeStates(network)).toEqual(["given_up"]);
});

const forgetful = { episodes: 2, everyMs: 30 * MINUTE_MS, forgetAfterMs: HOUR_MS };

test("the episode of a node that does not come back ends after forget_after if nothing was sent", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ retry: forgetful, mode: "approve" })]),
  });
  const hidden = await hideNodes(network, 0.05);
  network.failNode(hidden[0]!, "operator");
  await network.advance(8 * MINUTE_MS);
  network.setFault({ kind: "vanished", missing: 0.05 });
  await network.advance(65 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  expect(notificationsOf(network, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
});

test("after a kill while fleet data is not trusted, the whole cooldown follows once trust returns", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  await network.advance(2 * MINUTE_MS);
  network.setFault({ kind: "empty_list" });
  await network.advance(20 * MINUTE_MS);
  network.kill();
  network.setFault(null);
  await network.restart();
  await network.advance(29 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node)).toEqual(["sight_cooldown"]);
  await network.advance(3 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("the cooldown begins with the first complete walk after a restart, not with the restart", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes("us-east");
  network.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await network.advance(20 * MINUTE_MS);
  network.kill();
  await network.restart();
  await network.advance(40 * MINUTE_MS);
  network.setFault(null);
  network.failNode(node!);
  await network.advance(25 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["sight_cooldown"]);
  expect(network.postCount()).toBe(0);
  await network.advance(10 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("a service that does not answer from the start makes fleet data untrusted, and a cooldown follows", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  network.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await network.restart();
  await network.advance(30 * MINUTE_MS);
  expect(notificationsOf(network, "untrusted")).toMatchObject([{ endsAt: null }]);
  expect(trustReasons(network)).toEqual(["inventory_incomplete", "warming_up"]);
  network.setFault(null);
  await network.advance(20 * MINUTE_MS);
  expect(notificationsOf(network, "untrusted")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  expect(network.postCount()).toBe(0);
  await network.advance(15 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("a node that left the list after an action stays lost after forget_after, and starts over once it is back", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline({ retry: forgetful })]) });
  const hidden = await hideNodes(network, 0.05);
  network.failNode(hidden[0]!, "operator");
  await network.advance(8 * MINUTE_MS);
  network.setFault({ kind: "vanished", missing: 0.05 });
  await network.advance(65 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["suspended"]);
  expect(network.actions()).toMatchObject([{ state: "ended", outcome: "ineffective" }]);
  network.setFault(null);
  await network.advance(3 * MINUTE_MS);
  expect(episodeStates(network)[0]).toBe("withdrawn");
});

test("records of unknown status are counted in every part of a large fleet", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline()]),
    scenario: { nodes: 9_000 },
  });
  network.setFault({ kind: "bad_records", spoiled: 0.5 });
  await network.advance(3 * MINUTE_MS);
  const { ids, lastWalk, status } = network.daemon.snapshots.last!.fleet;
  const unknown = ids.filter((id, slot) => id !== "" && NODE_STATUSES[status[slot]!] === "unknown").length;
  expect(unknown).toBeGreaterThan(100);
  const { trust } = network.controller().view.status();
  const detail = expect.stringMatching(new RegExp(`^${unknown + lastWalk!.rejected} of `));
  expect(trust).toContainEqual({ reason: "inventory_unknown", detail });
});
