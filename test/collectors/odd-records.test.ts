import { expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { createNetworkRenderer } from "../../src/metrics/render/renderer.ts";
import {
  everyMinuteSettings,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
} from "../harness/virtual-daemon.ts";
import { render, textOf } from "../metrics/naive-renderer.ts";
import { renderInput } from "../metrics/snapshot-fixtures.ts";

const NODES = 200;

/** Runs a daemon for three minutes over valid records, then for seven minutes with a share of invalid ones. */
async function startWithUnusualRecords(spoiled: number): Promise<VirtualDaemon> {
  const fault = { afterMs: 3 * MINUTE_MS, forMs: 60 * MINUTE_MS, fault: { kind: "bad_records", spoiled } } as const;
  const daemon = await startVirtualDaemon({
    scenario: { nodes: NODES, sessions: 400, faults: [fault] },
    settings: { schedules: { ...everyMinuteSettings.schedules, details: null } },
  });
  await daemon.clock.advance(10 * MINUTE_MS);
  return daemon;
}

test("invalid records are counted by reason, and neither remove nodes nor fail walks", async () => {
  const daemon = await startWithUnusualRecords(0.2);
  expect(daemon.snapshots.last!.fleet.count).toBe(NODES);
  expect(daemon.collectorManager.collectorHealth().nodes.failure).toBeNull();
  const page = await daemon.metrics.render("text");
  for (const reason of ["wrong_type", "missing_id", "unknown_status", "bad_time"]) {
    expect(page).toMatch(new RegExp(`records_rejected_total\\{collector="nodes",reason="${reason}"\\} [1-9]`));
  }
  await stopVirtualDaemon(daemon);
});

test("an invalid field does not affect other fields of the node", async () => {
  const daemon = await startWithUnusualRecords(1);
  const { fleet } = daemon.snapshots.last!;
  const fresh = [...fleet.listedAt].filter((at) => daemon.clock.monotonic() - at < 2 * MINUTE_MS);
  // Two of the eleven kinds of fault remove the id; nodes with any other are still read.
  expect(fresh.length / NODES).toBeGreaterThan(0.75);
  expect(fleet.lastWalk!.rejected / NODES).toBeLessThan(0.25);
  await stopVirtualDaemon(daemon);
});

test("invalid records do not duplicate series", async () => {
  const daemon = await startWithUnusualRecords(1);
  const snapshot = daemon.snapshots.last!;
  const options = { topCustomers: 1_000 };
  const page = textOf(render(createNetworkRenderer(), renderInput(snapshot, { now: snapshot.at, options })));
  const series = page
    .split("\n")
    .flatMap((line) => (line === "" || line.startsWith("#") ? [] : [/^.*(?= )/.exec(line)![0]]));
  expect(series.length).toBeGreaterThan(NODES);
  expect(series.filter((each, index) => series.indexOf(each) !== index)).toEqual([]);
  await stopVirtualDaemon(daemon);
});
