import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { PLANS, pollingCallsPerMonth } from "../../../src/rate-limit/limits.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { createService, replyCounts } from "../../../src/simulator/http/service.ts";
import {
  createPlanLimits,
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";

const starter = createPlanLimits("starter");

/** A service whose list of sessions has no end: each page has other ids, and the total is a billion. */
function endlessService(clock: ReturnType<typeof createVirtualClock>) {
  const scenario = { ...defaultScenario, nodes: 40, sessions: 10 };
  const service = createService({ ...scenario, service: { ...scenario.service, plan: "starter" } }, START_MS);
  const inner = createSimulatedTransport(service, clock, { latencyMs: 50 });
  const transport: Transport = {
    ...inner,
    async request(request, signal) {
      const [, page] = /^\/v1\/sessions\?.*page=(\d+)/.exec(request.path) ?? [];
      if (page === undefined) return inner.request(request, signal);
      const answer = await inner.request({ ...request, path: request.path.replace(`page=${page}`, "page=1") }, signal);
      if (!answer.ok) return answer;
      const text = Buffer.from(answer.value.body)
        .toString()
        .replace(/"total":\s*\d+/, '"total":1000000000')
        .replaceAll(/"id":\s*"([^"]+)"/g, `"id":"$1-${page}"`);
      return { ok: true, value: { ...answer.value, body: Buffer.from(text) } };
    },
  };
  return { service, transport };
}

test("a list without an end leaves calls of the month to other reads", async () => {
  const clock = createVirtualClock(START_MS);
  const { service, transport } = endlessService(clock);
  const daemon = await startVirtualDaemon({ clock, service, transport, settings: { limits: starter } });
  await clock.advance(1.5 * HOUR_MS);
  // A fiftieth of the month immediately, then the planned rate.
  expect(service.serial).toBeLessThan(0.02 * 99_000 + 1.3 * (99_000 / 31 / 16));
  expect(daemon.snapshots.last!.fleet.lastWalk!.completeWalks).toBeGreaterThan(60);
  await stopVirtualDaemon(daemon);
}, 120_000);

test("runs of a cron schedule are skipped, but not all of them, if the month has too few calls", async () => {
  const cron = { kind: "cron", expression: "*/5 * * * * *" } as const;
  const settings = { limits: starter, schedules: { ...everyMinuteSettings.schedules, nodes: cron } };
  const daemon = await startVirtualDaemon({ settings, scenario: { nodes: 40, sessions: 100 } });
  await daemon.clock.advance(2 * HOUR_MS);
  expect(daemon.service.serial).toBeLessThan(1.2 * (100_000 / (31 * 12)));
  const walks = replyCounts(daemon.service).find(({ endpoint }) => endpoint === "GET /v1/nodes");
  expect(walks!.count).toBeGreaterThan(100);
  await stopVirtualDaemon(daemon);
}, 120_000);

test("plans the calls that find the end of a list: six hours use their share of the month", async () => {
  const everyMinute = { kind: "every", intervalMs: MINUTE_MS } as const;
  const schedules = { nodes: everyMinute, details: everyMinute, sessions: null, stats: null, hourly: null };
  const service = { ...defaultScenario.service, plan: "starter" } as const;
  const daemon = await startVirtualDaemon({
    settings: { limits: starter, schedules },
    scenario: { nodes: 500, sessions: 0, service },
  });
  await daemon.clock.advance(HOUR_MS);
  const before = daemon.rateLimiter.monthUsed();
  const leftMs = 31 * DAY_MS - HOUR_MS;
  const share = ((pollingCallsPerMonth(PLANS.starter.callsPerMonth) - before) * 6 * HOUR_MS) / leftMs;
  await daemon.clock.advance(6 * HOUR_MS);
  const used = daemon.rateLimiter.monthUsed() - before;
  expect(used).toBeLessThanOrEqual(1.002 * share);
  expect(used).toBeGreaterThan(0.98 * share);
  await stopVirtualDaemon(daemon);
}, 120_000);
