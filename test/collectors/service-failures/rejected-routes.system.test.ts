import { describe, expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";
import type { Fault } from "../../../src/config/schema/scenario.ts";
import type { Transport } from "../../../src/model/ports.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario } from "../../../src/simulator/default-scenarios.ts";
import { createService, replyCounts } from "../../../src/simulator/http/service.ts";
import { noFailureRates } from "../../harness/daemon/quiet-network.ts";
import {
  everyMinuteSettings,
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemonOptions,
} from "../../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../../harness/run-length.ts";
import { createInterventions } from "../../harness/simulator/interventions.ts";
import { createSimulatedTransport } from "../../harness/simulator/transport.ts";

const DETAILS = "GET /v1/nodes/";
const SESSIONS = "GET /v1/sessions?";

/** A gateway that rejects a share of the matching requests with a bare 429. */
const refusal = (match: string, retryAfter: string | undefined, share = 1): Fault => ({
  afterMs: 0,
  forMs: 24 * HOUR_MS,
  match,
  share,
  fault: { kind: "status", status: 429, bare: true, ...(retryAfter === undefined ? {} : { retryAfter }) },
});

/**
 * Runs a daemon over 100 nodes for half an hour and a minute, and returns its calls for the node list in the next half
 * hour. `later`: faults from the second minute on, by the nodes that are known then.
 */
async function listCalls(faults: readonly Fault[], later?: (ids: readonly string[]) => readonly Fault[]) {
  const clock = createVirtualClock(START_MS);
  const service = createService(
    { ...defaultScenario, nodes: 100, sessions: 10, faults, rates: noFailureRates },
    START_MS,
  );
  const simulated = createSimulatedTransport(service, clock, { latencyMs: 50 });
  const moments: number[] = [];
  const transport: Transport = {
    ...simulated,
    request(request, signal) {
      if (request.path.startsWith("/v1/nodes?")) moments.push(clock.monotonic());
      return simulated.request(request, signal);
    },
  };
  const daemon = await startVirtualDaemon({
    clock,
    service,
    transport,
    settings: { schedules: everyMinuteSettings.schedules },
  });
  await clock.advance(MINUTE_MS);
  if (later !== undefined) service.setFaults(later(daemon.snapshots.last!.fleet.ids));
  await clock.advance(HOUR_MS / 2);
  const from = moments.length;
  await clock.advance(HOUR_MS / 2);
  await stopVirtualDaemon(daemon);
  const gaps = moments.slice(1).map((at, index) => at - moments[index]!);
  return { calls: moments.length - from, longestGapMs: Math.max(...gaps) };
}

const undisturbed = await listCalls([]);

test.each(isLongRun ? ["300", "600", undefined] : ["300", undefined])(
  "a bare 429 for every session list (Retry-After %s) does not slow down walks of the nodes",
  async (retryAfter) => {
    const { calls } = await listCalls([refusal(SESSIONS, retryAfter)]);
    expect(calls / undisturbed.calls).toBeGreaterThan(0.95);
  },
);

test.each(["300", undefined])(
  "a bare 429 for every detail (Retry-After %s) does not slow down walks of the nodes",
  async (retryAfter) => {
    const { calls } = await listCalls([refusal(DETAILS, retryAfter)]);
    expect(calls / undisturbed.calls).toBeGreaterThan(0.95);
  },
);

test("a 429 with a long Retry-After for the lookup of a node that left the list does not delay walks of the nodes", async () => {
  const daemon = await startVirtualDaemon({
    scenario: { nodes: 100, sessions: 10, rates: noFailureRates },
    settings: { schedules: { ...everyMinuteSettings.schedules, details: null } },
  });
  const { service, clock, snapshots } = daemon;
  await clock.advance(5 * MINUTE_MS);
  service.setFaults([refusal(DETAILS, "3600")]);
  const interventions = createInterventions(service, () => START_MS + clock.monotonic());
  interventions.leaveFleet(snapshots.last!.fleet.ids[0]!, Number.POSITIVE_INFINITY);
  for (let minutes = 0; minutes < 60; minutes++) {
    await clock.advance(MINUTE_MS);
    const { walkedAt } = snapshots.last!.fleet;
    if (minutes > 6) expect(clock.monotonic() - walkedAt!).toBeLessThan(2 * MINUTE_MS);
  }
  await stopVirtualDaemon(daemon);
});

test("nodes that leave while 429s with a long Retry-After delay lookups are removed within twenty minutes", async () => {
  const daemon = await startVirtualDaemon({ scenario: { nodes: 100, sessions: 10, rates: noFailureRates } });
  const { service, clock, snapshots } = daemon;
  await clock.advance(30 * MINUTE_MS);
  service.setFaults([refusal(DETAILS, "3600")]);
  const interventions = createInterventions(service, () => START_MS + clock.monotonic());
  for (const id of snapshots.last!.fleet.ids.slice(0, 5)) interventions.leaveFleet(id, Number.POSITIVE_INFINITY);
  await clock.advance(20 * MINUTE_MS);
  expect(snapshots.last!.fleet).toMatchObject({ count: 95, lastWalk: { complete: true } });
  await stopVirtualDaemon(daemon);
});

test("a bare 429 for one in ten details does not slow down walks of the nodes", async () => {
  const { calls } = await listCalls([refusal(DETAILS, "60", 0.1)]);
  // A few of these rejections look like those of a limit on the whole category.
  expect(calls / undisturbed.calls).toBeGreaterThan(0.9);
});

test("a 503 with Retry-After 900 for one node's detail delays no other call", async () => {
  const { calls, longestGapMs } = await listCalls([], ([id]) => [
    { ...refusal(`${DETAILS}${id}`, undefined), fault: { kind: "status", status: 503, retryAfter: "900" } },
  ]);
  expect(calls / undisturbed.calls).toBeGreaterThan(0.95);
  expect(longestGapMs).toBeLessThan(2 * MINUTE_MS);
});

test("a key without sessions:read costs few calls, and is noticed soon after it gets the scope", async () => {
  const daemon = await startVirtualDaemon({ scenario: { nodes: 20, sessions: 50 } });
  const { service, clock, collectorManager } = daemon;
  const match = "GET /v1/sessions";
  service.setFaults([{ afterMs: 0, forMs: 1_000 * HOUR_MS, match, fault: { kind: "status", status: 403 } }]);
  const sessionCalls = () =>
    replyCounts(service).reduce((sum, { endpoint, count }) => sum + (endpoint.includes("/sessions") ? count : 0), 0);
  await clock.advance(2 * HOUR_MS);
  const before = sessionCalls();
  await clock.advance(HOUR_MS);
  expect(sessionCalls() - before).toBeLessThanOrEqual(7);
  expect(collectorManager.collectorHealth().sessions.failure?.message).toContain("sessions:read");
  expect(collectorManager.collectorHealth().nodes.failure).toBeNull();
  const logged = daemon.log.lines.filter(({ fields }) => fields.reason === "forbidden");
  expect(logged.map(({ fields }) => fields.collector).toSorted()).toEqual(["hourly", "sessions", "stats"]);
  service.setFaults([]);
  await clock.advance(21 * MINUTE_MS);
  const recovered = sessionCalls();
  expect(collectorManager.collectorHealth().sessions).toMatchObject({ complete: true, failure: null });
  await clock.advance(10 * MINUTE_MS);
  expect(sessionCalls() - recovered).toBeGreaterThanOrEqual(18);
  await stopVirtualDaemon(daemon);
});

describe("sessions are read as often as before", () => {
  const forbidden = (match: string) => ({ match, fault: { kind: "status", status: 403 } }) as const;

  async function start(options: VirtualDaemonOptions = {}) {
    const daemon = await startVirtualDaemon({ scenario: { nodes: 20, sessions: 50 }, ...options });
    const { clock, service, collectorManager } = daemon;
    return {
      daemon,
      failures: () => {
        const { sessions, stats, hourly } = collectorManager.collectorHealth();
        return [sessions, stats, hourly].map(({ failure }) => failure?.kind ?? null);
      },
      /** Fails the routes for a time. */
      async failFor(minutes: number, fault: Pick<Fault, "match" | "fault">) {
        service.setFaults([{ afterMs: 0, forMs: 1_000 * HOUR_MS, ...fault }]);
        await clock.advance(minutes * MINUTE_MS);
        service.setFaults([]);
      },
    };
  }

  test.each(isLongRun ? [1, 2, 3, 4, 5, 6] : [1])(
    "after an hour in which all routes rejected the key (seed %d)",
    async (seed) => {
      const { daemon, failures, failFor } = await start({ seed });
      await failFor(61, forbidden("GET"));
      await daemon.clock.advance(3 * MINUTE_MS);
      expect(failures().slice(0, 2)).toEqual([null, null]);
      await stopVirtualDaemon(daemon);
    },
  );

  test("while only later pages of the list are answered 403", async () => {
    const { daemon, failFor } = await start({ settings: { pageLimit: 20 } });
    await failFor(60, forbidden("GET /v1/sessions?page=2&"));
    const rejected = replyCounts(daemon.service).find(
      ({ endpoint, status }) => endpoint === "GET /v1/sessions" && status === 403,
    );
    expect(rejected!.count).toBeGreaterThan(50);
    await stopVirtualDaemon(daemon);
  });

  test("after a single 403 that follows other failures", async () => {
    const { daemon, failures, failFor } = await start();
    await failFor(30, { match: "GET /v1/sessions", fault: { kind: "status", status: 500 } });
    await failFor(1.1, forbidden("GET /v1/sessions"));
    await daemon.clock.advance(3 * MINUTE_MS);
    expect(failures().slice(0, 2)).toEqual([null, null]);
    await stopVirtualDaemon(daemon);
  });
});

test("a daily collector is retried before the next day if the key gets its scope", async () => {
  const daily = { kind: "cron", expression: "2 0 * * *" } as const;
  const schedules = { ...everyMinuteSettings.schedules, stats: daily };
  const daemon = await startVirtualDaemon({ scenario: { nodes: 20, sessions: 50 }, settings: { schedules } });
  const match = "GET /v1/sessions";
  daemon.service.setFaults([{ afterMs: 0, forMs: HOUR_MS, match, fault: { kind: "status", status: 403 } }]);
  const failure = () => daemon.collectorManager.collectorHealth().stats.failure;
  await daemon.clock.advance(HOUR_MS);
  expect(failure()).toMatchObject({ kind: "forbidden" });
  await daemon.clock.advance(HOUR_MS);
  expect(failure()).toBeNull();
  await stopVirtualDaemon(daemon);
});
