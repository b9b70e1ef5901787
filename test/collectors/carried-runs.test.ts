import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import {
  everyMinuteSettings,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
} from "../harness/daemon/virtual-daemon.ts";

const callsTo = async ({ metrics }: VirtualDaemon, endpoint: string) =>
  Number(
    new RegExp(`^proxywarden_api_requests_total\\{endpoint="${endpoint}",.*\\} (\\d+)$`, "m").exec(
      await metrics.render("text"),
    )?.[1] ?? 0,
  );

test("after a reload each interval continues from the last run", async () => {
  const schedules = { ...everyMinuteSettings.schedules, details: null };
  const store = createMemoryStateStore();
  const first = await startVirtualDaemon({ store, settings: { schedules }, scenario: { nodes: 40, sessions: 100 } });
  await first.clock.advance(2 * MINUTE_MS + 30 * SECOND_MS);
  const stopped = first.collectorManager.stop();
  await first.clock.advance(0);
  await stopped;
  const { clock, service, collected, serviceClock, remediationState } = first;
  const every = { kind: "every", intervalMs: 5 * MINUTE_MS } as const;
  const settings = { schedules: { ...schedules, stats: every } };
  const second = await startVirtualDaemon({
    store,
    clock,
    service,
    collected,
    serviceClock,
    remediationState,
    settings,
  });
  await clock.advance(20 * SECOND_MS);
  for (const endpoint of ["nodes_list", "sessions_list", "stats", "hourly"]) {
    expect(await callsTo(second, endpoint), endpoint).toBe(0);
  }
  await clock.advance(30 * SECOND_MS);
  expect(await callsTo(second, "nodes_list")).toBe(1);
  expect(await callsTo(second, "stats")).toBe(0);
  await stopVirtualDaemon(second);
});
