import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { START_MS } from "../harness/virtual-daemon.ts";
import { courses, deeds, told, touched } from "../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../harness/policies.ts";
import { startWard, type WardRun } from "../harness/quiet-network.ts";

const hold = { maxActions: { amount: 0, perMs: HOUR_MS } };
const timerOf = (ward: WardRun, node: string) => ward.warden().view.explain(node).policies[0]!.timer;

test("a policy that was not changed keeps its timers and its episodes when others are", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], hold) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  const before = timerOf(ward, node!)!;
  const other = rebootOffline({ name: "other", when: 'node.status == "maintenance"' });
  await ward.restart({ rules: rulesOf([rebootOffline(), other], hold) });
  await ward.pass(5 * MINUTE_MS);
  expect(timerOf(ward, node!)).toMatchObject({ state: "firing", since: before.since });
  expect(ward.episodes()).toMatchObject([{ id: "ep-1", state: "firing" }]);
  await ward.stop();
});

test("a raised for takes a firing timer back to pending, and withdraws an episode in which nothing was done; people are told", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], hold) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  expect(courses(ward)).toEqual(["firing"]);
  await ward.restart({ rules: rulesOf([rebootOffline({ forMs: 30 * MINUTE_MS })]) });
  await ward.pass(5 * MINUTE_MS);
  expect(timerOf(ward, node!)).toMatchObject({ state: "pending" });
  expect(courses(ward)).toEqual(["withdrawn"]);
  expect(told(ward, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  expect(ward.postCount()).toBe(0);
  await ward.pass(25 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("a raised for takes nothing back from an episode in which something was done", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!, "forced_reboot");
  await ward.pass(8 * MINUTE_MS);
  await ward.restart({ rules: rulesOf([rebootOffline({ forMs: 12 * HOUR_MS })]) });
  await ward.pass(30 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(courses(ward)).toEqual(["healed"]);
  await ward.stop();
});

test("a policy that is about something else begins anew: its timers start from zero, its episodes are withdrawn", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], hold) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  await ward.restart({ rules: rulesOf([rebootOffline({ when: 'node.status != "online"' })]) });
  await ward.pass(4 * MINUTE_MS);
  expect(timerOf(ward, node!)).toMatchObject({ state: "pending" });
  expect(courses(ward)).toEqual(["withdrawn"]);
  expect(ward.postCount()).toBe(0);
  await ward.pass(20 * MINUTE_MS);
  expect(courses(ward)).toEqual(["withdrawn", "healed"]);
  await ward.stop();
});

test("an action that was under way when its policy came to be about something else is judged by what it was sent for", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(6 * MINUTE_MS);
  expect(courses(ward)).toEqual(["acting"]);
  await ward.restart({ rules: rulesOf([rebootOffline({ when: 'node.status != "online"' })]), downMs: 0 });
  await ward.pass(10 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: verified"]);
  expect(courses(ward)).toEqual(["withdrawn"]);
  await ward.stop();
});

test("an action that was under way when its step left the policy is judged all the same, and holds nobody for ever", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.disconnect, steps.reboot] })]) });
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(10 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["disconnect: ineffective", "reboot: null"]);
  await ward.restart({ rules: rulesOf([rebootOffline({ steps: [steps.notify] })]) });
  await ward.pass(30 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["disconnect: ineffective", "reboot: ineffective"]);
  expect(courses(ward)).toEqual(["given_up"]);
  expect(ward.warden().view.status().inFlight).toBe(0);
  await ward.stop();
});

test("when a policy goes what it has under way is judged, and its episode is withdrawn", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!, "forced_reboot");
  await ward.pass(6 * MINUTE_MS);
  await ward.restart({ rules: rulesOf([]) });
  await ward.pass(5 * MINUTE_MS);
  expect(courses(ward)).toEqual(["acting"]);
  await ward.pass(10 * MINUTE_MS);
  expect(deeds(ward)).toEqual(["reboot: ineffective"]);
  expect(courses(ward)).toEqual(["withdrawn"]);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

const hide = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify] });

test("when a policy goes while its quarantine lasts the quarantine is watched to its end, and counts until then", async () => {
  const ward = await startWard({ rules: rulesOf([]) });
  const [node, other] = ward.nodes("us-east");
  // An online node: its quarantine takes it away from the fleet.
  const rule = { ...hide, match: `node.id == "${node}"`, when: 'node.status == "online"' };
  await ward.restart({ rules: rulesOf([rule]) });
  await ward.pass(12 * MINUTE_MS);
  expect(courses(ward)).toEqual(["quarantined"]);
  await ward.restart({ rules: rulesOf([rebootOffline({ name: "other" })]) });
  ward.fell(other!);
  await ward.pass(15 * MINUTE_MS);
  expect(courses(ward)).toEqual(["quarantined", "firing"]);
  expect(ward.reasons(other!)).toEqual(["disrupted_domain"]);
  await ward.pass(20 * MINUTE_MS);
  expect(courses(ward)[0]).toBe("withdrawn");
  expect(touched(ward)).toEqual([node, other]);
  await ward.stop();
});

