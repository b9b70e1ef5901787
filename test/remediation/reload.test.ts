import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { rebootOffline, remediationRules, steps } from "../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../harness/quiet-network.ts";
import { actionLines, episodeStates, nodesActedOn, notificationsOf } from "../harness/remediation-results.ts";
import { START_MS } from "../harness/virtual-daemon.ts";

const hold = { maxActions: { amount: 0, perMs: HOUR_MS } };
const timerOf = (network: QuietNetwork, node: string) => network.controller().view.explain(node).policies[0]!.timer;

test("a policy that was not changed keeps its timers and its episodes when others are", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()], hold) });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  const before = timerOf(network, node!)!;
  const other = rebootOffline({ name: "other", when: 'node.status == "maintenance"' });
  await network.restart({ rules: remediationRules([rebootOffline(), other], hold) });
  await network.advance(5 * MINUTE_MS);
  expect(timerOf(network, node!)).toMatchObject({ state: "firing", since: before.since });
  expect(network.episodes()).toMatchObject([{ id: "ep-1", state: "firing" }]);
  await network.stop();
});

test("a raised for takes a firing timer back to pending, and withdraws an episode in which nothing was done, and a notification is sent", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()], hold) });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["firing"]);
  await network.restart({ rules: remediationRules([rebootOffline({ forMs: 30 * MINUTE_MS })]) });
  await network.advance(5 * MINUTE_MS);
  expect(timerOf(network, node!)).toMatchObject({ state: "pending" });
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  expect(notificationsOf(network, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  expect(network.postCount()).toBe(0);
  await network.advance(25 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
  await network.stop();
});

test("a raised for takes nothing back from an episode in which something was done", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!, "forced_reboot");
  await network.advance(8 * MINUTE_MS);
  await network.restart({ rules: remediationRules([rebootOffline({ forMs: 12 * HOUR_MS })]) });
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(episodeStates(network)).toEqual(["healed"]);
  await network.stop();
});

test("a policy that is about something else starts over: its timers start from zero, its episodes are withdrawn", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()], hold) });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  await network.restart({ rules: remediationRules([rebootOffline({ when: 'node.status != "online"' })]) });
  await network.advance(4 * MINUTE_MS);
  expect(timerOf(network, node!)).toMatchObject({ state: "pending" });
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  expect(network.postCount()).toBe(0);
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["withdrawn", "healed"]);
  await network.stop();
});

test("an action that was under way when its policy came to be about something else is judged by what it was sent for", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!);
  await network.advance(6 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  await network.restart({ rules: remediationRules([rebootOffline({ when: 'node.status != "online"' })]), downMs: 0 });
  await network.advance(10 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: verified"]);
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  await network.stop();
});

test("an action that was under way when its step left the policy is verified all the same, and holds no node forever", async () => {
  const network = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [steps.disconnect, steps.reboot] })]),
  });
  network.failNode(network.nodes("us-east")[0]!, "person");
  await network.advance(10 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["disconnect: ineffective", "reboot: null"]);
  await network.restart({ rules: remediationRules([rebootOffline({ steps: [steps.notify] })]) });
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["disconnect: ineffective", "reboot: ineffective"]);
  expect(episodeStates(network)).toEqual(["given_up"]);
  expect(network.controller().view.status().inFlight).toBe(0);
  await network.stop();
});

test("when a policy goes what it has under way is judged, and its episode is withdrawn", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!, "forced_reboot");
  await network.advance(6 * MINUTE_MS);
  await network.restart({ rules: remediationRules([]) });
  await network.advance(5 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  await network.advance(10 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective"]);
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  expect(network.postCount()).toBe(1);
  await network.stop();
});

const hide = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify] });

test("when a policy goes while its quarantine lasts the quarantine is watched to its end, and counts until then", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([]) });
  const [node, other] = network.nodes("us-east");
  // An online node: its quarantine takes it away from the fleet.
  const rule = { ...hide, match: `node.id == "${node}"`, when: 'node.status == "online"' };
  await network.restart({ rules: remediationRules([rule]) });
  await network.advance(12 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  await network.restart({ rules: remediationRules([rebootOffline({ name: "other" })]) });
  network.failNode(other!);
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined", "firing"]);
  expect(network.holdReasons(other!)).toEqual(["disrupted_domain"]);
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)[0]).toBe("withdrawn");
  expect(nodesActedOn(network)).toEqual([node, other]);
  await network.stop();
});

