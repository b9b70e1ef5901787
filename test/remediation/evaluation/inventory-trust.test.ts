import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { courses, deeds, told, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard, type WardRun } from "../../harness/quiet-network.ts";

const distrust = (ward: WardRun) =>
  ward
    .warden()
    .view.status()
    .trust.map(({ reason }) => reason);

const timerOf = (ward: WardRun, node: string) => ward.warden().view.explain(node).policies[0]!.timer;

/** Nodes that the fault leaves out: the same ones each time. */
async function vanishing(ward: WardRun, share: number): Promise<readonly string[]> {
  ward.strike({ kind: "vanished", share });
  await ward.pass(3 * MINUTE_MS);
  const listed = new Set(ward.daemon.snapshots.last!.fleet.ids);
  ward.strike(null);
  await ward.pass(2 * MINUTE_MS);
  return ward.nodes().filter((id) => !listed.has(id));
}

test("after the inventory had vanished pending timers start from zero, and a cool-down passes before anybody is touched", async () => {
  const ward = await startWard({
    rules: rulesOf([rebootOffline({ forMs: 10 * MINUTE_MS })], { stormCooldownMs: HOUR_MS }),
  });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(9 * MINUTE_MS);
  expect(timerOf(ward, node!)).toMatchObject({ state: "pending" });
  ward.strike({ kind: "vanished", share: 0.3 });
  await ward.pass(5 * MINUTE_MS);
  ward.strike(null);
  await ward.pass(2 * MINUTE_MS);
  expect(timerOf(ward, node!)!.trueMs).toBeLessThan(3 * MINUTE_MS);
  expect(distrust(ward)).toEqual(["sight_cooldown"]);
  await ward.pass(55 * MINUTE_MS);
  expect(timerOf(ward, node!)).toMatchObject({ state: "firing" });
  expect(ward.reasons(node!)).toEqual(["sight_cooldown"]);
  await ward.pass(15 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("the cool-down of broken sight outlives a restart, counted from the end of it", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.strike({ kind: "empty_list" });
  await ward.pass(40 * MINUTE_MS);
  ward.strike(null);
  await ward.pass(2 * MINUTE_MS);
  ward.kill();
  await ward.restart();
  ward.fell(node!);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["sight_cooldown"]);
  await ward.stop();
});

test("an episode whose step is under way while the inventory vanishes goes on: it is verified when sight returns", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!, "forced_reboot");
  await ward.pass(8 * MINUTE_MS);
  expect(courses(ward)).toEqual(["acting"]);
  ward.strike({ kind: "empty_list" });
  await ward.pass(40 * MINUTE_MS);
  expect(courses(ward)).toEqual(["acting"]);
  ward.strike(null);
  await ward.pass(5 * MINUTE_MS);
  // The first step is judged by what is seen now; the second waits for the cool-down.
  expect(deeds(ward)).toEqual(["reboot: ineffective"]);
  expect(courses(ward)).toEqual(["firing"]);
  await ward.pass(40 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  await ward.stop();
});

test("a last_seen that is frozen for the whole fleet makes nobody stale: our sight is broken, and timers start over", async () => {
  const ward = await startWard({
    rules: rulesOf([rebootOffline({ when: 'now - node.last_seen > duration("2m")', forMs: 5 * MINUTE_MS })]),
  });
  ward.strike({ kind: "stale_last_seen" });
  await ward.pass(HOUR_MS);
  expect(distrust(ward)).toEqual(["last_seen_stale"]);
  expect(ward.episodes()).toEqual([]);
  ward.strike(null);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.episodes()).toEqual([]);
  await ward.stop();
});

