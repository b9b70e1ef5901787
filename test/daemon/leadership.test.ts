import { expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { startDaemonGroup } from "../harness/daemon/daemon-group.ts";

test("a daemon that is elected, and then can't read who holds the lease, does not name the last leader", async () => {
  const group = await startDaemonGroup();
  await group.advance(MINUTE_MS);
  const [one, two] = group.daemons;
  expect(two!.roleSwitch.leadership!.leader()).toMatchObject({ holder: "one" });
  const { lease } = two!.database.state;
  const { current } = lease;
  const unreadable = () => Promise.reject(new Error("the connection broke"));
  Object.assign(lease, { current: () => (lease.epoch() === null ? current() : unreadable()) });
  await one!.stop();
  await group.advanceUntil(() => two!.roleSwitch.isLeading());
  expect(two!.roleSwitch.leadership!.leader()).toBeNull();
  expect(two!.log.lines.map(({ message }) => message)).not.toContain("lease not acquired; trying again");
});

test("a daemon that is elected again and again, but can't lead, logs that once, and its election once it leads", async () => {
  const group = await startDaemonGroup();
  await group.advance(MINUTE_MS);
  const [one, two] = group.daemons;
  const { state } = two!.database;
  const { openStore } = state;
  let attempts = 0;
  const unreadable = () => Promise.reject(new Error(`permission denied (${++attempts})`));
  Object.assign(state, { openStore: unreadable });
  const before = two!.log.lines.length;
  await one!.stop();
  await group.advanceUntil(() => attempts === 5);
  Object.assign(state, { openStore });
  await group.advanceUntil(() => two!.roleSwitch.isLeading());
  expect(two!.log.lines.slice(before).map(({ message }) => message)).toEqual([
    "elected leader",
    "this daemon can't lead and releases the lease; trying again",
    "elected leader",
  ]);
});