test("from dry_run to enforce: what was only written down is withdrawn, and the first real episode begins", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ mode: "dry_run" })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(12 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([{ shadow: true, state: "acting" }]);
  await ward.restart({ rules: rulesOf([rebootOffline()]) });
  await ward.pass(20 * MINUTE_MS);
  expect(ward.episodes()).toMatchObject([
    { shadow: true, state: "withdrawn" },
    { shadow: false, state: "healed" },
  ]);
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("from enforce to dry_run in mid-episode: the step under way is judged, and nothing more is sent", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  ward.fell(ward.nodes("us-east")[0]!, "person");
  await ward.pass(8 * MINUTE_MS);
  await ward.restart({ rules: rulesOf([rebootOffline({ mode: "dry_run" })]) });
  await ward.pass(HOUR_MS);
  const real = ward.episodes().filter(({ shadow }) => !shadow);
  expect(real).toMatchObject([{ state: "withdrawn" }]);
  expect(ward.actions()[0]).toMatchObject({ shadow: false, outcome: "ineffective" });
  expect(ward.postCount()).toBe(1);
  await ward.stop();
});

test("from enforce to dry_run while a quarantine of ours lasts: it is watched to its end, and a person who ends it is heeded", async () => {
  const ward = await startWard({
    rules: rulesOf([{ ...hide, when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"' }]),
  });
  await ward.pass(10 * MINUTE_MS);
  expect(courses(ward)).toEqual(["quarantined"]);
  await ward.restart({
    rules: rulesOf([{ ...hide, when: "node.uptime_hours >= 0", match: 'node.id == "node_caffe390"', mode: "dry_run" }]),
  });
  await ward.pass(5 * MINUTE_MS);
  ward.people.liftQuarantine("node_caffe390");
  await ward.pass(5 * MINUTE_MS);
  expect(ward.episodes().filter(({ shadow }) => !shadow)).toMatchObject([{ state: "freed" }]);
  expect(ward.warden().view.explain("node_caffe390").holds).toMatchObject([{ kind: "vetoed" }]);
  await ward.stop();
});

test("a reload in the same process loses no time that a timer has counted", async () => {
  const rule = rebootOffline({ forMs: 15 * MINUTE_MS });
  const ward = await startWard({ rules: rulesOf([rule]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  await ward.pass(10 * MINUTE_MS);
  const before = timerOf(ward, node!)!;
  await ward.reload({ rules: rulesOf([rule, rebootOffline({ name: "other", when: 'node.status == "maintenance"' })]) });
  await ward.pass(10 * SECOND_MS);
  expect(timerOf(ward, node!)!.trueMs).toBeGreaterThan(before.trueMs + 30 * SECOND_MS);
  await ward.pass(6 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

test("one and the same record is one look, also before and after a reload: it frees nobody", async () => {
  const ward = await startWard({ rules: rulesOf([hide]) });
  const [node] = ward.nodes("us-east");
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt: START_MS + 20 * MINUTE_MS });
  await ward.pass(20 * MINUTE_MS);
  ward.people.liftQuarantine(node!);
  await ward.passUntil(() => ward.episodes()[0]!.quarantine?.seenOnline === 1);
  await ward.reload({ rules: rulesOf([hide], { maxInFlight: 2 }) });
  await ward.pass(10);
  expect(ward.episodes()).toMatchObject([{ state: "quarantined", quarantine: { seenOnline: 1 } }]);
  await ward.pass(MINUTE_MS);
  expect(courses(ward)).toEqual(["freed"]);
  await ward.stop();
});

test("alarms and episodes that go on over a reload are not told anew as something else", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()], hold) });
  ward.fell(ward.nodes("us-east")[0]!);
  ward.strike({ kind: "region_dark", region: "ap-southeast" });
  await ward.pass(15 * MINUTE_MS);
  await ward.reload({ rules: rulesOf([rebootOffline()], { ...hold, maxInFlight: 2 }) });
  await ward.pass(15 * MINUTE_MS);
  expect(new Set(told(ward, "incident").map(({ key, endsAt }) => `${key} ${endsAt}`)).size).toBe(1);
  expect(told(ward, "episode")).toHaveLength(1);
  await ward.stop();
});