test("from dry_run to enforce: what was only written down is withdrawn, and the first real episode begins", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline({ mode: "dry_run" })]) });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(12 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ shadow: true, state: "acting" }]);
  await network.restart({ rules: remediationRules([rebootOffline()]) });
  await network.advance(20 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([
    { shadow: true, state: "withdrawn" },
    { shadow: false, state: "healed" },
  ]);
  expect(network.postCount()).toBe(1);
  await network.stop();
});

test("from enforce to dry_run in mid-episode: the step under way is judged, and nothing more is sent", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  network.failNode(network.nodes("us-east")[0]!, "person");
  await network.advance(8 * MINUTE_MS);
  await network.restart({ rules: remediationRules([rebootOffline({ mode: "dry_run" })]) });
  await network.advance(HOUR_MS);
  const real = network.episodes().filter(({ shadow: dryRun }) => !dryRun);
  expect(real).toMatchObject([{ state: "withdrawn" }]);
  expect(network.actions()[0]).toMatchObject({ shadow: false, outcome: "ineffective" });
  expect(network.postCount()).toBe(1);
  await network.stop();
});

test("from enforce to dry_run while a quarantine of ours lasts: it is watched to its end, and an operator may end it", async () => {
  const network = await startQuietNetwork({
    rules: remediationRules([{ ...hide, when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"' }]),
  });
  await network.advance(10 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  await network.restart({
    rules: remediationRules([
      { ...hide, when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"', mode: "dry_run" },
    ]),
  });
  await network.advance(5 * MINUTE_MS);
  network.interventions.liftQuarantine("node_caffe390");
  await network.advance(5 * MINUTE_MS);
  expect(network.episodes().filter(({ shadow: dryRun }) => !dryRun)).toMatchObject([{ state: "freed" }]);
  expect(network.controller().view.explain("node_caffe390").holds).toMatchObject([{ kind: "vetoed" }]);
  await network.stop();
});

test("a reload in the same process loses no time that a timer has counted", async () => {
  const rule = rebootOffline({ forMs: 15 * MINUTE_MS });
  const network = await startQuietNetwork({ rules: remediationRules([rule]) });
  const [node] = network.nodes("us-east");
  network.failNode(node!);
  await network.advance(10 * MINUTE_MS);
  const before = timerOf(network, node!)!;
  await network.reload({
    rules: remediationRules([rule, rebootOffline({ name: "other", when: 'node.status == "maintenance"' })]),
  });
  await network.advance(10 * SECOND_MS);
  expect(timerOf(network, node!)!.trueMs).toBeGreaterThan(before.trueMs + 30 * SECOND_MS);
  await network.advance(6 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
  await network.stop();
});

test("one and the same record is one observation, also before and after a reload: it lifts no quarantine", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([hide]) });
  const [node] = network.nodes("us-east");
  network.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: START_MS + 20 * MINUTE_MS,
  });
  await network.advance(20 * MINUTE_MS);
  network.interventions.liftQuarantine(node!);
  await network.advanceUntil(() => network.episodes()[0]!.quarantine?.seenOnline === 1);
  await network.reload({ rules: remediationRules([hide], { maxInFlight: 2 }) });
  await network.advance(10);
  expect(network.episodes()).toMatchObject([{ state: "quarantined", quarantine: { seenOnline: 1 } }]);
  await network.advance(MINUTE_MS);
  expect(episodeStates(network)).toEqual(["freed"]);
  await network.stop();
});

test("alarms and episodes that go on over a reload keep their notification keys", async () => {
  const network = await startQuietNetwork({ rules: remediationRules([rebootOffline()], hold) });
  network.failNode(network.nodes("us-east")[0]!);
  network.setFault({ kind: "region_dark", region: "ap-southeast" });
  await network.advance(15 * MINUTE_MS);
  await network.reload({ rules: remediationRules([rebootOffline()], { ...hold, maxInFlight: 2 }) });
  await network.advance(15 * MINUTE_MS);
  expect(new Set(notificationsOf(network, "incident").map(({ key, endsAt }) => `${key} ${endsAt}`)).size).toBe(1);
  expect(notificationsOf(network, "episode")).toHaveLength(1);
  await network.stop();
});
