import { expect, onTestFinished, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { createService, rateLimitedCount } from "../../../src/simulator/http/service.ts";
import { listsOnlySettings } from "../../harness/daemon/quiet-network.ts";
import { createPlanLimits, startVirtualDaemon, stopVirtualDaemon } from "../../harness/daemon/virtual-daemon.ts";

const MONTH_END_MS = Date.UTC(2026, 3, 1);
const START_MS = MONTH_END_MS - 12 * HOUR_MS;
/** Number of calls after which the month is used up. */
const CALLS = 60;

/**
 * Starts a daemon whose month is used up after {@link CALLS}, although it counts on more, and waits until it is held.
 * `stated` is the month's limit that the service states with the 429.
 */
async function useUpMonth(stated: "configured" | "another") {
  const clock = createVirtualClock(START_MS);
  const starter = { ...defaultScenario.service, plan: "starter" as const };
  const scenario = { ...defaultScenario, nodes: 50, sessions: 50, service: starter };
  const callsPerMonth = stated === "configured" ? 100_000 : CALLS;
  const service = createService(scenario, START_MS, { plan: { callsPerMonth } });
  const settings = { ...listsOnlySettings, limits: createPlanLimits("starter") };
  const daemon = await startVirtualDaemon({ clock, service, settings });
  onTestFinished(() => stopVirtualDaemon(daemon));
  await clock.advance(MINUTE_MS);
  // Calls of another user of the key, which no response shows.
  service.apiLimits.monthCalls += callsPerMonth - CALLS;
  await clock.advance(2 * HOUR_MS);
  expect(rateLimitedCount(service)).toBeGreaterThan(0);
  const buyCalls = () => Object.assign(service.apiLimits.plan, { callsPerMonth: 1_000_000 });
  const walksIn = async (ms: number) => {
    const before = service.serial - rateLimitedCount(service);
    await clock.advance(ms);
    return service.serial - rateLimitedCount(service) - before;
  };
  return { clock, service, daemon, buyCalls, walksIn };
}

const STATED = ["configured", "another"] as const;

test.each(STATED)(
  "%s limit: polling continues once more calls are bought and the limits are reloaded",
  async (stated) => {
    const { daemon, buyCalls, walksIn } = await useUpMonth(stated);
    expect(await walksIn(HOUR_MS)).toBe(0);
    buyCalls();
    daemon.rateLimiter.setLimits(createPlanLimits("business"), 1);
    expect(await walksIn(HOUR_MS)).toBeGreaterThan(10);
  },
);

test.each(STATED)("%s limit: polling continues within six hours once more calls are bought", async (stated) => {
  const { buyCalls, walksIn } = await useUpMonth(stated);
  buyCalls();
  expect(await walksIn(7 * HOUR_MS)).toBeGreaterThan(10);
});

test.each(STATED)("%s limit: until the month ends, only few calls show that it is still used up", async (stated) => {
  const { service, clock, walksIn } = await useUpMonth(stated);
  const before = rateLimitedCount(service);
  expect(await walksIn(MONTH_END_MS - clock.now())).toBe(0);
  expect(rateLimitedCount(service) - before).toBeLessThanOrEqual(4);
  expect(await walksIn(HOUR_MS)).toBeGreaterThan(10);
});

test("a reload while the month is still used up causes one 429", async () => {
  const { service, daemon, walksIn } = await useUpMonth("configured");
  const before = rateLimitedCount(service);
  daemon.rateLimiter.setLimits(createPlanLimits("starter"), 1);
  expect(await walksIn(HOUR_MS)).toBe(0);
  expect(rateLimitedCount(service) - before).toBe(1);
});
