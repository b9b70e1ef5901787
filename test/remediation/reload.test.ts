import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { actionLines, episodeLines, nodesActedOn, notificationLines } from "../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../harness/policies.ts";
import { type QuietNetwork, startQuietNetwork } from "../harness/quiet-network.ts";
import { START_MS } from "../harness/virtual-daemon.ts";

const hold = { maxActions: { amount: 0, perMs: HOUR_MS } };
const timerOf = (context: QuietNetwork, node: string) => context.controller().view.explain(node).policies[0]!.timer;

test("a policy that was not changed keeps its timers and its episodes when others are", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], hold) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  const before = timerOf(context, node!)!;
  const other = rebootOffline({ name: "other", when: 'node.status == "maintenance"' });
  await context.restart({ rules: remediationRules([rebootOffline(), other], hold) });
  await context.advance(5 * MINUTE_MS);
  expect(timerOf(context, node!)).toMatchObject({ state: "firing", since: before.since });
  expect(context.episodes()).toMatchObject([{ id: "ep-1", state: "firing" }]);
  await context.stop();
});

test("a raised for takes a firing timer back to pending, and withdraws an episode in which nothing was done, and a notification is sent", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], hold) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["firing"]);
  await context.restart({ rules: remediationRules([rebootOffline({ forMs: 30 * MINUTE_MS })]) });
  await context.advance(5 * MINUTE_MS);
  expect(timerOf(context, node!)).toMatchObject({ state: "pending" });
  expect(episodeLines(context)).toEqual(["withdrawn"]);
  expect(notificationLines(context, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  expect(context.postCount()).toBe(0);
  await context.advance(25 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("a raised for takes nothing back from an episode in which something was done", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!, "forced_reboot");
  await context.advance(8 * MINUTE_MS);
  await context.restart({ rules: remediationRules([rebootOffline({ forMs: 12 * HOUR_MS })]) });
  await context.advance(30 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(episodeLines(context)).toEqual(["healed"]);
  await context.stop();
});

test("a policy that is about something else starts over: its timers start from zero, its episodes are withdrawn", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], hold) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  await context.restart({ rules: remediationRules([rebootOffline({ when: 'node.status != "online"' })]) });
  await context.advance(4 * MINUTE_MS);
  expect(timerOf(context, node!)).toMatchObject({ state: "pending" });
  expect(episodeLines(context)).toEqual(["withdrawn"]);
  expect(context.postCount()).toBe(0);
  await context.advance(20 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["withdrawn", "healed"]);
  await context.stop();
});

test("an action that was under way when its policy came to be about something else is judged by what it was sent for", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(6 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["acting"]);
  await context.restart({ rules: remediationRules([rebootOffline({ when: 'node.status != "online"' })]), downMs: 0 });
  await context.advance(10 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: verified"]);
  expect(episodeLines(context)).toEqual(["withdrawn"]);
  await context.stop();
});

test("an action that was under way when its step left the policy is verified all the same, and holds no node forever", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ steps: [steps.disconnect, steps.reboot] })]),
  });
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(10 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["disconnect: ineffective", "reboot: null"]);
  await context.restart({ rules: remediationRules([rebootOffline({ steps: [steps.notify] })]) });
  await context.advance(30 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["disconnect: ineffective", "reboot: ineffective"]);
  expect(episodeLines(context)).toEqual(["given_up"]);
  expect(context.controller().view.status().inFlight).toBe(0);
  await context.stop();
});

test("when a policy goes what it has under way is judged, and its episode is withdrawn", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!, "forced_reboot");
  await context.advance(6 * MINUTE_MS);
  await context.restart({ rules: remediationRules([]) });
  await context.advance(5 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["acting"]);
  await context.advance(10 * MINUTE_MS);
  expect(actionLines(context)).toEqual(["reboot: ineffective"]);
  expect(episodeLines(context)).toEqual(["withdrawn"]);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

const hide = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify] });

test("when a policy goes while its quarantine lasts the quarantine is watched to its end, and counts until then", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([]) });
  const [node, other] = context.nodes("us-east");
  // An online node: its quarantine takes it away from the fleet.
  const rule = { ...hide, match: `node.id == "${node}"`, when: 'node.status == "online"' };
  await context.restart({ rules: remediationRules([rule]) });
  await context.advance(12 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  await context.restart({ rules: remediationRules([rebootOffline({ name: "other" })]) });
  context.failedNodes(other!);
  await context.advance(15 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["quarantined", "firing"]);
  expect(context.holdReasons(other!)).toEqual(["disrupted_domain"]);
  await context.advance(20 * MINUTE_MS);
  expect(episodeLines(context)[0]).toBe("withdrawn");
  expect(nodesActedOn(context)).toEqual([node, other]);
  await context.stop();
});

