import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";
import { courses, deeds, touched } from "../../harness/action-lines.ts";
import { rebootOffline, rulesOf, steps } from "../../harness/policies.ts";
import { startWard } from "../../harness/quiet-network.ts";

test("pain 6: an intent that a crash left is withdrawn, and a node that has recovered is not touched (NVSentinel#1280)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  const healAt = ward.daemon.clock.now() + 8 * MINUTE_MS;
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt });
  ward.mishaps.deathAt = {
    when: "after",
    changes: (changes) => changes.some((change) => change.kind === "action" && change.row.state === "intended"),
  };
  await ward.pass(7 * MINUTE_MS);
  expect(ward.isAlive()).toBe(false);
  expect(ward.actions()).toMatchObject([{ state: "intended" }]);
  await ward.restart({ downMs: 2 * MINUTE_MS });
  expect(ward.actions()).toMatchObject([{ state: "withdrawn", sentAt: null }]);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(courses(ward)).toEqual(["cleared"]);
  await ward.stop();
});

test("pain 8: a node that is well again by the time of the action is read once more, and left alone (draino#50)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline()]) });
  const [node] = ward.nodes("us-east");
  expect(ward.warden().orders.pause("a test")).toMatchObject({ ok: true });
  const healAt = ward.daemon.clock.now() + 10 * MINUTE_MS + 30 * SECOND_MS;
  ward.people.fallIll(node!, { ailment: "outage", cure: "time", healAt });
  // Ill when it was listed last, and well since.
  await ward.pass(10 * MINUTE_MS + 40 * SECOND_MS);
  expect(ward.reasons(node!)).toEqual(["paused"]);
  ward.warden().orders.resume();
  await ward.pass(SECOND_MS);
  expect(ward.actions()).toMatchObject([{ state: "withdrawn", detail: "it is not unhealthy any more" }]);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  await ward.stop();
});

test("pain 8: a reboot is not assumed: one that changed nothing is ineffective, whatever its answer was (self-node-remediation#258)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ steps: [steps.reboot] })]) });
  ward.fell(ward.nodes("us-east")[0]!, "forced_reboot");
  await ward.pass(30 * MINUTE_MS);
  expect(ward.posts()).toMatchObject([{ status: 200, count: 1 }]);
  expect(ward.actions()).toMatchObject([{ outcome: "ineffective", proof: "none" }]);
  await ward.stop();
});

test("pain 9: a node that a person has quarantined is theirs, though a policy fires on it (draino#17)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ when: 'node.status != "online"' })]) });
  const [node] = ward.nodes("us-east");
  ward.people.quarantine(node!, ward.daemon.clock.now() + 5 * HOUR_MS);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.reasons(node!)).toEqual(["ownership"]);
  await ward.stop();
});

test("pain 9: who lifts our quarantine early is not fought: the node is vetoed for retry.every (NVSentinel#1424)", async () => {
  const retry = { episodes: 5, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
  const policy = rebootOffline({ when: "node.uptime_hours >= 0", match: null, steps: [steps.quarantine], retry });
  const [node] = ["node_caffe390"];
  const ward = await startWard({ rules: rulesOf([{ ...policy, match: `node.id == "${node}"` }]) });
  await ward.pass(15 * MINUTE_MS);
  expect(ward.status(node!)).toBe("quarantined");
  ward.people.liftQuarantine(node!);
  await ward.pass(5 * MINUTE_MS);
  expect(courses(ward)).toEqual(["freed"]);
  expect(ward.reasons(node!)).toContain("vetoed");
  await ward.pass(45 * MINUTE_MS);
  expect(ward.postCount()).toBe(1);
  // Its time is over: what the person wanted is not known any more.
  await ward.pass(25 * MINUTE_MS);
  expect(ward.postCount()).toBe(2);
  await ward.stop();
});

test("pain 13: data that come and go freeze a timer and don't reset it (prometheus#14085)", async () => {
  const ward = await startWard({ rules: rulesOf([rebootOffline({ forMs: 10 * MINUTE_MS })]) });
  const [node] = ward.nodes("us-east");
  ward.fell(node!);
  for (let time = 0; time < 4; time++) {
    await ward.pass(5 * MINUTE_MS);
    ward.strike({ kind: "status", status: 503 }, "GET /v1/nodes?");
    await ward.pass(90 * SECOND_MS);
    ward.strike(null);
  }
  await ward.pass(3 * MINUTE_MS);
  expect(touched(ward)).toEqual([node]);
  await ward.stop();
});

/** At the start of a test it is 23:00 on the Azores. */
const nights: TimeInterval = {
  name: "nights",
  intervals: [
    {
      times: [
        { startMinute: 23 * 60, endMinute: 1_440 },
        { startMinute: 0, endMinute: 5 * 60 },
      ],
      location: "Atlantic/Azores",
    },
  ],
};

test("pain 13: a window that goes on past midnight has no gap at midnight (kured's Friday 23:59 to 00:01)", async () => {
  const ward = await startWard({
    rules: { ...rulesOf([rebootOffline({ windows: ["nights"] })]), intervals: [nights] },
  });
  const midnight = START_MS + HOUR_MS;
  await ward.pass(midnight - ward.daemon.clock.now() - 7 * MINUTE_MS - 30 * SECOND_MS);
  // It fires right before midnight, and is rebooted; that fails after midnight, within the same window.
  ward.fell(ward.nodes("us-east")[0]!, "forced_reboot");
  await ward.pass(25 * MINUTE_MS);
  const [first, second] = ward.actions();
  expect(deeds(ward)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(first!.sentAt!).toBeLessThan(midnight);
  expect(first!.sentAt!).toBeGreaterThan(midnight - 2 * MINUTE_MS);
  expect(second!.sentAt!).toBeGreaterThan(midnight);
  await ward.stop();
});

test("pain 13: outside of its window a policy holds, and says which one", async () => {
  const days: TimeInterval = { name: "days", intervals: [{ times: [{ startMinute: 8 * 60, endMinute: 20 * 60 }] }] };
  const ward = await startWard({ rules: { ...rulesOf([rebootOffline({ windows: ["days"] })]), intervals: [days] } });
  ward.fell(ward.nodes("us-east")[0]!);
  await ward.pass(HOUR_MS);
  expect(ward.postCount()).toBe(0);
  expect(ward.decisions()).toMatchObject([
    { blockers: [{ reason: "window", detail: expect.stringContaining("days") }] },
  ]);
  await ward.stop();
});
