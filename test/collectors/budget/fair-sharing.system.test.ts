import { expect, test } from "vitest";
import { MINUTE_MS } from "../../../src/base/duration.ts";
import type { Limits } from "../../../src/rate-limit/limits.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import {
  createPlanLimits,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";

/** A plan of 100 requests a minute, without a limit on the month. */
const limits: Limits = {
  ...createPlanLimits("starter"),
  plan: { requestsPerMinute: 100, concurrentRequests: 10, callsPerMonth: null },
};

async function callsTo(daemon: VirtualDaemon, endpoint: string): Promise<number> {
  const page = await daemon.metrics.render("text");
  return [...page.matchAll(new RegExp(`^proxywarden_api_requests_total\\{endpoint="${endpoint}",.*\\} (\\d+)$`, "gm"))]
    .map(([, count]) => Number(count))
    .reduce((sum, count) => sum + count, 0);
}

test("reads nodes, details and statistics as often as planned during a walk of 500 pages", async () => {
  const service = { ...defaultScenario.service, pageLimitMax: 10, plan: "starter" } as const;
  const daemon = await startVirtualDaemon({
    scenario: { nodes: 1_000, sessions: 5_000, service },
    settings: { limits },
  });
  // After the first walks the plan knows the length of the lists.
  await daemon.clock.advance(20 * MINUTE_MS);
  const worst = { details: Number.POSITIVE_INFINITY, stats: 0, nodes: 0 };
  const planned = daemon.collectorManager.plan();
  let details = await callsTo(daemon, "node");
  for (let slice = 0; slice < 3; slice++) {
    await daemon.clock.advance(5 * MINUTE_MS);
    const callTimes = await callsTo(daemon, "node");
    worst.details = Math.min(worst.details, (callTimes - details) / 5);
    details = callTimes;
    const now = daemon.clock.monotonic();
    const { stats, fleet } = daemon.snapshots.last!;
    worst.stats = Math.max(worst.stats, (now - stats!.at) / MINUTE_MS);
    worst.nodes = Math.max(worst.nodes, (now - fleet.settledAt!) / MINUTE_MS);
  }
  expect(worst.details).toBeGreaterThan(planned.details!.callsPerMinute / 1.3);
  expect(worst.stats).toBeLessThan((1.3 * planned.stats!.intervalMs) / MINUTE_MS);
  expect(worst.nodes).toBeLessThan((1.3 * planned.nodes!.intervalMs) / MINUTE_MS);
  await stopVirtualDaemon(daemon);
}, 120_000);
