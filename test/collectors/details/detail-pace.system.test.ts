import { expect, test } from "vitest";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { Transport } from "../../../src/model/ports.ts";
import type { Limits } from "../../../src/rate-limit/limits.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { createService } from "../../../src/simulator/http/service.ts";
import {
  createPlanLimits,
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
} from "../../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";

/** Read every 20 s: 77 reads a second. */
const NODES = 1_540;
const ROUND_MS = 20 * SECOND_MS;

/** A service with one page of nodes and their details, with a latency that varies up to twofold. */
async function startFleet(latencyMs: number, limits: Limits) {
  const clock = createVirtualClock(START_MS);
  const random = seededRandom(7);
  const nodes = Array.from({ length: NODES }, (_, index) => ({ id: `node_${index}`, status: "online" }));
  const body = JSON.stringify({ data: nodes, pagination: { page: 1, limit: NODES, total: NODES } });
  let reads = 0;
  const transport: Transport = {
    async request({ path }, signal) {
      await clock.sleep(path.includes("?") ? SECOND_MS : latencyMs * (0.5 + random()), signal);
      const id = path.slice("/v1/nodes/".length);
      if (!path.includes("?")) reads++;
      const answer = path.includes("?") ? body : JSON.stringify({ id, status: "online" });
      return { ok: true, value: { status: 200, headers: {}, body: Buffer.from(answer) } };
    },
    close: () => Promise.resolve(),
  };
  const details = { kind: "every", intervalMs: ROUND_MS } as const;
  const nodesEvery = { kind: "every", intervalMs: 30 * MINUTE_MS } as const;
  const schedules = {
    ...everyMinuteSettings.schedules,
    nodes: nodesEvery,
    details,
    sessions: null,
    stats: null,
    hourly: null,
  };
  const daemon = await startVirtualDaemon({ clock, transport, settings: { schedules, limits, pageLimit: 10_000 } });
  return {
    daemon,
    async readsIn(ms: number) {
      const before = reads;
      await clock.advance(ms);
      return reads - before;
    },
  };
}

const wideLimit = { requests: 6_000, burst: 12_000, windowMs: MINUTE_MS };
const wide: Limits = {
  ...createPlanLimits("enterprise"),
  categories: { node_management: wideLimit, session_monitoring: wideLimit },
};

/** Returns the planned reads per minute, and those of a quarter of a minute after the first round, per minute. */
async function rates(latencyMs: number) {
  const { daemon, readsIn } = await startFleet(latencyMs, wide);
  await readsIn(25 * SECOND_MS);
  const planned = daemon.collectorManager.plan().details!.callsPerMinute;
  const readsMade = 4 * (await readsIn(15 * SECOND_MS));
  await stopVirtualDaemon(daemon);
  return { planned, made: readsMade };
}

test.each(isLongRun ? [10, 70, 500, 2_000] : [10, 2_000])(
  "details are read at the planned rate if a read takes %i ms",
  async (latencyMs) => {
    const { planned, made: readsMade } = await rates(latencyMs);
    expect(planned).toBeCloseTo(4_620);
    expect(readsMade).toBeGreaterThanOrEqual(0.97 * planned);
    // Reads missed during the first round are caught up within the limits.
    expect(readsMade).toBeLessThanOrEqual(1.03 * planned);
  },
);

test("at most 256 reads are concurrent, however slow the service is", async () => {
  const { made: readsMade } = await rates(5_000);
  const possible = (256 * MINUTE_MS) / 5_000;
  expect(readsMade).toBeGreaterThanOrEqual(0.9 * possible);
  expect(readsMade).toBeLessThanOrEqual(1.1 * possible);
});

/**
 * Starts a service that answers one request after the other: 50 ms of work for a page, and 2 ms for any other answer.
 */
async function startSerialService() {
  const clock = createVirtualClock(START_MS);
  const limit = { ...wideLimit, limit: wideLimit.requests };
  const service = createService(
    { ...defaultScenario, nodes: NODES, sessions: 1_500, service: { ...defaultScenario.service, plan: "enterprise" } },
    START_MS,
    { categories: { node_management: limit, session_monitoring: limit } },
  );
  const network = createSimulatedTransport(service, clock, { latencyMs: 10 });
  const seen = { reads: 0, failures: 0 };
  let idleAt = 0;
  const transport: Transport = {
    ...network,
    async request(request, signal) {
      idleAt = Math.max(idleAt, clock.monotonic()) + (request.path.includes("?") ? 50 : 2);
      await clock.sleep(idleAt - clock.monotonic(), signal);
      const response = await network.request(request, signal);
      if (!response.ok || response.value.status >= 429) seen.failures++;
      else if (request.path.startsWith("/v1/nodes/")) seen.reads++;
      return response;
    },
  };
  return { clock, transport, seen };
}

test("a walk does not overload a service that answers one request after the other", async () => {
  const { clock, transport, seen } = await startSerialService();
  const schedules = { ...everyMinuteSettings.schedules, details: { kind: "every", intervalMs: ROUND_MS } } as const;
  // 300 pages of nodes and sessions a minute keep the service busy for 15 s, and reads of details for 9 s.
  const daemon = await startVirtualDaemon({ clock, transport, settings: { schedules, limits: wide, pageLimit: 10 } });
  await clock.advance(50 * SECOND_MS);
  seen.reads = 0;
  // The second walk begins after a minute.
  await clock.advance(40 * SECOND_MS);
  const planned = (daemon.collectorManager.plan().details!.callsPerMinute * 40) / 60;
  expect(seen.failures).toBe(0);
  expect(seen.reads).toBeGreaterThanOrEqual(0.97 * planned);
  await stopVirtualDaemon(daemon);
});
