import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { createCollectorHistory, PollingPlan } from "../../src/collectors/polling-plan.ts";
import { requestedIntervalsOf } from "../../src/collectors/schedule.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { createDaemonMetrics } from "../../src/metrics/daemon-metrics.ts";
import { PLANS } from "../../src/rate-limit/limits.ts";
import type { TrafficShares } from "../../src/scheduling/fair-queue.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { createService } from "../../src/simulator/http/service.ts";
import { createClientSetup } from "../api-client/client-fixture.ts";
import {
  createPlanLimits,
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../harness/daemon/virtual-daemon.ts";

/** One page of nodes and twenty of sessions. */
const nodesAndSessions = { nodes: 100, sessions: 2_000 };

test("a process in a restart loop does not use up the calls of the month before its end", async () => {
  const LEFT_MS = 3 * HOUR_MS;
  const cap = 700;
  const limits = { ...createPlanLimits("starter"), plan: { ...PLANS.starter, callsPerMonth: cap } };
  const clock = createVirtualClock(Date.UTC(2026, 3, 1) - LEFT_MS);
  const service = createService({ ...defaultScenario, ...nodesAndSessions }, clock.now());
  const store = createMemoryStateStore();
  const used = 550;
  store.calls.add("2026-03-15", used);
  const calls: number[] = [];
  while (clock.now() < Date.UTC(2026, 3, 1) - 10 * MINUTE_MS) {
    const before = service.serial;
    const daemon = await startVirtualDaemon({ clock, store, service, settings: { limits, pageLimit: 100 } });
    await clock.advance(9 * MINUTE_MS);
    await stopVirtualDaemon(daemon);
    calls.push(service.serial - before);
  }
  const sum = (some: readonly number[]) => some.reduce((total, count) => total + count, 0);
  expect(used + sum(calls)).toBeLessThanOrEqual(cap);
  expect(sum(calls.slice(-6))).toBeGreaterThan(0);
});

test("a wall clock that was set back while the daemon was down does not delay the first walk", async () => {
  const store = createMemoryStateStore();
  const limits = { ...createPlanLimits("starter"), plan: { ...PLANS.starter, callsPerMonth: 10_000 } };
  const settings = { limits };
  const clock = createVirtualClock(START_MS + DAY_MS);
  const service = createService({ ...defaultScenario, ...nodesAndSessions }, clock.now());
  const first = await startVirtualDaemon({ clock, store, service, settings });
  await clock.advance(HOUR_MS);
  await stopVirtualDaemon(first);
  clock.stepWallClock(-3 * HOUR_MS);
  const second = await startVirtualDaemon({ clock, store, service, settings });
  const planned = second.collectorManager.plan().nodes!;
  expect(planned.boundBy).toBe("month");
  await clock.advance(planned.intervalMs);
  expect(second.snapshots.last!.fleet.settledAt).not.toBeNull();
  await stopVirtualDaemon(second);
});

test("a new process plans by the stored network size until it has seen the lists itself", async () => {
  // At this hour the number of sessions stays the same, and so does that of their pages.
  const clock = createVirtualClock(START_MS + 9 * HOUR_MS);
  const service = createService({ ...defaultScenario, nodes: 100, sessions: 2_050 }, clock.now());
  const store = createMemoryStateStore();
  const settings = { limits: createPlanLimits("enterprise"), pageLimit: 100 };
  const first = await startVirtualDaemon({ clock, store, service, settings });
  expect(first.collectorManager.plan().sessions!.callsPerMinute).toBe(1);
  await clock.advance(5 * MINUTE_MS);
  const seen = first.collectorManager.plan();
  expect(seen.sessions!.callsPerMinute).toBeGreaterThan(15);
  await stopVirtualDaemon(first);
  const second = await startVirtualDaemon({ clock, store, service, settings });
  // The first process has also learned how many pages a walk repeats, which is not stored.
  const { callsPerMinute } = second.collectorManager.plan().sessions!;
  expect(Math.abs(callsPerMinute - seen.sessions!.callsPerMinute)).toBeLessThan(2);
  expect(second.collectorManager.plan().details!.callsPerMinute).toBeCloseTo(seen.details!.callsPerMinute, 5);
  await stopVirtualDaemon(second);
});

test("unreadable stored values are ignored", async () => {
  const store = createMemoryStateStore();
  await store.journal.commit([
    { kind: "fact", key: "collect.network_size", value: '{"nodes":"many","sessionPages":-1}' },
    { kind: "fact", key: "collect.sessions.run", value: "no JSON" },
    { kind: "fact", key: "collect.nodes.run", value: "7" },
  ]);
  const daemon = await startVirtualDaemon({ store });
  expect(daemon.collectorManager.plan().sessions!.callsPerMinute).toBe(1);
  await stopVirtualDaemon(daemon);
});

test("exports the plan: interval, age, calls, and the limit that binds", async () => {
  const daemon = await startVirtualDaemon({
    scenario: { nodes: 500, sessions: 100 },
    settings: { limits: createPlanLimits("starter") },
  });
  await daemon.clock.advance(10 * MINUTE_MS);
  const planned = daemon.collectorManager.plan().details!;
  const shown = await daemon.metrics.render("text");
  const value = (name: string, labels: string) =>
    Number(new RegExp(`^proxywarden_plan_${name}\\{${labels}\\} (\\S+)$`, "m").exec(shown)?.[1]);
  expect(planned.boundBy).toBe("month");
  expect(value("interval_seconds", 'collector="details"')).toBeCloseTo(planned.intervalMs / SECOND_MS, 3);
  expect(value("calls_per_minute", 'collector="details"')).toBeCloseTo(planned.callsPerMinute, 6);
  expect(value("age_seconds", 'collector="details",age="median"')).toBeCloseTo(planned.age.medianMs / SECOND_MS, 3);
  expect(value("age_seconds", 'collector="details",age="worst"')).toBeCloseTo(planned.age.worstMs / SECOND_MS, 3);
  expect(value("bound", 'collector="details",limit="month"')).toBe(1);
  expect(value("bound", 'collector="details",limit="node_management"')).toBe(0);
  await stopVirtualDaemon(daemon);
});

test("details that neither a policy nor a family needs are neither planned nor read", async () => {
  const schedules = { ...everyMinuteSettings.schedules, details: null };
  const daemon = await startVirtualDaemon({ scenario: { nodes: 500, sessions: 100 }, settings: { schedules } });
  await daemon.clock.advance(10 * MINUTE_MS);
  expect(daemon.collectorManager.plan().details).toBeNull();
  expect(await daemon.metrics.render("text")).not.toContain('proxywarden_plan_interval_seconds{collector="details"}');
  await stopVirtualDaemon(daemon);
});

test("a list of unknown length has priority until three of its runs have failed", () => {
  const { clock, client, rateLimiter } = createClientSetup();
  let weight = 0;
  const pollingPlan = new PollingPlan({
    ...everyMinuteSettings,
    client,
    clock,
    facts: { read: () => null, write: () => {} },
    history: createCollectorHistory(),
    metrics: createDaemonMetrics({ process: false }),
    rateLimiter: Object.assign(rateLimiter, {
      setShares(shares: TrafficShares) {
        weight = shares.sessions.weight;
      },
    }),
    requestedIntervals: requestedIntervalsOf(everyMinuteSettings.schedules, { clock }),
    networkSize: () => ({ nodes: 0, nodePages: 0, sessions: 0, sessionPages: 0 }),
  });
  const first = weight;
  const weights = [1, 2, 3].map(() => {
    pollingPlan.beginRun("sessions");
    pollingPlan.endRun("sessions", false);
    pollingPlan.refresh();
    return weight;
  });
  expect(weights.slice(0, 2)).toEqual([first, first]);
  expect(weights[2]).toBeLessThan(first / 10);
});
