import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { ONE_NODE, startQuietNetwork, startWithFailedNode } from "../harness/daemon/quiet-network.ts";
import { START_MS } from "../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig, steps, withoutLimits } from "../harness/policies.ts";
import { actionLines, episodeStates, nodesActedOn, notificationsOf, timerOf } from "../harness/remediation-results.ts";

const hold = { maxActions: { amount: 0, perMs: HOUR_MS } };

test("an unchanged policy keeps its timers and episodes when other policies change", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()], hold) });
  await network.advance(10 * MINUTE_MS);
  const before = timerOf(network, node)!;
  const other = rebootOffline({ name: "other", when: 'node.status == "maintenance"' });
  await network.restart({ config: remediationConfig([rebootOffline(), other], hold) });
  await network.advance(5 * MINUTE_MS);
  expect(timerOf(network, node)).toMatchObject({ state: "firing", since: before.since });
  expect(network.episodes()).toMatchObject([{ id: "ep-1", state: "firing" }]);
});

test("a longer `for` returns a firing timer to pending, withdraws an episode without actions, and sends a notification", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()], hold) });
  await network.advance(10 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["firing"]);
  await network.restart({ config: remediationConfig([rebootOffline({ forMs: 30 * MINUTE_MS })]) });
  await network.advance(5 * MINUTE_MS);
  expect(timerOf(network, node)).toMatchObject({ state: "pending" });
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  expect(notificationsOf(network, "episode")).toMatchObject([{ endsAt: null }, { endsAt: expect.any(Number) }]);
  expect(network.postCount()).toBe(0);
  await network.advance(25 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

describe("a node that failed again after it had been online for a moment", () => {
  /** Starts a network in which the node was offline for ten minutes, then online, then offline for some minutes. */
  async function startWithRelapse() {
    const network = await startQuietNetwork({ config: remediationConfig([rebootOffline()], hold) });
    const [node] = network.nodes("us-east") as [string];
    const recoverAt = START_MS + 10 * MINUTE_MS;
    network.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt });
    await network.advance(11 * MINUTE_MS);
    network.failNode(node);
    await network.advance(3 * MINUTE_MS);
    expect(timerOf(network, node)).toMatchObject({ state: "firing" });
    return { network, node };
  }

  test("keeps firing if its policy is the same after a restart", async () => {
    const { network, node } = await startWithRelapse();
    await network.restart({ config: remediationConfig([rebootOffline()], hold) });
    await network.advance(2 * MINUTE_MS);
    expect(timerOf(network, node)).toMatchObject({ state: "firing" });
    expect(episodeStates(network)).toEqual(["firing"]);
  });

  test("has to fail for a longer `for` without interruption", async () => {
    const { network, node } = await startWithRelapse();
    await network.restart({ config: remediationConfig([rebootOffline({ forMs: 7 * MINUTE_MS })]) });
    await network.advance(2 * MINUTE_MS);
    expect(timerOf(network, node)).toMatchObject({ state: "pending" });
    expect(network.postCount()).toBe(0);
  });
});

test("a longer `for` does not withdraw an episode with actions", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    remedy: "forced_reboot",
  });
  await network.advance(8 * MINUTE_MS);
  await network.restart({ config: remediationConfig([rebootOffline({ forMs: 12 * HOUR_MS })]) });
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective", "forced reboot: verified"]);
  expect(episodeStates(network)).toEqual(["healed"]);
});

test("a policy with a new condition starts over: timers start from zero, and episodes are withdrawn", async () => {
  const { network, node } = await startWithFailedNode({ config: remediationConfig([rebootOffline()], hold) });
  await network.advance(10 * MINUTE_MS);
  await network.restart({ config: remediationConfig([rebootOffline({ when: 'node.status != "online"' })]) });
  await network.advance(4 * MINUTE_MS);
  expect(timerOf(network, node)).toMatchObject({ state: "pending" });
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  expect(network.postCount()).toBe(0);
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["withdrawn", "healed"]);
});

test("an action under way when the condition of its policy changes is verified against the old condition", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]) });
  await network.advance(6 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  await network.restart({ config: remediationConfig([rebootOffline({ when: 'node.status != "online"' })]), downMs: 0 });
  await network.advance(10 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: verified"]);
  expect(episodeStates(network)).toEqual(["withdrawn"]);
});

