import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { LABEL_CAPS } from "../../src/model/label-values.ts";
import type { Limits } from "../../src/rate-limit/limits.ts";
import { categoryPaceRates } from "../../src/rate-limit/window-pace.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { createService } from "../../src/simulator/http/service.ts";
import { noFailureRates } from "../harness/daemon/quiet-network.ts";
import { createPlanLimits, START_MS, startVirtualDaemon, stopVirtualDaemon } from "../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../harness/run-length.ts";
import { createSimulatedTransport } from "../harness/simulator/transport.ts";

const NODE_PAGES = 60;
const SESSION_PAGES = 300;
const PAGE_LIMIT = 50;
const LIMIT = { requests: 6_000, burst: 12_000, windowMs: MINUTE_MS };
const limits: Limits = {
  ...createPlanLimits("enterprise"),
  categories: { node_management: LIMIT, session_monitoring: LIMIT },
};

test.each(isLongRun ? [1, 2] : [1])(
  "the first walks of a start take at most 2 s longer than the limits require (seed %i)",
  async (seed) => {
    const clock = createVirtualClock(START_MS);
    const limit = { ...LIMIT, limit: LIMIT.requests };
    const service = createService(
      {
        ...defaultScenario,
        nodes: NODE_PAGES * PAGE_LIMIT,
        sessions: SESSION_PAGES * PAGE_LIMIT,
        service: { ...defaultScenario.service, plan: "enterprise" },
      },
      START_MS,
      { categories: { node_management: limit, session_monitoring: limit } },
    );
    const transport = createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
    const daemon = await startVirtualDaemon({
      clock,
      service,
      transport,
      seed,
      settings: { limits, pageLimit: PAGE_LIMIT },
    });
    const callMs = categoryPaceRates(limits, "session_monitoring").evenPace.costMs;
    const shownAt: { nodes: number | null; sessions: number | null } = { nodes: null, sessions: null };
    while (clock.monotonic() < 20 * SECOND_MS) {
      await clock.advance(SECOND_MS / 10);
      const { fleet, sessions } = daemon.snapshots.last ?? {};
      if (fleet?.lastWalk?.complete) shownAt.nodes ??= clock.monotonic();
      if (sessions) shownAt.sessions ??= clock.monotonic();
    }
    expect(shownAt.nodes).toBeLessThan(NODE_PAGES * callMs + 2 * SECOND_MS);
    expect(shownAt.sessions).toBeLessThan(SESSION_PAGES * callMs + 2 * SECOND_MS);
    await stopVirtualDaemon(daemon);
  },
);

test("the first walk of the sessions counts those of every node of a large fleet", async () => {
  const scenario = { nodes: 12_000, sessions: 40_000, rates: noFailureRates };
  const daemon = await startVirtualDaemon({ scenario });
  while (daemon.snapshots.last?.sessions?.complete !== true) await daemon.clock.advance(SECOND_MS);
  const { ids } = daemon.snapshots.last.sessions.nodes;
  expect(ids.length).toBeGreaterThan(2 * LABEL_CAPS.proxynet_node_sessions.values);
  expect(ids).not.toContain("other");
  await stopVirtualDaemon(daemon);
});
