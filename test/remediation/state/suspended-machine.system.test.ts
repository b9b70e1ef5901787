import { expect, test } from "vitest";
import { DAY_MS, type DurationMs, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import {
  listsAndDetailsSettings,
  listsOnlySettings,
  noFailureRates,
  onePerRegion,
  type QuietNetwork,
  startQuietNetwork,
  suspend,
} from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../../harness/policies.ts";
import { episodeStates, holdReasonsOf } from "../../harness/remediation-results.ts";

const every = (intervalMs: DurationMs) => ({ kind: "every", intervalMs }) as const;

/** For how long the first node has failed, what is read last before the suspension, and how long that lasts. */
interface DueAction {
  readonly failedMs: DurationMs;
  readonly list: "fleet" | "sessions";
  readonly suspendedMs: DurationMs;
}

/** Suspends the machine right after a walk of a list, when an action on the first node is due that a pause had held. */
async function suspendWhenDue(network: QuietNetwork, { failedMs, list, suspendedMs }: DueAction): Promise<void> {
  await network.commands().pause("a release", DAY_MS);
  network.failNode(network.nodes()[0]!, "operator");
  await network.advance(failedMs);
  const settledAt = () => network.daemon.snapshots.last![list]!.settledAt;
  const lastWalk = settledAt();
  await network.advanceUntil(() => settledAt() !== lastWalk);
  await network.commands().resume();
  suspend(network, suspendedMs);
}

test("after a suspension the journal's clock is right, and a restart frees no max_actions", async () => {
  const limits = { ...withoutLimits, maxActions: { amount: 2, perMs: HOUR_MS } };
  const policy = rebootOffline({ forMs: MINUTE_MS, steps: [steps.reboot] });
  const network = await startQuietNetwork({ config: remediationConfig([policy], limits) });
  for (const node of onePerRegion(network, 5)) network.failNode(node, "operator");
  suspend(network, 6 * HOUR_MS);
  await network.advance(40 * MINUTE_MS);
  const { remediationState, clock } = network.daemon;
  expect(Math.abs(remediationState.now() - clock.now())).toBeLessThan(5 * MINUTE_MS);
  await network.restart();
  await network.advance(10 * MINUTE_MS);
  expect(network.postCount()).toBeLessThanOrEqual(2);
  expect(holdReasonsOf(network)).toContain("service_clock");
  await network.advance(1.5 * HOUR_MS);
  expect(network.postCount()).toBeGreaterThan(2);
});

test.each([
  ["the machine was suspended for four minutes", (network: QuietNetwork) => suspend(network, 4 * MINUTE_MS)],
  [
    "the wall clock was set four minutes ahead",
    (network: QuietNetwork) => network.daemon.clock.stepWallClock(4 * MINUTE_MS),
  ],
])("actions count toward max_actions for the whole period after a restart if %s", async (_, disturb) => {
  const limits = { ...withoutLimits, maxActions: { amount: 1, perMs: HOUR_MS } };
  const policy = rebootOffline({ forMs: MINUTE_MS, steps: [steps.reboot] });
  const network = await startQuietNetwork({ config: remediationConfig([policy], limits) });
  disturb(network);
  await network.advance(5 * MINUTE_MS);
  for (const node of onePerRegion(network, 3)) network.failNode(node, "operator");
  await network.advanceUntil(() => network.postCount() === 1);
  await network.restart({ downMs: 10 * MINUTE_MS });
  await network.advance(49 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  await network.advance(4 * MINUTE_MS);
  expect(network.postCount()).toBe(2);
});

test("a quarantine that ended while the machine was suspended is over, not lifted by an operator", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 2 * HOUR_MS }] })]),
  });
  const [node] = network.nodes();
  const recoverAt = network.daemon.clock.now() + 12 * MINUTE_MS;
  network.interventions.startFailure(node!, { failureMode: "outage", remedy: "time", recoverAt });
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  suspend(network, 6 * HOUR_MS);
  network.interventions.liftQuarantine(node!);
  await network.advance(10 * MINUTE_MS);
  expect(network.status(node!)).toBe("online");
  expect(episodeStates(network)).toEqual(["probation"]);
});

test.each([
  ["of four minutes", 0, 4],
  ["of an hour, while the wall clock is wrong", 3 * HOUR_MS, 60],
])("an approval from before a suspension %s is not used", async (_, wallClockError, minutes) => {
  const config = remediationConfig([rebootOffline({ mode: "approve" })]);
  const network = await startQuietNetwork({ config });
  network.daemon.clock.stepWallClock(wallClockError);
  await network.restart();
  await network.advance(75 * MINUTE_MS);
  network.failNode(network.nodes()[0]!, "operator");
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  await network.commands().approve(network.controller().view.approvals()[0]!.id);
  suspend(network, minutes * MINUTE_MS);
  await network.advance(75 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()[0]).toMatchObject({
    state: "lapsed",
    detail: expect.stringMatching(/^it is unknown how long ago/),
  });
  // It is requested again.
  expect(network.controller().view.approvals()).toHaveLength(1);
});

test("what was listed before an action and a suspension does not end its step", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ steps: [steps.reboot, steps.force] })]),
    settings: listsAndDetailsSettings,
    scenario: { rates: { ...noFailureRates, rebootMs: SECOND_MS } },
  });
  network.failNode(network.nodes()[0]!);
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(2 * SECOND_MS);
  suspend(network, 2 * HOUR_MS);
  await network.advance(2 * MINUTE_MS);
  expect(network.actions()).toMatchObject([{ outcome: "verified" }]);
});