test("from dry_run to enforce: what was only written down is withdrawn, and the first real episode begins", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ mode: "dry_run" })]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(12 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([{ shadow: true, state: "acting" }]);
  await context.restart({ rules: remediationRules([rebootOffline()]) });
  await context.advance(20 * MINUTE_MS);
  expect(context.episodes()).toMatchObject([
    { shadow: true, state: "withdrawn" },
    { shadow: false, state: "healed" },
  ]);
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("from enforce to dry_run in mid-episode: the step under way is judged, and nothing more is sent", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  context.failedNodes(context.nodes("us-east")[0]!, "person");
  await context.advance(8 * MINUTE_MS);
  await context.restart({ rules: remediationRules([rebootOffline({ mode: "dry_run" })]) });
  await context.advance(HOUR_MS);
  const real = context.episodes().filter(({ shadow: dryRun }) => !dryRun);
  expect(real).toMatchObject([{ state: "withdrawn" }]);
  expect(context.actions()[0]).toMatchObject({ shadow: false, outcome: "ineffective" });
  expect(context.postCount()).toBe(1);
  await context.stop();
});

test("from enforce to dry_run while a quarantine of ours lasts: it is watched to its end, and an operator may end it", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([{ ...hide, when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"' }]),
  });
  await context.advance(10 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["quarantined"]);
  await context.restart({
    rules: remediationRules([
      { ...hide, when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"', mode: "dry_run" },
    ]),
  });
  await context.advance(5 * MINUTE_MS);
  context.interventions.liftQuarantine("node_caffe390");
  await context.advance(5 * MINUTE_MS);
  expect(context.episodes().filter(({ shadow: dryRun }) => !dryRun)).toMatchObject([{ state: "freed" }]);
  expect(context.controller().view.explain("node_caffe390").holds).toMatchObject([{ kind: "vetoed" }]);
  await context.stop();
});

test("a reload in the same process loses no time that a timer has counted", async () => {
  const rule = rebootOffline({ forMs: 15 * MINUTE_MS });
  const context = await startQuietNetwork({ rules: remediationRules([rule]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  await context.advance(10 * MINUTE_MS);
  const before = timerOf(context, node!)!;
  await context.reload({
    rules: remediationRules([rule, rebootOffline({ name: "other", when: 'node.status == "maintenance"' })]),
  });
  await context.advance(10 * SECOND_MS);
  expect(timerOf(context, node!)!.trueMs).toBeGreaterThan(before.trueMs + 30 * SECOND_MS);
  await context.advance(6 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
});

test("one and the same record is one observation, also before and after a reload: it lifts no quarantine", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([hide]) });
  const [node] = context.nodes("us-east");
  context.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: START_MS + 20 * MINUTE_MS,
  });
  await context.advance(20 * MINUTE_MS);
  context.interventions.liftQuarantine(node!);
  await context.advanceUntil(() => context.episodes()[0]!.quarantine?.seenOnline === 1);
  await context.reload({ rules: remediationRules([hide], { maxInFlight: 2 }) });
  await context.advance(10);
  expect(context.episodes()).toMatchObject([{ state: "quarantined", quarantine: { seenOnline: 1 } }]);
  await context.advance(MINUTE_MS);
  expect(episodeLines(context)).toEqual(["freed"]);
  await context.stop();
});

test("alarms and episodes that go on over a reload keep their notification keys", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()], hold) });
  context.failedNodes(context.nodes("us-east")[0]!);
  context.setFault({ kind: "region_dark", region: "ap-southeast" });
  await context.advance(15 * MINUTE_MS);
  await context.reload({ rules: remediationRules([rebootOffline()], { ...hold, maxInFlight: 2 }) });
  await context.advance(15 * MINUTE_MS);
  expect(new Set(notificationLines(context, "incident").map(({ key, endsAt }) => `${key} ${endsAt}`)).size).toBe(1);
  expect(notificationLines(context, "episode")).toHaveLength(1);
  await context.stop();
});
