import { expect, test } from "vitest";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createHistory, recordHistory } from "../../../src/web/api/history.ts";
import {
  createRecordingLog,
  START_MS,
  startVirtualDaemon,
  statusSnapshotOf,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";

const MINUTE = 60_000;

/** Starts a daemon over 40 nodes, and returns its current status snapshot. */
async function startWithSnapshot() {
  const daemon = await startVirtualDaemon({ scenario: { nodes: 40, sessions: 200 } });
  return { daemon, statusSnapshot: () => statusSnapshotOf(daemon) };
}

test("unknown values are null", async () => {
  const { daemon, statusSnapshot } = await startWithSnapshot();
  const history = createHistory();
  history.add(statusSnapshot());
  await daemon.clock.advance(5 * MINUTE);
  history.add(statusSnapshot());
  const { at, series } = history.view();
  expect(at).toEqual([START_MS / 1_000, START_MS / 1_000 + 300]);
  const fleet = daemon.snapshots.last!.fleet;
  expect(series.nodes).toEqual([null, 40]);
  expect(series.online).toEqual([null, fleet.status.filter((status) => status === 0).length]);
  expect(series.active_sessions![1]).toBeGreaterThan(0);
  expect(series.month_calls).toEqual([0, daemon.rateLimiter.ledger.monthUsed]);
  expect(series.node_management_left![1]).toBeGreaterThan(0);
  await stopVirtualDaemon(daemon);
});

test("stale values are null", async () => {
  const { daemon, statusSnapshot } = await startWithSnapshot();
  const history = createHistory();
  await daemon.clock.advance(5 * MINUTE);
  history.add(statusSnapshot());
  const later = { ...statusSnapshot(), monotonic: daemon.clock.monotonic() + 4 * MINUTE };
  history.add(later);
  expect(history.view().series.online![0]).toBeGreaterThan(0);
  expect(history.view().series.online![1]).toBeNull();
  await stopVirtualDaemon(daemon);
});

test("has no samples of the future after the wall clock was set back", async () => {
  const { daemon, statusSnapshot } = await startWithSnapshot();
  const history = createHistory();
  for (const seconds of [0, 10, 20, 30, 12, 22]) history.add({ ...statusSnapshot(), now: seconds * 1_000 });
  const { at, series } = history.view();
  expect([at, series.month_calls!.length]).toEqual([[0, 10, 12, 22], 4]);
  await stopVirtualDaemon(daemon);
});

test("keeps an hour of samples, one every ten seconds", async () => {
  const { daemon, statusSnapshot } = await startWithSnapshot();
  const clock = createVirtualClock(START_MS);
  const history = createHistory();
  const stop = new AbortController();
  const log = createRecordingLog();
  let isBroken = false;
  const shown = () => {
    if (isBroken) throw new Error("a defect");
    return { ...statusSnapshot(), now: clock.now() };
  };
  const keeping = recordHistory(history, shown, { clock, log }, stop.signal);
  await clock.advance(2 * 60 * MINUTE);
  const { at, step_seconds } = history.view();
  expect(step_seconds).toBe(10);
  expect([at.length, at.at(-1)! - at[0]!]).toEqual([360, 3_590]);
  expect(at.at(-1)).toBe(START_MS / 1_000 + 7_200);
  isBroken = true;
  await clock.advance(20_000);
  expect(history.view().at.at(-1)).toBe(START_MS / 1_000 + 7_200);
  expect(log.lines).toHaveLength(2);
  isBroken = false;
  await clock.advance(10_000);
  expect(history.view().at.at(-1)).toBe(START_MS / 1_000 + 7_230);
  stop.abort();
  await keeping;
  await stopVirtualDaemon(daemon);
});
