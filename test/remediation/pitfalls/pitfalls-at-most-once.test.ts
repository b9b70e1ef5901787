import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import { actionLines, episodeLines, nodesActedOn } from "../../harness/action-lines.ts";
import { rebootOffline, remediationRules, steps } from "../../harness/policies.ts";
import { startQuietNetwork } from "../../harness/quiet-network.ts";
import { START_MS } from "../../harness/virtual-daemon.ts";

test("an intent that a crash left is withdrawn, and a node that has recovered is not acted on (NVSentinel#1280)", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  const healAt = context.daemon.clock.now() + 8 * MINUTE_MS;
  context.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  context.injectedFailures.crashAt = {
    when: "after",
    changes: (changes) => changes.some((change) => change.kind === "action" && change.row.state === "intended"),
  };
  await context.advance(7 * MINUTE_MS);
  expect(context.isAlive()).toBe(false);
  expect(context.actions()).toMatchObject([{ state: "intended" }]);
  await context.restart({ downMs: 2 * MINUTE_MS });
  expect(context.actions()).toMatchObject([{ state: "withdrawn", sentAt: null }]);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(episodeLines(context)).toEqual(["cleared"]);
  await context.stop();
});

test("a node that is well again by the time of the action is read once more, and left alone (draino#50)", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline()]) });
  const [node] = context.nodes("us-east");
  expect(context.controller().operatorCommands.pause("a test")).toMatchObject({ ok: true });
  const healAt = context.daemon.clock.now() + 10 * MINUTE_MS + 30 * SECOND_MS;
  context.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  // Ill when it was listed last, and well since.
  await context.advance(10 * MINUTE_MS + 40 * SECOND_MS);
  expect(context.holdReasons(node!)).toEqual(["paused"]);
  context.controller().operatorCommands.resume();
  await context.advance(SECOND_MS);
  expect(context.actions()).toMatchObject([{ state: "withdrawn", detail: "the node is no longer unhealthy" }]);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  await context.stop();
});

test("a reboot is not assumed: one that changed nothing is ineffective, whatever its answer was (self-node-remediation#258)", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ steps: [steps.reboot] })]) });
  context.failedNodes(context.nodes("us-east")[0]!, "forced_reboot");
  await context.advance(30 * MINUTE_MS);
  expect(context.posts()).toMatchObject([{ status: 200, count: 1 }]);
  expect(context.actions()).toMatchObject([{ outcome: "ineffective", proof: "none" }]);
  await context.stop();
});

test("a node that an operator has quarantined is theirs, though a policy fires on it (draino#17)", async () => {
  const context = await startQuietNetwork({
    rules: remediationRules([rebootOffline({ when: 'node.status != "online"' })]),
  });
  const [node] = context.nodes("us-east");
  context.interventions.quarantine(node!, context.daemon.clock.now() + 5 * HOUR_MS);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(context.holdReasons(node!)).toEqual(["ownership"]);
  await context.stop();
});

test("a quarantine that is lifted early is not repeated: the node is vetoed for retry.every (NVSentinel#1424)", async () => {
  const retry = { episodes: 5, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
  const policy = rebootOffline({ when: "node.uptime_hours >= 0", match: null, steps: [steps.quarantine], retry });
  const [node] = ["node_caffe390"];
  const context = await startQuietNetwork({ rules: remediationRules([{ ...policy, match: `node.id == "${node}"` }]) });
  await context.advance(15 * MINUTE_MS);
  expect(context.status(node!)).toBe("quarantined");
  context.interventions.liftQuarantine(node!);
  await context.advance(5 * MINUTE_MS);
  expect(episodeLines(context)).toEqual(["freed"]);
  expect(context.holdReasons(node!)).toContain("vetoed");
  await context.advance(45 * MINUTE_MS);
  expect(context.postCount()).toBe(1);
  // Its time is over: what the person wanted is not known any more.
  await context.advance(25 * MINUTE_MS);
  expect(context.postCount()).toBe(2);
  await context.stop();
});

test("data that come and go freeze a timer and don't reset it (prometheus#14085)", async () => {
  const context = await startQuietNetwork({ rules: remediationRules([rebootOffline({ forMs: 10 * MINUTE_MS })]) });
  const [node] = context.nodes("us-east");
  context.failedNodes(node!);
  for (let time = 0; time < 4; time++) {
    await context.advance(5 * MINUTE_MS);
    context.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
    await context.advance(90 * SECOND_MS);
    context.setFault(null);
  }
  await context.advance(3 * MINUTE_MS);
  expect(nodesActedOn(context)).toEqual([node]);
  await context.stop();
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

test("a window that goes on past midnight has no gap at midnight (kured's Friday 23:59 to 00:01)", async () => {
  const context = await startQuietNetwork({
    rules: { ...remediationRules([rebootOffline({ windows: ["nights"] })]), intervals: [nights] },
  });
  const midnight = START_MS + HOUR_MS;
  await context.advance(midnight - context.daemon.clock.now() - 7 * MINUTE_MS - 30 * SECOND_MS);
  // It fires right before midnight, and is rebooted; that fails after midnight, within the same window.
  context.failedNodes(context.nodes("us-east")[0]!, "forced_reboot");
  await context.advance(25 * MINUTE_MS);
  const [first, second] = context.actions();
  expect(actionLines(context)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(first!.sentAt!).toBeLessThan(midnight);
  expect(first!.sentAt!).toBeGreaterThan(midnight - 2 * MINUTE_MS);
  expect(second!.sentAt!).toBeGreaterThan(midnight);
  await context.stop();
});

test("outside of its window a policy holds, and says which one", async () => {
  const days: TimeInterval = { name: "days", intervals: [{ times: [{ startMinute: 8 * 60, endMinute: 20 * 60 }] }] };
  const context = await startQuietNetwork({
    rules: { ...remediationRules([rebootOffline({ windows: ["days"] })]), intervals: [days] },
  });
  context.failedNodes(context.nodes("us-east")[0]!);
  await context.advance(HOUR_MS);
  expect(context.postCount()).toBe(0);
  expect(context.decisions()).toMatchObject([
    { blockers: [{ reason: "window", detail: expect.stringContaining("days") }] },
  ]);
  await context.stop();
});
