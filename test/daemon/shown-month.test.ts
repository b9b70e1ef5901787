import { expect, test } from "vitest";
import { DAY_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { CALLS_USED_BEFORE_FACT } from "../../src/daemon/leadership-term.ts";
import { startDaemonGroup } from "../harness/daemon/daemon-group.ts";
import { START_MS } from "../harness/daemon/virtual-daemon.ts";

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

test("a standby shows the calls that limits.month.used adds", async () => {
  const group = await startDaemonGroup();
  await group.advance(MINUTE_MS);
  const [leader, standby] = group.daemons.map(({ roleSwitch }) => roleSwitch.active);
  if (leader?.isLeading !== true) throw new Error("the first daemon does not lead");
  leader.term.remediationState.facts.write(CALLS_USED_BEFORE_FACT, JSON.stringify({ day: "2026-03-01", used: 500 }));
  await group.advance(MINUTE_MS);
  expect(standby!.collected().ledger.monthUsed).toBe(leader.collected().ledger.monthUsed + 500);
});
