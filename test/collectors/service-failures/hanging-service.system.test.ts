import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import type { Scenario } from "../../../src/config/schema/scenario.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { createService, rateLimitedCount } from "../../../src/simulator/http/service.ts";
import {
  createPlanLimits,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";

const PLANS = ["starter", "business"] as const;

/** Creates a service that never answers this share of the calls from minute 10 to 20. The month has enough calls. */
function createHangingService(plan: (typeof PLANS)[number], share: number) {
  const clock = createVirtualClock(START_MS);
  const scenario: Scenario = {
    ...defaultScenario,
    nodes: 2_000,
    sessions: 3_000,
    service: { ...defaultScenario.service, plan, pageLimitMax: 100 },
    faults: [{ fault: { kind: "hang" }, share, afterMs: 10 * MINUTE_MS, forMs: 10 * MINUTE_MS }],
  };
  const service = createService(scenario, START_MS, { plan: { callsPerMonth: Number.POSITIVE_INFINITY } });
  const limits = createPlanLimits(plan);
  const settings = { limits: { ...limits, plan: { ...limits.plan, callsPerMonth: null } } };
  const start = () => startVirtualDaemon({ clock, service, settings });
  return { clock, service, start };
}

test.each(PLANS.flatMap((plan) => [1, 0.5, 0.1].map((share) => [plan, share] as const)))(
  "%s: a service that goes on working on abandoned calls gets no more concurrent calls than allowed (share %d)",
  async (plan, share) => {
    const { clock, service, start } = createHangingService(plan, share);
    const daemon = await start();
    await clock.advance(20 * MINUTE_MS);
    const before = service.serial;
    await clock.advance(5 * MINUTE_MS);
    expect(rateLimitedCount(service)).toBe(0);
    // All of the plan is available again a minute after the last call was abandoned.
    expect(service.serial - before).toBeGreaterThan(3 * 80);
    await stopVirtualDaemon(daemon);
  },
);

test("a daemon that restarts every 20 s while the service hangs makes no more concurrent calls than allowed", async () => {
  const { clock, service, start } = createHangingService("starter", 1);
  await clock.advance(9 * MINUTE_MS);
  for (let restart = 0; restart < 30; restart++) {
    const daemon = await start();
    await clock.advance(20 * SECOND_MS);
    void Promise.all([daemon.controller?.stop(0), daemon.collectorManager.stop()]);
    await clock.advance(SECOND_MS);
  }
  expect(rateLimitedCount(service)).toBe(0);
});
