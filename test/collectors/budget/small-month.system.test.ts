import { expect, test } from "vitest";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { PLANS } from "../../../src/rate-limit/limits.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import {
  createPlanLimits,
  everyMinuteSettings,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";

const MINUTE = 60_000;

test("few calls last until the end of the month, and the next month is noticed without a cron schedule", async () => {
  const limits = { ...createPlanLimits("starter"), plan: { ...PLANS.starter, callsPerMonth: 1_000 } };
  const hourly = { kind: "every", intervalMs: 60 * MINUTE } as const;
  const store = createMemoryStateStore();
  store.calls.add("2026-03-15", 960);
  const clock = createVirtualClock(Date.UTC(2026, 2, 31, 18));
  const settings = { limits, schedules: { ...everyMinuteSettings.schedules, hourly } };
  const daemon = await startVirtualDaemon({ clock, store, settings, scenario: { nodes: 100, sessions: 50 } });
  const calls: number[] = [];
  for (const hours of [6, 12]) {
    const before = daemon.service.serial;
    await clock.advance(hours * 60 * MINUTE);
    calls.push(daemon.service.serial - before);
  }
  expect(calls[0]).toBeLessThanOrEqual(30);
  for (const count of calls) expect(count).toBeGreaterThan(10);
  await stopVirtualDaemon(daemon);
});

test("a key that is always refused is used at a reduced rate", async () => {
  const revoked = await startVirtualDaemon({ key: "revoked", scenario: { nodes: 100, sessions: 100 } });
  await revoked.clock.advance(60 * MINUTE);
  expect(revoked.service.serial).toBeLessThan(250);
  expect(revoked.service.serial).toBeGreaterThan(100);
  await stopVirtualDaemon(revoked);
  const later = await startVirtualDaemon({
    scenario: { nodes: 500, sessions: 100 },
    settings: { limits: createPlanLimits("enterprise") },
  });
  await later.clock.advance(20 * MINUTE);
  const before = later.service.serial;
  later.service.setFaults([
    { afterMs: 0, forMs: 10 * 60 * MINUTE, match: "/v1/nodes", fault: { kind: "status", status: 403 } },
  ]);
  await later.clock.advance(60 * MINUTE);
  // Instead of 2,000 detail reads an hour there are some dozens, and the lists.
  expect(later.service.serial - before).toBeLessThan(600);
  expect(later.service.serial - before).toBeGreaterThan(100);
  await stopVirtualDaemon(later);
});
