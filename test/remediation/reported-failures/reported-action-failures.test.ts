import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { TimeInterval } from "../../../src/model/policy/time-interval.ts";
import { ONE_NODE, startQuietNetwork, startWithFailedNode } from "../../harness/daemon/quiet-network.ts";
import { START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps } from "../../harness/policies.ts";
import { actionLines, episodeStates, nodesActedOn } from "../../harness/remediation-results.ts";

// Actions that similar projects sent wrongly, by the issue that reported each.

test("an intent that a crash left is withdrawn, and a node that has recovered is not acted on (NVSentinel#1280)", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes("us-east");
  const healAt = network.daemon.clock.now() + 8 * MINUTE_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  network.injectedFailures.crashAt = {
    when: "after",
    changes: (changes) => changes.some((change) => change.kind === "action" && change.row.state === "intended"),
  };
  await network.advance(7 * MINUTE_MS);
  expect(network.isAlive()).toBe(false);
  expect(network.actions()).toMatchObject([{ state: "intended" }]);
  await network.restart({ downMs: 2 * MINUTE_MS });
  expect(network.actions()).toMatchObject([{ state: "withdrawn", sentAt: null }]);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(episodeStates(network)).toEqual(["cleared"]);
});

test("a node that has recovered by the time of the action is read again, and left alone (draino#50)", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  const [node] = network.nodes("us-east");
  expect(await network.commands().pause("a test")).toMatchObject({ ok: true });
  const healAt = network.daemon.clock.now() + 10 * MINUTE_MS + 30 * SECOND_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt: healAt });
  // It was unhealthy when it was listed last, and has recovered since.
  await network.advance(10 * MINUTE_MS + 40 * SECOND_MS);
  expect(network.holdReasons(node!)).toEqual(["paused"]);
  await network.commands().resume();
  await network.advance(SECOND_MS);
  expect(network.actions()).toMatchObject([{ state: "withdrawn", detail: "the node is no longer unhealthy" }]);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
});

test("a reboot that changed nothing is ineffective, regardless of the response (self-node-remediation#258)", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [steps.reboot] })]),
    remedy: "forced_reboot",
  });
  await network.advance(30 * MINUTE_MS);
  expect(network.posts()).toMatchObject([{ status: 200, count: 1 }]);
  expect(network.actions()).toMatchObject([{ outcome: "ineffective", proof: "none" }]);
});

test("a node that an operator has quarantined is not acted on, even if a policy fires (draino#17)", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ when: 'node.status != "online"' })]),
  });
  const [node] = network.nodes("us-east");
  network.interventions.quarantine(node!, network.daemon.clock.now() + 5 * HOUR_MS);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.holdReasons(node!)).toEqual(["ownership"]);
});

test("a quarantine that is lifted early is not repeated: the node is vetoed for retry.every (NVSentinel#1424)", async () => {
  const retry = { episodes: 5, everyMs: HOUR_MS, forgetAfterMs: 24 * HOUR_MS };
  const policy = rebootOffline({ when: "node.uptime_hours >= 0", match: null, steps: [steps.quarantine], retry });
  const [node] = [ONE_NODE];
  const network = await startQuietNetwork({
    config: remediationConfig([{ ...policy, match: `node.id == "${node}"` }]),
  });
  await network.advance(15 * MINUTE_MS);
  expect(network.status(node!)).toBe("quarantined");
  network.interventions.liftQuarantine(node!);
  await network.advance(5 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["freed"]);
  expect(network.holdReasons(node!)).toContain("vetoed");
  await network.advance(45 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  // Its time is over, so the veto no longer applies.
  await network.advance(25 * MINUTE_MS);
  expect(network.postCount()).toBe(2);
});

test("data that is missing at times freezes a timer, but does not reset it (prometheus#14085)", async () => {
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ forMs: 10 * MINUTE_MS })]),
  });
  for (let time = 0; time < 4; time++) {
    await network.advance(5 * MINUTE_MS);
    network.setFault({ kind: "status", status: 503 }, "GET /v1/nodes?");
    await network.advance(90 * SECOND_MS);
    network.setFault(null);
  }
  await network.advance(3 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

/** Tests start at 23:00 in the Azores. */
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

test("a window across midnight has no gap at midnight (kured's Friday 23:59 to 00:01)", async () => {
  const network = await startQuietNetwork({
    config: { ...remediationConfig([rebootOffline({ windows: ["nights"] })]), time_intervals: [nights] },
  });
  const midnight = START_MS + HOUR_MS;
  await network.advance(midnight - network.daemon.clock.now() - 7 * MINUTE_MS - 30 * SECOND_MS);
  // The node is rebooted right before midnight, and the reboot fails after midnight, in the same window.
  network.failNode(network.nodes("us-east")[0]!, "forced_reboot");
  await network.advance(25 * MINUTE_MS);
  const [first, second] = network.actions();
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(first!.sentAt!).toBeLessThan(midnight);
  expect(first!.sentAt!).toBeGreaterThan(midnight - 2 * MINUTE_MS);
  expect(second!.sentAt!).toBeGreaterThan(midnight);
});

test("outside its window a policy holds, and names the window", async () => {
  const days: TimeInterval = { name: "days", intervals: [{ times: [{ startMinute: 8 * 60, endMinute: 20 * 60 }] }] };
  const { network } = await startWithFailedNode({
    config: { ...remediationConfig([rebootOffline({ windows: ["days"] })]), time_intervals: [days] },
  });
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(0);
  expect(network.decisions()).toMatchObject([
    { blockers: [{ reason: "window", detail: expect.stringContaining("days") }] },
  ]);
});
