import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { COLLECTORS } from "../../src/model/snapshot.ts";
import { FRESH_MS_MAX } from "../../src/scheduling/planner.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { createService } from "../../src/simulator/http/service.ts";
import { listsOnlySettings } from "../harness/daemon/quiet-network.ts";
import {
  createPlanLimits,
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
} from "../harness/daemon/virtual-daemon.ts";
import { rebootOffline, remediationConfig } from "../harness/policies.ts";
import { createSimulatedTransport } from "../harness/simulator/transport.ts";

const config = remediationConfig([rebootOffline()]);

const trustReasons = (daemon: VirtualDaemon) => daemon.controller!.view.status().trust.map(({ reason }) => reason);

test("data becomes stale and untrusted once the month is used up, and the plan's gauges stay finite", async () => {
  const scenario = { nodes: 40, sessions: 100 };
  const daemon = await startVirtualDaemon({ config, scenario, settings: { limits: createPlanLimits("starter") } });
  await daemon.clock.advance(HOUR_MS);
  expect(trustReasons(daemon)).toEqual([]);
  daemon.rateLimiter.ledger.monthUsed = 100_000;
  await daemon.clock.advance(4 * HOUR_MS);
  const planned = daemon.collectorManager.plan();
  expect(planned.nodes!.intervalMs).toBe(Number.POSITIVE_INFINITY);
  for (const collector of COLLECTORS) {
    expect(planned[collector]!.freshMs).toBeLessThanOrEqual(FRESH_MS_MAX[collector]);
    expect(planned[collector]!.pacedMs).toBeLessThan(DAY_MS);
  }
  const { fleet } = daemon.snapshots.last!;
  expect(daemon.clock.monotonic() - fleet.settledAt!).toBeGreaterThan(planned.nodes!.freshMs);
  expect(trustReasons(daemon)).toContain("inventory_incomplete");
  expect(await daemon.metrics.render("text")).not.toMatch(/^proxywarden_plan_\S+ \+?Inf/m);
  await stopVirtualDaemon(daemon);
});

test("a complete walk that takes longer than three planned intervals is fresh", async () => {
  const clock = createVirtualClock(START_MS);
  const options = { ...defaultScenario.service, pageLimitMax: 10, plan: "enterprise" } as const;
  const service = createService({ ...defaultScenario, nodes: 1_000, sessions: 20, service: options }, START_MS);
  const transport = createSimulatedTransport(service, clock, { latencyMs: 9 * SECOND_MS });
  const schedules = { ...everyMinuteSettings.schedules, details: null };
  // Three concurrent pages of nine seconds each: 20 a minute.
  const plan = { requestsPerMinute: null, concurrentRequests: 4, callsPerMonth: null };
  const settings = { limits: { ...createPlanLimits("enterprise"), plan }, schedules };
  const daemon = await startVirtualDaemon({ config, clock, service, transport, settings });
  await clock.advance(20 * MINUTE_MS);
  const untrusted: string[] = [];
  let oldest = 0;
  for (let minute = 0; minute < 12; minute++) {
    await clock.advance(MINUTE_MS);
    oldest = Math.max(oldest, clock.monotonic() - daemon.snapshots.last!.fleet.settledAt!);
    untrusted.push(...trustReasons(daemon));
  }
  // By the planned interval it would be stale.
  expect(oldest).toBeGreaterThan(3 * daemon.collectorManager.plan().nodes!.intervalMs);
  expect(untrusted).toEqual([]);
  await stopVirtualDaemon(daemon);
});

test("the regular snapshot is due a minute after the last one, also if a walk published that", async () => {
  const daemon = await startVirtualDaemon({ settings: listsOnlySettings });
  await daemon.clock.advance(5 * MINUTE_MS);
  const { sequence } = daemon.snapshots.last!;
  await daemon.clock.advance(10 * MINUTE_MS);
  expect(daemon.snapshots.last!.sequence - sequence).toBe(10);
  await stopVirtualDaemon(daemon);
});
