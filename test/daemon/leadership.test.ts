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
