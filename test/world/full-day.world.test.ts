import { expect, test } from "vitest";
import { LIMITER_KINDS } from "../../src/config/schema/scenario.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { demoScenario } from "../../src/simulator/default-scenarios.ts";
import { createService, rateLimitedCount, replyCounts } from "../../src/simulator/http/service.ts";
import {
  createPlanLimits,
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
} from "../harness/daemon/virtual-daemon.ts";

const HOUR = 3_600_000;

const headers = ["category", "plan", "off"] as const;
const plans = ["starter", "business", "enterprise"] as const;
// Covers each pair of limiter and headers, limiter and plan, and headers and plan.
const services = LIMITER_KINDS.flatMap((limiter, row) =>
  headers.map((rateLimitHeaders, column) => ({ limiter, rateLimitHeaders, plan: plans[(row + column) % 3]! })),
);

/** Requested intervals beyond every limit, so that the whole budget is always in use. */
const saturatingSettings = {
  ...everyMinuteSettings,
  schedules: {
    nodes: { kind: "every", intervalMs: 10_000 },
    details: { kind: "every", intervalMs: 60_000 },
    sessions: { kind: "every", intervalMs: 10_000 },
    stats: { kind: "every", intervalMs: 5_000 },
    hourly: { kind: "cron", expression: "2 * * * *" },
  },
} as const;

test.each(services)("receives no 429 in a simulated day under %o with a restart every two hours", async (choice) => {
  const clock = createVirtualClock(START_MS);
  const scenario = { ...demoScenario, nodes: 300, sessions: 1_500, service: { ...demoScenario.service, ...choice } };
  const service = createService(scenario, START_MS);
  const store = createMemoryStateStore();
  let daemon: VirtualDaemon | null = null;
  for (let hour = 0; hour < 24; hour += 2) {
    daemon = await startVirtualDaemon({
      clock,
      service,
      store,
      seed: hour + 1,
      settings: { ...saturatingSettings, limits: createPlanLimits(choice.plan) },
    });
    await clock.advance(2 * HOUR - 60_000);
    // Pending calls are aborted, and the next daemon starts without any rate limit state.
    await stopVirtualDaemon(daemon);
  }
  const calls = replyCounts(service).reduce((sum, { count }) => sum + count, 0);
  expect(rateLimitedCount(service)).toBe(0);
  expect(calls).toBeGreaterThan(2_500);
  expect(store.calls.since("2026-03-01")).toBe(calls);
});
