import { expect, test } from "vitest";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../../../src/base/duration.ts";
import type { CollectionSettings } from "../../../../src/collectors/collector-manager.ts";
import type { Mode } from "../../../../src/model/policy/policy.ts";
import type { ActionState } from "../../../../src/model/remediation/episode.ts";
import { createVirtualClock } from "../../../../src/simulator/clock.ts";
import { createSlowStore, listsOnlySettings, startWithFailedNode } from "../../../harness/daemon/quiet-network.ts";
import { businessLimits, START_MS } from "../../../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../../../harness/policies.ts";

/** A network whose journal takes some time to write an action in a state. */
async function startWithSlowJournal(
  slowState: ActionState,
  delayMs: DurationMs,
  { mode = "enforce", settings = listsOnlySettings }: { mode?: Mode; settings?: Partial<CollectionSettings> } = {},
) {
  const clock = createVirtualClock(START_MS);
  const slow = { commits: 0 };
  const store = createSlowStore(clock, (changes) => {
    if (!changes.some((change) => change.kind === "action" && change.row.state === slowState)) return 0;
    slow.commits++;
    return delayMs;
  });
  const config = remediationConfig([rebootOffline({ mode })]);
  const { network } = await startWithFailedNode({ config, clock, store, settings });
  return { network, slow };
}

async function startWithSlowPosting(delayMs: DurationMs, settings?: Partial<CollectionSettings>) {
  const { network, slow } = await startWithSlowJournal("posting", delayMs, settings && { settings });
  await network.advanceUntil(() => slow.commits === 1);
  return network;
}

/** Starts a network in which an action waits for approval. */
async function startWithRequest(slowState: ActionState) {
  const { network, slow } = await startWithSlowJournal(slowState, 20 * SECOND_MS, { mode: "approve" });
  await network.advanceUntil(() => network.controller().view.approvals().length > 0);
  const { id, node } = network.controller().view.approvals()[0]!;
  return { network, slow, id, node };
}

/** Starts a network in which an action was approved during a pause that ends in a second. Rejections are slow. */
async function startApprovedBeforePauseEnds() {
  const started = await startWithRequest("rejected");
  const { network, id } = started;
  await network.commands().pause("a test", 5 * MINUTE_MS);
  await network.commands().approve(id);
  await network.advance(5 * MINUTE_MS - SECOND_MS);
  return started;
}

test("a POST follows a slow journal, and collectors continue in the meantime", async () => {
  const network = await startWithSlowPosting(20 * SECOND_MS);
  expect([network.postCount(), network.actions()[0]!.state]).toEqual([0, "intended"]);
  await network.advance(MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("an action counts as sent from its POST, not from when a slow journal began to record it", async () => {
  const network = await startWithSlowPosting(20 * SECOND_MS);
  await network.advanceUntil(() => network.postCount() === 1);
  const postedAt = network.daemon.remediationState.now();
  await network.advance(SECOND_MS);
  const { sentAt, state } = network.actions()[0]!;
  expect(state).toBe("sent");
  expect(Math.abs(sentAt! - postedAt)).toBeLessThanOrEqual(SECOND_MS);
});

test.each(["stop", "reload"] as const)("a %s while `posting` is journaled prevents the POST", async (what) => {
  const network = await startWithSlowPosting(5 * SECOND_MS);
  await network[what]({});
  expect(network.postCount()).toBe(0);
  const detail = "the daemon stopped, or reloaded its configuration, before it was sent";
  expect(network.actions()).toMatchObject([{ state: "withdrawn", detail }]);
});

test("an action whose node was read before a slow commit is not sent on old data", async () => {
  const network = await startWithSlowPosting(40 * SECOND_MS);
  await network.advance(45 * SECOND_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()[0]).toMatchObject({
    state: "ended",
    detail:
      "the journal, or a suspension of the machine, delayed the action until 40s after the read of its node; the maximum is 30s",
    sentAt: null,
  });
});

test("a node that a walk shows as online while `posting` is journaled is not acted on", async () => {
  const network = await startWithSlowPosting(25 * SECOND_MS, {
    schedules: { ...listsOnlySettings.schedules!, nodes: { kind: "every", intervalMs: 10 * SECOND_MS } },
  });
  const { node } = network.actions()[0]!;
  const recoverAt = network.daemon.clock.now() + SECOND_MS;
  network.interventions.startFailure(node, { failureMode: "outage", remedy: "time", recoverAt });
  await network.advance(MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.actions()).toMatchObject([{ state: "withdrawn", sentAt: null }]);
});

test("an action that the limits delay for too long after the read of its node names them", async () => {
  const node_management = { requests: 3, burst: 6, windowMs: MINUTE_MS };
  const limits = { ...businessLimits, categories: { ...businessLimits.categories, node_management } };
  const { network, node } = await startWithFailedNode({
    config: remediationConfig([rebootOffline()]),
    settings: { ...listsOnlySettings, limits },
  });
  await network.advanceUntil(() => network.holdReasons(node).includes("backoff"));
  expect(network.actions().at(-1)).toMatchObject({
    state: "ended",
    detail:
      "the limits, or a suspension of the machine, delayed the action until 1m after the read of its node; the maximum is 30s",
    sentAt: null,
  });
});

test("an approved action that is rejected when its node is due is not sent, although the journal is slow", async () => {
  const { network, slow, id, node } = await startApprovedBeforePauseEnds();
  const rejection = network.commands().reject(id, "a mistake");
  await network.advance(10 * SECOND_MS);
  // The pause is over, so the action is due.
  expect([slow.commits, network.controller().view.status().paused]).toEqual([1, null]);
  await network.advance(2 * MINUTE_MS);
  expect(await rejection).toMatchObject({ ok: true });
  expect(network.actions()).toMatchObject([{ id, state: "rejected" }]);
  expect(network.holdReasons(node)).toEqual(["rejected"]);
  expect(network.postCount()).toBe(0);
});

test("an action that is about to be sent can't be rejected; a hold stops it, and then it can", async () => {
  const { network, slow, id, node } = await startWithRequest("intended");
  await network.commands().approve(id);
  await network.advanceUntil(() => slow.commits === 1);
  const rejection = network.commands().reject(id, "a mistake");
  const hold = network.commands().hold(node, "a mistake");
  await network.advance(MINUTE_MS);
  const message = `${id} can't be rejected: it is about to be sent; "hold ${node}" may still prevent that`;
  expect(await rejection).toEqual({ ok: false, error: { kind: "conflict", message } });
  expect((await hold).ok).toBe(true);
  expect(network.actions()).toMatchObject([{ id, state: "approved" }]);
  expect((await network.commands().reject(id, "a mistake")).ok).toBe(true);
  expect(network.postCount()).toBe(0);
});

test("an approval that was rejected, and whose rejection was lifted, is not used although the journal was slow", async () => {
  const { network, slow, id, node } = await startApprovedBeforePauseEnds();
  const answers = [network.commands().reject(id, "a mistake"), network.commands().release(node)];
  await network.advance(10 * SECOND_MS);
  expect([slow.commits, network.controller().view.status().paused]).toEqual([1, null]);
  await network.advance(2 * MINUTE_MS);
  expect(await Promise.all(answers)).toMatchObject([{ ok: true }, { ok: true }]);
  expect(network.actions()).toMatchObject([{ id, state: "lapsed" }, { state: "awaiting" }]);
  expect(network.postCount()).toBe(0);
});
