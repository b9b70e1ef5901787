import { expect, test } from "vitest";
import { planMonth } from "../../../src/rate-limit/billing-month.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createHistory, keepHistory } from "../../../src/web/api/history.ts";
import type { Scene } from "../../../src/web/api/status-views.ts";
import { createKeptLog, START_MS, startDaemon, stopDaemon } from "../../harness/virtual-daemon.ts";

const MINUTE = 60_000;

/** A daemon over 40 nodes, and what its routes show at the moment. */
function startShown() {
  const daemon = startDaemon({ scenario: { nodes: 40, sessions: 200 } });
  const scene = (): Scene => ({
    ...{ version: "1.2.3", startedAt: START_MS, clockSkewMs: null },
    now: daemon.clock.now(),
    monotonic: daemon.clock.monotonic(),
    snapshot: daemon.snapshots.last,
    plan: daemon.watch.plan(),
    collectors: daemon.watch.collectors(),
    ledger: daemon.office.ledger,
    month: planMonth(daemon.clock.now(), 1),
  });
  return { daemon, scene };
}

test("what is not known yet is null, what is known is what the status says", async () => {
  const { daemon, scene } = startShown();
  const history = createHistory();
  history.add(scene());
  await daemon.clock.advance(5 * MINUTE);
  history.add(scene());
  const { at, series } = history.view();
  expect(at).toEqual([START_MS / 1_000, START_MS / 1_000 + 300]);
  const fleet = daemon.snapshots.last!.fleet;
  expect(series.nodes).toEqual([null, 40]);
  expect(series.online).toEqual([null, fleet.status.filter((status) => status === 0).length]);
  expect(series.active_sessions![1]).toBeGreaterThan(0);
  expect(series.month_calls).toEqual([0, daemon.office.ledger.monthUsed]);
  expect(series.node_management_left![1]).toBeGreaterThan(0);
  await stopDaemon(daemon);
});

test("what grew old is not known any more: a service that is down leaves a gap, not a flat line", async () => {
  const { daemon, scene } = startShown();
  const history = createHistory();
  await daemon.clock.advance(5 * MINUTE);
  history.add(scene());
  const later = { ...scene(), monotonic: daemon.clock.monotonic() + 4 * MINUTE };
  history.add(later);
  expect(history.view().series.online![0]).toBeGreaterThan(0);
  expect(history.view().series.online![1]).toBeNull();
  await stopDaemon(daemon);
});

test("a sample is taken every ten seconds, and an hour of them is kept", async () => {
  const { daemon, scene } = startShown();
  const clock = createVirtualClock(START_MS);
  const history = createHistory();
  const stop = new AbortController();
  const log = createKeptLog();
  let isBroken = false;
  const shown = () => {
    if (isBroken) throw new Error("a defect");
    return { ...scene(), now: clock.now() };
  };
  const keeping = keepHistory(history, shown, { clock, log }, stop.signal);
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
  await stopDaemon(daemon);
});
