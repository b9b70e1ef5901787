import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { runAtOnce } from "../../src/base/steps.ts";
import { type GroupedDaemon, startDaemonGroup, startTrustedGroup } from "../harness/daemon/daemon-group.ts";
import { journalRows } from "../harness/daemon/journal-rows.ts";
import { commandsOf } from "../harness/operator-commands.ts";
import { rebootOffline, remediationConfig } from "../harness/policies.ts";

/** Keeps forwarded commands from a leader until the returned function is called. */
function delayForwardedCommands({ database }: GroupedDaemon): () => void {
  const { forwardedCommands } = database.state;
  const { pending } = forwardedCommands;
  const late: typeof pending = async () => [];
  Object.assign(forwardedCommands, { pending: late });
  return () => Object.assign(forwardedCommands, { pending });
}

test("a command that was forwarded late does not undo a later pause or hold", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  const [leader, standby] = [one!, two!].map(({ roleSwitch }, index) => commandsOf(roleSwitch.active, `op-${index}`));
  await leader!.pause("deploy");
  await leader!.hold("node_1", "disk swap");
  const deliver = delayForwardedCommands(one!);
  const forwarded = [standby!.resume(), standby!.release("node_1")];
  await group.advance(2 * SECOND_MS);
  await leader!.pause("incident");
  await leader!.hold("node_1", "broken again");
  deliver();
  await group.advance(4 * SECOND_MS);
  expect(await Promise.all(forwarded)).toMatchObject([
    { ok: false, error: { kind: "conflict", message: expect.stringContaining("paused after") } },
    { ok: false, error: { kind: "conflict", message: expect.stringContaining("held after") } },
  ]);
  const { view } = one!.roleSwitch.active;
  expect(view.status().paused).toMatchObject({ reason: "incident" });
  expect(runAtOnce(view.explain("node_1")).holds).toMatchObject([{ reason: "op-0 holds it: broken again" }]);
  const ended = [standby!.resume(), standby!.release("node_1")];
  await group.advance(2 * SECOND_MS);
  expect(await Promise.all(ended)).toMatchObject([{ ok: true }, { ok: true }]);
});

test("a command that was forwarded late neither closes a breaker nor accepts an inventory that its operator has not seen", async () => {
  const breaker = { share: 0, amount: 0, withinMs: HOUR_MS };
  const config = remediationConfig([rebootOffline({ forMs: MINUTE_MS })], { breaker });
  const group = await startTrustedGroup({ config });
  const [one, two] = group.daemons;
  const standby = commandsOf(two!.roleSwitch.active);
  const deliver = delayForwardedCommands(one!);
  for (const forwarded of [standby.resetBreaker(), standby.acceptInventory()]) {
    await group.advance(6 * SECOND_MS);
    expect(await forwarded).toMatchObject({ error: { kind: "unanswered" } });
  }
  group.failNode();
  const { view } = one!.roleSwitch.active;
  await group.advanceUntil(() => view.status().breaker !== null);
  const limit = view.status().largestWalkNodes;
  group.service.setFaults([
    {
      fault: { kind: "vanished", missing: 0.9 },
      afterMs: group.clock.monotonic(),
      forMs: HOUR_MS,
      match: "GET /v1/nodes?",
    },
  ]);
  await group.advance(3 * MINUTE_MS);
  deliver();
  await group.advance(10 * SECOND_MS);
  expect(view.status()).toMatchObject({ breaker: expect.anything(), largestWalkNodes: limit });
  const rejected = one!.log.lines.filter(({ message }) => message === "forwarded command rejected");
  expect(rejected.map(({ fields }) => fields.refusal)).toEqual([
    "the breaker opened after this reset-breaker was given, and stays open",
    "the list was read again after this accept-inventory was given: check it, and send the command again",
  ]);
});

test("commands that waited together take effect in the order in which they were given", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  const standby = commandsOf(two!.roleSwitch.active);
  const deliver = delayForwardedCommands(one!);
  const commands = [
    () => standby.pause("deploy"),
    () => standby.hold("node_1", "disk swap"),
    () => standby.pause("a longer deploy"),
    () => standby.hold("node_1", "another disk"),
    () => standby.resume(),
    () => standby.release("node_1"),
  ];
  for (const give of commands) {
    const reply = give();
    await group.advance(6 * SECOND_MS);
    expect(await reply).toMatchObject({ error: { kind: "unanswered" } });
  }
  deliver();
  await group.advance(10 * SECOND_MS);
  const { view } = one!.roleSwitch.active;
  expect(one!.log.lines.filter(({ message }) => message === "forwarded command rejected")).toEqual([]);
  expect(view.status().paused).toBeNull();
  expect(runAtOnce(view.explain("node_1")).holds).toEqual([]);
});