test("an action under way when its step is removed from the policy is still verified", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline({ steps: [steps.disconnect, steps.reboot] })]),
    remedy: "operator",
  });
  await network.advance(10 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["disconnect: ineffective", "reboot: null"]);
  await network.restart({ config: remediationConfig([rebootOffline({ steps: [steps.notify] })]) });
  await network.advance(30 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["disconnect: ineffective", "reboot: ineffective"]);
  expect(episodeStates(network)).toEqual(["given_up"]);
  expect(network.controller().view.status().inFlight).toBe(0);
});

test("when a policy is removed, its action under way is verified, and then its episode is withdrawn", async () => {
  const { network } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    remedy: "forced_reboot",
  });
  await network.advance(6 * MINUTE_MS);
  await network.restart({ config: remediationConfig([]) });
  await network.advance(5 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["acting"]);
  await network.advance(10 * MINUTE_MS);
  expect(actionLines(network)).toEqual(["reboot: ineffective"]);
  expect(episodeStates(network)).toEqual(["withdrawn"]);
  expect(network.postCount()).toBe(1);
});

const hide = rebootOffline({ steps: [{ ...steps.quarantine, durationMs: 30 * MINUTE_MS }, steps.notify] });

test("when a policy is removed, its quarantine is tracked to its end, and counts until then", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([]) });
  const [node, other] = network.nodes("us-east");
  // The quarantine of an online node makes it unavailable.
  const spec = { ...hide, match: `node.id == "${node}"`, when: 'node.status == "online"' };
  await network.restart({ config: remediationConfig([spec]) });
  await network.advance(12 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  await network.restart({ config: remediationConfig([rebootOffline({ name: "other" })]) });
  network.failNode(other!);
  await network.advance(15 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined", "firing"]);
  expect(network.holdReasons(other!)).toEqual(["disrupted_domain"]);
  await network.advance(20 * MINUTE_MS);
  expect(episodeStates(network)[0]).toBe("withdrawn");
  expect(nodesActedOn(network)).toEqual([node, other]);
});

test("from dry_run to enforce: the dry-run episode is withdrawn, and the first real one begins", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline({ mode: "dry_run" })]) });
  await network.advance(12 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([{ dryRun: true, state: "acting" }]);
  await network.restart({ config: remediationConfig([rebootOffline()]) });
  await network.advance(20 * MINUTE_MS);
  expect(network.episodes()).toMatchObject([
    { dryRun: true, state: "withdrawn" },
    { dryRun: false, state: "healed" },
  ]);
  expect(network.postCount()).toBe(1);
});

test("from enforce to dry_run during an episode: the step under way is verified, and nothing more is sent", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()]), remedy: "operator" });
  await network.advance(8 * MINUTE_MS);
  await network.restart({ config: remediationConfig([rebootOffline({ mode: "dry_run" })]) });
  await network.advance(HOUR_MS);
  const real = network.episodes().filter(({ dryRun }) => !dryRun);
  expect(real).toMatchObject([{ state: "withdrawn" }]);
  expect(network.actions()[0]).toMatchObject({ dryRun: false, outcome: "ineffective" });
  expect(network.postCount()).toBe(1);
});

test("from enforce to dry_run during our quarantine: it is tracked to its end, and an operator may end it", async () => {
  const network = await startQuietNetwork({
    config: remediationConfig([{ ...hide, when: "node.uptime_hours >= 0", match: `node.id == "${ONE_NODE}"` }]),
  });
  await network.advance(10 * MINUTE_MS);
  expect(episodeStates(network)).toEqual(["quarantined"]);
  await network.restart({
    config: remediationConfig([
      { ...hide, when: "node.uptime_hours >= 0", match: `node.id == "${ONE_NODE}"`, mode: "dry_run" },
    ]),
  });
  await network.advance(5 * MINUTE_MS);
  network.interventions.liftQuarantine(ONE_NODE);
  await network.advance(5 * MINUTE_MS);
  expect(network.episodes().filter(({ dryRun }) => !dryRun)).toMatchObject([{ state: "freed" }]);
  expect(network.explain(ONE_NODE).holds).toMatchObject([{ kind: "vetoed" }]);
});

