import { expect, test } from "vitest";
import { DAY_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { startDaemonGroup } from "../harness/daemon-group.ts";
import { START_MS } from "../harness/virtual-daemon.ts";

test.each([-31, 31])(
  "a leader shows the month of the service while the wall clock is wrong by %i days",
  async (days) => {
    const group = await startDaemonGroup({ daemons: 1 });
    await group.advance(5 * MINUTE_MS);
    group.clock.stepWallClock(days * DAY_MS);
    await group.advance(5 * MINUTE_MS);
    expect(group.daemons[0]!.roleSwitch.active.collected().month.startMs).toBe(START_MS);
  },
);

test("a standby whose wall clock is in the month before shows the month and the calls of its leader", async () => {
  const group = await startDaemonGroup();
  await group.advance(5 * MINUTE_MS);
  group.clock.stepWallClock(-31 * DAY_MS);
  await group.advance(5 * MINUTE_MS);
  const [leader, standby] = group.daemons.map(({ roleSwitch }) => roleSwitch.active.collected());
  expect([standby!.month.startMs, leader!.month.startMs]).toEqual([START_MS, START_MS]);
  expect(standby!.ledger.monthUsed).toBe(leader!.ledger.monthUsed);
});