test("one walk that fails holds everybody until the next whole one, and resets nothing", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(4 * MINUTE_MS + 30 * SECOND_MS);
  ward.strike({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await ward.pass(70 * SECOND_MS);
  expect(distrust(ward)).toEqual(["inventory_incomplete"]);
  expect(ward.postCount()).toBe(0);
  ward.strike(null);
  await ward.pass(2 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("walks that fail for three intervals are blindness: what is pending starts from zero", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: 10 * MINUTE_MS })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(8 * MINUTE_MS);
  ward.strike({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await ward.pass(5 * MINUTE_MS);
  expect(timerOf(ward, node!)).toBeNull();
  expect(told(ward, "untrusted")).toHaveLength(1);
  await ward.stop();
});

test("too many records that can't be read hold everybody", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  ward.strike({ kind: "bad_records", share: 0.8 }, "GET /v1/nodes?");
  await ward.pass(30 * MINUTE_MS);
  expect(distrust(ward)).toContain("inventory_unknown");
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("nobody is touched before as many whole walks as warmup_walks says, though a node fired before the restart", async () => {
  const trust = {
    minInventory: 0.8,
    maxMissing: 0.02,
    maxUnknown: 0.1,
    maxFreshestLastSeenMs: 5 * MINUTE_MS,
    warmupWalks: 20,
  };
  const rules = rulesOf([rebootOffline()]);
  const ward = await startWard({ rules });
  const [node] = ward.nodes("us-east");
  ward.fell(node!, "forced_reboot");
  await ward.pass(7 * MINUTE_MS);
  await ward.restart({ rules: rulesOf([rebootOffline()], { trust }) });
  await ward.pass(15 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(ward.reasons(node!)).toEqual(["warming_up"]);
  await ward.pass(10 * MINUTE_MS);
  expect(ward.postCount()).toBe(2);
  await ward.stop();
});

test("a fleet that was made smaller on purpose is held until a person accepts its inventory", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const gone = new Set(await vanishing(ward, 0.3));
  const node = ward.nodes("us-east").find((id) => !gone.has(id))!;
  ward.strike({ kind: "vanished", share: 0.3 });
  await ward.pass(3 * MINUTE_MS);
  ward.fell(node);
  await ward.pass(HOUR_MS);
  expect(distrust(ward)).toEqual(["inventory_shrunk"]);
  expect(ward.warden().orders.acceptInventory()).toMatchObject({ ok: true });
  await ward.pass(20 * MINUTE_MS);
  expect(ward.reasons(node)).toEqual(["sight_cooldown"]);
  await ward.pass(30 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  // It is the measure from now on, also after a restart.
  await ward.restart();
  await ward.pass(5 * MINUTE_MS);
  expect(distrust(ward)).toEqual([]);
  await ward.stop();
});

test("a node that leaves the list in mid-episode is suspended, and goes on where it was once it is back", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], { canary: false }) });
  const gone = await vanishing(ward, 0.05);
  const [other] = ward.nodes("us-east").filter((id) => !gone.includes(id));
  ward.fell(gone[0]!, "forced_reboot");
  await ward.pass(8 * MINUTE_MS);
  ward.strike({ kind: "vanished", share: 0.05 });
  await ward.pass(4 * MINUTE_MS);
  expect(courses(ward)).toEqual(["suspended"]);
  ward.fell(other!);
  await ward.pass(25 * MINUTE_MS);
  expect(courses(ward)).toEqual(["suspended", "healed"]);
  ward.strike(null);
  await ward.pass(30 * MINUTE_MS);
  expect(courses(ward)).toEqual(["healed", "healed"]);
  expect(ward.actions().filter(({ node }) => node === gone[0])).toMatchObject([
    { outcome: "ineffective" },
    { outcome: "verified", request: { force: true } },
  ]);
  await ward.stop();
});

test("a node that vanishes in its probation is in its probation when it is back, and is not quarantined again", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.quarantine, steps.notify] })]) });
  const gone = await vanishing(ward, 0.05);
  ward.fell(gone[0]!, "person");
  await ward.pass(2 * HOUR_MS + 8 * MINUTE_MS);
  expect(courses(ward)).toEqual(["probation"]);
  ward.strike({ kind: "vanished", share: 0.05 });
  await ward.pass(4 * MINUTE_MS);
  expect(courses(ward)).toEqual(["suspended"]);
  ward.strike(null);
  await ward.pass(30 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  expect(courses(ward)).toEqual(["given_up"]);
  await ward.stop();
});

const forgetful = { episodes: 2, everyMs: HOUR_MS, forgetAfterMs: 2 * HOUR_MS };

test("a node that does not come back is forgotten after forget_after if nothing was sent to it", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ retry: forgetful, mode: "approve" })]) });
  const gone = await vanishing(ward, 0.05);
  ward.fell(gone[0]!, "person");
  await ward.pass(8 * MINUTE_MS);
  ward.strike({ kind: "vanished", share: 0.05 });
  await ward.pass(2 * HOUR_MS + 5 * MINUTE_MS);
  expect(courses(ward)).toEqual(["withdrawn"]);
  expect(told(ward, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  await ward.stop();
});

test("a kill while fleet data is not trusted keeps the whole cool-down, from when trust returns", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(2 * MINUTE_MS);
  ward.strike({ kind: "empty_list" });
  await ward.pass(2 * HOUR_MS);
  ward.kill();
  ward.strike(null);
  await ward.restart();
  await ward.pass(29 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(node!)).toEqual(["sight_cooldown"]);
  await ward.pass(3 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("the cool-down begins with the first complete walk after a restart, not with the restart", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.strike({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await ward.pass(20 * MINUTE_MS);
  ward.kill();
  await ward.restart();
  await ward.pass(2 * HOUR_MS);
  ward.strike(null);
  ward.fell(node!);
  await ward.pass(25 * MINUTE_MS);
  expect(ward.reasons(node!)).toEqual(["sight_cooldown"]);
  expect(ward.postCount()).toBe(0);
  await ward.pass(10 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("a service that answers nothing from the start on is a break of trust: a cool-down follows", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  ward.strike({ kind: "status", status: 503 }, "GET /v1/nodes?");
  await ward.restart();
  await ward.pass(2 * HOUR_MS);
  ward.strike(null);
  await ward.pass(20 * MINUTE_MS);
  expect(ward.postCount()).toBe(0);
  await ward.pass(15 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("a node that was acted on and does not come back stays lost after forget_after, and begins anew once it is back", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ retry: forgetful })]) });
  const gone = await vanishing(ward, 0.05);
  ward.fell(gone[0]!, "person");
  await ward.pass(8 * MINUTE_MS);
  ward.strike({ kind: "vanished", share: 0.05 });
  await ward.pass(2 * HOUR_MS + 5 * MINUTE_MS);
  expect(courses(ward)).toEqual(["suspended"]);
  expect(ward.actions()).toMatchObject([{ state: "ended", outcome: "ineffective" }]);
  ward.strike(null);
  await ward.pass(3 * MINUTE_MS);
  expect(courses(ward)[0]).toBe("withdrawn");
  await ward.stop();
});