test("a reload in the same process keeps the time that timers have counted", async () => {
  const spec = rebootOffline({ forMs: 15 * MINUTE_MS });
  const { network, node } = await startWithFailedNode({ config: remediationConfig([spec]) });
  await network.advance(10 * MINUTE_MS);
  const before = timerOf(network, node)!;
  await network.reload({
    config: remediationConfig([spec, rebootOffline({ name: "other", when: 'node.status == "maintenance"' })]),
  });
  await network.advance(10 * SECOND_MS);
  expect(timerOf(network, node)!.trueMs).toBeGreaterThan(before.trueMs + 30 * SECOND_MS);
  await network.advance(6 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});

test("a record counts as one observation, also across a reload, and does not end a quarantine", async () => {
  const network = await startQuietNetwork({ config: remediationConfig([hide]) });
  const [node] = network.nodes("us-east");
  network.interventions.startFailure(node!, {
    failureMode: "outage",
    remedy: "time",
    recoverAt: START_MS + 20 * MINUTE_MS,
  });
  await network.advance(20 * MINUTE_MS);
  network.interventions.liftQuarantine(node!);
  await network.advanceUntil(() => network.episodes()[0]!.quarantine?.seenOnline === 1);
  await network.reload({ config: remediationConfig([hide], { maxInFlight: 2 }) });
  await network.advance(10);
  expect(network.episodes()).toMatchObject([{ state: "quarantined", quarantine: { seenOnline: 1 } }]);
  await network.advance(MINUTE_MS);
  expect(episodeStates(network)).toEqual(["freed"]);
});

test("alerts and episodes that continue across a reload keep their notification keys", async () => {
  const { network } = await startWithFailedNode({ config: remediationConfig([rebootOffline()], hold) });
  network.setFault({ kind: "region_dark", region: "ap-southeast" });
  await network.advance(15 * MINUTE_MS);
  await network.reload({ config: remediationConfig([rebootOffline()], { ...hold, maxInFlight: 2 }) });
  await network.advance(15 * MINUTE_MS);
  expect(new Set(notificationsOf(network, "incident").map(({ key, endsAt }) => `${key} ${endsAt}`)).size).toBe(1);
  expect(notificationsOf(network, "episode")).toHaveLength(1);
});

test("a reload waits for a command that is being journaled, and takes it over", async () => {
  const store = createMemoryStateStore();
  let whenOpen = Promise.resolve();
  const commit: typeof store.journal.commit = async (changes) => {
    if (changes.some(({ kind }) => kind === "command")) await whenOpen;
    await store.journal.commit(changes);
  };
  const breaker = { share: 0, amount: 2, withinMs: HOUR_MS };
  const config = remediationConfig([rebootOffline()], { ...withoutLimits, breaker });
  const network = await startQuietNetwork({ config, store: { ...store, journal: { ...store.journal, commit } } });
  for (const node of network.nodes("us-east").slice(0, 4)) network.failNode(node, "operator");
  await network.advance(10 * MINUTE_MS);
  expect(network.controller().view.status().breaker).not.toBeNull();
  let open = () => {};
  whenOpen = new Promise((resolve) => {
    open = resolve;
  });
  const [controller, commands] = [network.controller(), network.commands("alice")];
  const reply = commands.resetBreaker();
  let isStopped = false;
  const stopped = controller.stop(0).then(() => {
    isStopped = true;
  });
  await network.advance(MINUTE_MS);
  expect(isStopped).toBe(false);
  expect(await commands.pause("too late")).toEqual({
    ok: false,
    error: { kind: "stopping", message: expect.stringMatching(/nothing has changed; try again/) },
  });
  open();
  await stopped;
  expect(await reply).toMatchObject({ ok: true });
  await network.reload({ config });
  await network.advance(5 * MINUTE_MS);
  expect(network.controller().view.status()).toMatchObject({ breaker: null, paused: null });
});

test("a reload that shortens `storm_cooldown` shortens the hold after untrusted data", async () => {
  const configWith = (stormCooldownMs: number) => remediationConfig([rebootOffline()], { stormCooldownMs });
  const network = await startQuietNetwork({ config: configWith(12 * HOUR_MS) });
  const [node] = network.nodes("us-east");
  network.setFault({ kind: "empty_list" });
  await network.advance(10 * MINUTE_MS);
  network.setFault(null);
  network.failNode(node!);
  await network.advance(HOUR_MS);
  expect(network.holdReasons(node!)).toEqual(["sight_cooldown"]);
  await network.reload({ config: configWith(15 * MINUTE_MS) });
  await network.advance(14 * MINUTE_MS);
  expect(network.holdReasons(node!)).toEqual(["sight_cooldown"]);
  await network.advance(2 * MINUTE_MS);
  expect(nodesActedOn(network)).toEqual([node]);
});