test("commands that were given before a takeover take effect in their order after it", async () => {
  const group = await startTrustedGroup({ daemons: 3 });
  const [leader, standby] = group.daemons;
  leader!.pause();
  const commands = commandsOf(standby!.roleSwitch.active);
  const replies = [commands.pause("deploy"), commands.hold("node_1", "disk swap")];
  await group.advance(2 * SECOND_MS);
  replies.push(commands.resume(), commands.release("node_1"));
  await group.advance(MINUTE_MS);
  for (const reply of await Promise.all(replies)) expect(reply).toMatchObject({ error: { kind: "unanswered" } });
  await group.advance(2 * MINUTE_MS);
  expect(group.leaders()).not.toContain("one");
  const executed = journalRows(group.database.store, "operator_commands").map(({ command }) => command);
  expect(executed).toEqual(["pause", "hold", "resume", "release"]);
});

test("a command that was given before a takeover does not undo a pause or hold made after it, even once the downtime is known", async () => {
  const group = await startTrustedGroup({ daemons: 3 });
  const standbys = group.daemons.slice(1);
  group.daemons[0]!.pause();
  const commands = commandsOf(standbys[0]!.roleSwitch.active);
  const replies = [commands.resume(), commands.release("node_1")];
  const deliver = standbys.map(delayForwardedCommands);
  await group.advanceUntil(() => standbys.some(({ roleSwitch }) => roleSwitch.isLeading()));
  const { active } = standbys.find(({ roleSwitch }) => roleSwitch.isLeading())!.roleSwitch;
  await commandsOf(active).pause("incident");
  await commandsOf(active).hold("node_1", "broken");
  await group.advance(MINUTE_MS);
  for (const reply of await Promise.all(replies)) expect(reply).toMatchObject({ error: { kind: "unanswered" } });
  for (const each of deliver) each();
  await group.advance(10 * SECOND_MS);
  expect(active.view.status().paused).toMatchObject({ reason: "incident" });
  expect(runAtOnce(active.view.explain("node_1")).holds).toMatchObject([{ kind: "held" }]);
});

test("a command that was given before a pause does not end it although the downtime became known in between", async () => {
  const group = await startTrustedGroup({ daemons: 3 });
  const standbys = group.daemons.slice(1);
  group.daemons[0]!.pause();
  const deliver = standbys.map(delayForwardedCommands);
  await group.advanceUntil(() => standbys.some(({ roleSwitch }) => roleSwitch.isLeading()));
  const [leader, standby] = standbys.toSorted((a) => (a.roleSwitch.isLeading() ? -1 : 1));
  const reply = commandsOf(standby!.roleSwitch.active).resume();
  await group.clock.advance(100);
  await commandsOf(leader!.roleSwitch.active).pause("incident");
  await group.advance(MINUTE_MS);
  expect(await reply).toMatchObject({ error: { kind: "unanswered" } });
  for (const each of deliver) each();
  await group.advance(10 * SECOND_MS);
  expect(leader!.roleSwitch.active.view.status().paused).toMatchObject({ reason: "incident" });
});

test("a command that waits for a takeover is answered with the name of the daemon that executed it", async () => {
  const group = await startTrustedGroup();
  const [one, two] = group.daemons;
  one!.pause();
  await group.advance(13 * SECOND_MS);
  const resumed = commandsOf(two!.roleSwitch.active).pause("deploy");
  await group.advance(5 * SECOND_MS);
  expect(await resumed).toMatchObject({ value: expect.stringContaining("executed by the leader, two (http://two)") });
});

test("a leader logs when it can't read forwarded commands, and when it can again, even if its lease has ended", async () => {
  const group = await startDaemonGroup();
  await group.advance(MINUTE_MS);
  const [one] = group.daemons;
  const logged = () => one!.log.lines.map(({ message }) => message).filter((message) => message.includes("forwarded"));
  for (const { database } of group.daemons) database.isReachable = false;
  await group.advance(MINUTE_MS);
  expect(one!.roleSwitch.isLeading()).toBe(false);
  expect(logged()).toEqual(["forwarded commands not processed; trying again"]);
  one!.database.isReachable = true;
  await group.advance(MINUTE_MS);
  expect(one!.roleSwitch.isLeading()).toBe(true);
  expect(logged().slice(1)).toEqual(["forwarded commands are processed again"]);
});
