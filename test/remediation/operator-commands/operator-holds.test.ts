import { expect, onTestFinished, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { formatTime } from "../../../src/model/time.ts";
import { journalRows } from "../../harness/daemon/journal-rows.ts";
import { ONE_NODE, type QuietNetwork, startQuietNetwork } from "../../harness/daemon/quiet-network.ts";
import { rebootOffline, remediationConfig } from "../../harness/policies.ts";

const config = remediationConfig([rebootOffline()]);

/** The journaled commands, oldest first. */
const journaled = (network: QuietNetwork) =>
  journalRows(network.store, "operator_commands").map(({ command, operator, node, detail }) => [
    command,
    operator,
    node,
    detail,
  ]);

const countOf = async (network: QuietNetwork, command: string, source: string): Promise<string | undefined> => {
  const text = await network.daemon.metrics.render("text");
  const series = `proxywarden_operator_commands_total{command="${command}",source="${source}"} `;
  return text
    .split("\n")
    .find((line) => line.startsWith(series))
    ?.slice(series.length);
};

test("a pause for half an hour holds every node, and then ends by itself: journaled, logged and counted", async () => {
  const network = await startQuietNetwork({ config });
  const [node] = network.nodes();
  const until = network.daemon.clock.now() + 30 * MINUTE_MS;
  const reply = await network.commands("alice").pause("a release", 30 * MINUTE_MS);
  const end = formatTime(until);
  expect(reply).toEqual({ ok: true, value: `paused: a release; no action is taken until ${end} or resume` });
  network.failNode(node!);
  await network.advance(29 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.controller().view.status().paused).toMatchObject({ operator: "alice", until });
  const details = network.explain(node!).policies.flatMap(({ blockers }) => blockers);
  expect(details.find(({ reason }) => reason === "paused")?.detail).toMatch(
    new RegExp(`^since .* by alice, until ${end}: a release$`),
  );
  await network.advance(MINUTE_MS + SECOND_MS);
  expect(network.controller().view.status().paused).toBeNull();
  expect(journaled(network)).toEqual([
    ["pause", "alice", null, reply.ok && reply.value],
    ["resume", null, null, "the pause by alice has expired"],
  ]);
  expect(await countOf(network, "pause", "operator")).toBe("1");
  expect(await countOf(network, "resume", "expiry")).toBe("1");
  await network.advance(5 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
});

test("a hold for two hours keeps policies from one node, and then ends by itself", async () => {
  const network = await startQuietNetwork({ config });
  const [node, other] = network.nodes();
  const commands = network.commands("bob");
  await commands.hold(node!, "its disk is swapped", 2 * HOUR_MS);
  await commands.hold(other!, "for good");
  network.failNode(node!);
  await network.advance(119 * MINUTE_MS);
  expect(network.postCount()).toBe(0);
  expect(network.explain(node!).holds).toMatchObject([{ kind: "held", operator: "bob" }]);
  await network.advance(6 * MINUTE_MS);
  expect(network.postCount()).toBe(1);
  expect(network.explain(node!).holds).toEqual([]);
  expect(network.explain(other!).holds).toMatchObject([{ kind: "held", until: null }]);
  expect(journaled(network).at(-1)).toEqual(["release", null, node, "the hold by bob has expired"]);
  expect(await countOf(network, "release", "expiry")).toBe("1");
});

test("a pause that expires between two walks ends at that time, not with the next walk", async () => {
  const network = await startQuietNetwork({ config });
  const walkedAt = () => network.daemon.snapshots.last!.fleet.settledAt;
  const before = walkedAt();
  await network.advanceUntil(() => walkedAt() !== before);
  const last = walkedAt();
  await network.commands().pause("a test", 5 * SECOND_MS);
  await network.advance(6 * SECOND_MS);
  expect(journaled(network).at(-1)).toEqual(["resume", null, null, "the pause has expired"]);
  expect(walkedAt()).toBe(last);
});

test("a pause that expires while the daemon is down has ended when it starts", async () => {
  const network = await startQuietNetwork({ config });
  await network.commands("alice").pause("a release", 30 * MINUTE_MS);
  await network.restart({ downMs: HOUR_MS });
  await network.advance(2 * MINUTE_MS);
  expect(network.controller().view.status().paused).toBeNull();
  expect(journaled(network).at(-1)).toEqual(["resume", null, null, "the pause by alice has expired"]);
});

test("a new pause or hold replaces the previous one with its end, and resume and release end them early", async () => {
  const network = await startQuietNetwork({ config });
  const [node] = network.nodes();
  const commands = network.commands("alice");
  await commands.pause("one", 10 * MINUTE_MS);
  await commands.pause("two");
  await commands.hold(node!, "one", 10 * MINUTE_MS);
  await commands.hold(node!, "two", HOUR_MS);
  await network.advance(20 * MINUTE_MS);
  expect(network.controller().view.status().paused).toMatchObject({ reason: "two", until: null });
  expect(network.explain(node!).holds).toMatchObject([{ reason: "alice holds it: two" }]);
  await commands.resume();
  await commands.release(node!);
  await network.advance(HOUR_MS);
  expect(journaled(network).map(([order]) => order)).toEqual(["pause", "pause", "hold", "hold", "resume", "release"]);
});

test("a pause is exported while the service can't be read, also after a restart", async () => {
  const network = await startQuietNetwork({ config });
  const isPaused = async () => (await network.daemon.metrics.render("text")).includes("\nproxywarden_paused 1\n");
  network.setFault({ kind: "hang" });
  await network.restart();
  expect(await isPaused()).toBe(false);
  await network.commands().pause("an outage of the service");
  expect(await isPaused()).toBe(true);
  await network.restart();
  expect(network.daemon.snapshots.last).toBeNull();
  expect(await isPaused()).toBe(true);
});

/** Restarts after a downtime of three hours while the service does not answer, so that the length is not known yet. */
async function restartBehind(network: QuietNetwork): Promise<void> {
  network.setFault({ kind: "hang" });
  await network.restart({ downMs: 3 * HOUR_MS });
}

test.each(["pause", "hold"] as const)(
  "a %s for two hours that begins before the downtime is known lasts two hours",
  async (command) => {
    const network = await startQuietNetwork({ config });
    const [node] = network.nodes();
    await restartBehind(network);
    const commands = network.commands("alice");
    const reply = await (command === "pause"
      ? commands.pause("an outage", 2 * HOUR_MS)
      : commands.hold(node!, "an outage", 2 * HOUR_MS));
    expect(reply).toMatchObject({ ok: true, value: expect.stringMatching(/until 2h from now or /) });
    network.failNode(node!);
    await network.advance(5 * MINUTE_MS);
    network.setFault(null);
    await network.advance(110 * MINUTE_MS);
    expect(network.holdReasons(node!)).toEqual([command === "pause" ? "paused" : "held"]);
    expect(network.postCount()).toBe(0);
    await network.advance(10 * MINUTE_MS);
    expect(network.postCount()).toBe(1);
  },
);

test("a pause from before a crash lasts until its end even if the downtime before it was not known yet", async () => {
  const network = await startQuietNetwork({ config });
  await restartBehind(network);
  await network.commands("alice").pause("an outage", 2 * HOUR_MS);
  await network.advance(5 * MINUTE_MS);
  network.kill();
  network.setFault(null);
  await network.restart();
  await network.advance(105 * MINUTE_MS);
  expect(network.controller().view.status().paused).toMatchObject({ operator: "alice" });
  await network.advance(15 * MINUTE_MS);
  expect(network.controller().view.status().paused).toBeNull();
});

test("a pause that is being journaled while the downtime becomes known keeps its duration", async () => {
  const store = createMemoryStateStore();
  let whenOpen = Promise.resolve();
  const commit: typeof store.journal.commit = async (changes) => {
    if (changes.some(({ kind }) => kind === "command")) await whenOpen;
    await store.journal.commit(changes);
  };
  const network = await startQuietNetwork({ config, store: { ...store, journal: { ...store.journal, commit } } });
  await restartBehind(network);
  let open = () => {};
  whenOpen = new Promise((resolve) => {
    open = resolve;
  });
  const reply = network.commands("alice").pause("an outage", 2 * HOUR_MS);
  network.setFault(null);
  await network.advance(5 * MINUTE_MS);
  open();
  expect(await reply).toMatchObject({ ok: true });
  await network.advance(110 * MINUTE_MS);
  expect(network.controller().view.status().paused).toMatchObject({ operator: "alice" });
});

test("a pause that begins while the clocks disagree keeps its duration when the wall clock is corrected", async () => {
  const network = await startQuietNetwork({ config });
  network.daemon.clock.stepWallClock(-3 * HOUR_MS);
  await network.restart({ downMs: HOUR_MS });
  await network.advance(5 * MINUTE_MS);
  await network.commands("alice").pause("until the clock is right", 30 * MINUTE_MS);
  await network.advance(8 * MINUTE_MS);
  network.daemon.clock.stepWallClock(3 * HOUR_MS);
  await network.advance(20 * MINUTE_MS);
  expect(network.controller().view.status().paused).toMatchObject({ operator: "alice" });
  await network.advance(3 * MINUTE_MS);
  expect(network.controller().view.status().paused).toBeNull();
});

test("a node that others rebooted can be released although a round did not end before the operator's hold expired", async () => {
  let answers = Promise.resolve({ ok: true, value: true } as const);
  const policy = rebootOffline({
    when: 'node.status == "online"',
    match: `node.id == "${ONE_NODE}"`,
    blockedBy: [{ kind: "query", query: "up" }],
  });
  const network = await startQuietNetwork({
    config: remediationConfig([policy]),
    externalBlockers: { blocks: () => answers },
  });
  const node = ONE_NODE;
  await network.advance(10 * MINUTE_MS);
  await network.commands().hold(node, "a test", 5 * MINUTE_MS);
  network.interventions.restart(node);
  await network.advance(2 * MINUTE_MS);
  const { promise, resolve } = Promise.withResolvers<Awaited<typeof answers>>();
  answers = promise;
  await network.advance(4 * MINUTE_MS);
  onTestFinished(() => resolve({ ok: true, value: true }));
  expect(network.holdReasons(node)).toContain("ownership");
  expect(network.explain(node).holds).toMatchObject([{ kind: "ownership" }]);
  const release = network.commands().release(node);
  await network.advance(SECOND_MS);
  expect(await release).toMatchObject({ ok: true });
  expect(network.holdReasons(node)).not.toContain("ownership");
});