test("sessions that were read before an action and a suspension do not show that its step was ineffective", async () => {
  const policy = rebootOffline({
    when: 'node.status == "offline" && sessions.total < 1000',
    maxAgeMs: 20 * MINUTE_MS,
    steps: [steps.disconnect, steps.reboot],
  });
  const schedules = { ...listsOnlySettings.schedules!, nodes: every(5 * SECOND_MS), sessions: every(10 * MINUTE_MS) };
  const network = await startQuietNetwork({
    config: remediationConfig([policy]),
    settings: { schedules },
    warmUpMs: 12 * MINUTE_MS,
  });
  network.failNode(network.nodes()[0]!, "operator");
  await network.advanceUntil(() => network.postCount() === 1);
  await network.advance(2 * SECOND_MS);
  suspend(network, 2 * HOUR_MS);
  await network.advance(MINUTE_MS);
  expect(network.actions()).toMatchObject([{ outcome: "in_doubt" }]);
});

test("what was listed before a suspension is not used after it, although it seems to be fresh", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([rebootOffline({ steps: [steps.reboot] })]),
    scenario: { nodes: 60 },
    settings: listsAndDetailsSettings,
  });
  const [node, ...others] = network.nodes();
  await suspendWhenDue(network, { failedMs: 30 * MINUTE_MS, list: "fleet", suspendedMs: 4 * MINUTE_MS });
  for (const other of others) network.failNode(other, "operator");
  await network.advanceUntil(() => network.holdReasons(node!).includes("storm"));
  expect(network.postCount()).toBe(0);
});

test("no action is sent after a long suspension until the next walk, however rare walks are", async () => {
  const schedules = { ...listsOnlySettings.schedules!, nodes: every(HOUR_MS) };
  const policy = { ...rebootOffline({ forMs: MINUTE_MS, steps: [steps.reboot] }), maxAgeMs: DAY_MS };
  const network = await startQuietNetwork({
    config: remediationConfig([policy]),
    scenario: { nodes: 60 },
    settings: { schedules },
    warmUpMs: 3 * HOUR_MS,
  });
  const [node, ...others] = network.nodes();
  await suspendWhenDue(network, { failedMs: 2 * HOUR_MS, list: "fleet", suspendedMs: 8 * HOUR_MS });
  for (const other of others) network.failNode(other, "operator");
  await network.advance(40 * MINUTE_MS);
  expect(network.holdReasons(node!)).toContain("service_clock");
  await network.advance(80 * MINUTE_MS);
  expect(network.holdReasons(node!)).toContain("storm");
  expect(network.postCount()).toBe(0);
});

test("sessions that were read before a suspension are not used after it", async () => {
  const policy = rebootOffline({ when: 'node.status == "offline" && sessions.total < 1000' });
  const schedules = { ...listsOnlySettings.schedules!, nodes: every(5 * SECOND_MS), sessions: every(10 * MINUTE_MS) };
  const network = await startQuietNetwork({
    config: remediationConfig([policy]),
    settings: { schedules },
    warmUpMs: 12 * MINUTE_MS,
  });
  const [node] = network.nodes();
  await suspendWhenDue(network, { failedMs: 8 * MINUTE_MS, list: "sessions", suspendedMs: 4 * MINUTE_MS });
  await network.advance(20 * SECOND_MS);
  expect(network.postCount()).toBe(0);
  expect(network.decisions().at(-1)).toMatchObject({
    node,
    blockers: [{ reason: "verdict_unknown", detail: "sessions.total: stale" }],
  });
});

test("details that were read before a suspension are unknown after it, until they are read again", async () => {
  const policy = rebootOffline({ when: "node.cpu_usage >= 0.0", mode: "dry_run" });
  const config = remediationConfig([policy]);
  const network = await startQuietNetwork({ config, settings: listsAndDetailsSettings, warmUpMs: 20 * MINUTE_MS });
  const verdicts = () => network.nodes().map((node) => network.explain(node).policies[0]!.verdict);
  expect(new Set(verdicts())).toEqual(new Set(["true"]));
  suspend(network, 4 * MINUTE_MS);
  await network.advance(MINUTE_MS);
  expect(verdicts()).toContain("unknown");
  await network.advance(15 * MINUTE_MS);
  expect(new Set(verdicts())).toEqual(new Set(["true"]));
});

test("a pause that an operator makes just after a suspension keeps its duration", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  suspend(network, 6 * HOUR_MS);
  await network.commands().pause("a release", 2 * HOUR_MS);
  await network.advance(2 * HOUR_MS - MINUTE_MS);
  expect(network.controller().view.status().paused).not.toBeNull();
  await network.advance(2 * MINUTE_MS);
  expect(network.controller().view.status().paused).toBeNull();
});

test("a wall clock that changes again and again holds actions, and the hold says so and what to do", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()]) });
  network.failNode(network.nodes()[0]!);
  const details = () =>
    network
      .controller()
      .view.status()
      .trust.map(({ detail }) => detail);
  for (let changes = 1; changes <= 40; changes++) {
    network.daemon.clock.stepWallClock((changes % 2 === 0 ? -1 : 1) * 2 * MINUTE_MS);
    await network.advance(20 * SECOND_MS);
    if (changes === 2) expect(details()).not.toEqual([expect.stringContaining("times")]);
  }
  expect(network.postCount()).toBe(0);
  expect(details()).toEqual([
    expect.stringMatching(/changed \d+ times within an hour: check the time synchronization/),
  ]);
  await network.advance(HOUR_MS);
  expect(network.postCount()).toBe(1);
  network.daemon.clock.stepWallClock(2 * MINUTE_MS);
  await network.advance(5 * SECOND_MS);
  expect(details()).toEqual([expect.not.stringContaining("times")]);
});
