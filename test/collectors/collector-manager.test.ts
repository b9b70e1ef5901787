import { describe, expect, test } from "vitest";
import { MINUTE_MS } from "../../src/base/duration.ts";
import { type Fault, type FaultKind, LIMITER_KINDS, type ServiceOptions } from "../../src/config/schema/scenario.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import { SESSION_STATUSES, SESSION_TYPES } from "../../src/model/session.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { defaultScenario } from "../../src/simulator/default-scenarios.ts";
import { createService, rateLimitedCount, replyCounts } from "../../src/simulator/http/service.ts";
import {
  START_MS,
  startVirtualDaemon,
  stopVirtualDaemon,
  type VirtualDaemon,
  type VirtualDaemonOptions,
} from "../harness/daemon/virtual-daemon.ts";
import { isLongRun } from "../harness/run-length.ts";
import { actualNodes, actualSessions } from "../harness/simulator/actual-state.ts";
import { createSimulatedTransport } from "../harness/simulator/transport.ts";

/** Runs a daemon for a while on virtual time, inspects it, and stops it. */
async function inspectDaemon(
  ms: number,
  options: VirtualDaemonOptions,
  observe: (daemon: VirtualDaemon, snapshot: Snapshot) => void | Promise<void>,
) {
  const daemon = await startVirtualDaemon(options);
  await daemon.clock.advance(ms);
  await observe(daemon, daemon.snapshots.last!);
  await stopVirtualDaemon(daemon);
}

const serviceOf = (service: Partial<ServiceOptions>, nodes = 150, sessions = 600): VirtualDaemonOptions => ({
  scenario: { nodes, sessions, service: { ...defaultScenario.service, ...service } },
});

/** Every limiter with every kind of headers; in the short form each with one kind. */
const choices: Partial<ServiceOptions>[] = [
  ...LIMITER_KINDS.flatMap((limiter, index) =>
    (["category", "plan", "off"] as const)
      .filter((_, kind) => isLongRun || kind === index % 3)
      .map((rateLimitHeaders) => ({ limiter, rateLimitHeaders })),
  ),
  { tokenBucketReset: "next_token" },
  { pageLimitMax: 100, pageLimitOver: "clamp", pageLimitEcho: "effective" },
  { pageLimitMax: 100, pageLimitOver: "clamp", pageLimitEcho: "requested" },
  { pageLimitMax: 100, pageLimitOver: "reject" },
  { firstPage: 0, pageLimitMax: 100 },
  { usageScale: "percent" },
  { errorBody: "empty" },
  { listEndedSessions: true },
  { plan: "starter" },
  { plan: "enterprise" },
  { compression: "accepted" },
  { compression: "gzip" },
];

describe("with every choice that the spec leaves open", () => {
  test.each(choices)("%o: reads all nodes and sessions, and no call is refused", async (choice) => {
    const options = serviceOf(choice);
    await inspectDaemon(
      isLongRun ? 16 * MINUTE_MS : 5 * MINUTE_MS,
      { ...options, settings: { usageScale: choice.usageScale ?? "ratio" } },
      ({ service, collectorManager }, { fleet, sessions }) => {
        expect(rateLimitedCount(service)).toBe(0);
        const truth = new Map([...actualNodes(service)].map((node) => [node.id, node]));
        expect(fleet.ids.filter((id) => id !== "").toSorted()).toEqual([...truth.keys()].toSorted());
        expect(collectorManager.collectorHealth().sessions.failure).toBeNull();
        const listed = sessions!.counts.reduce((sum, count) => sum + count, 0);
        expect(listed).toBeGreaterThan(400);
        fleet.ids.forEach((id, slot) => {
          const cpu = fleet.cpuUsage.at(slot);
          if (!Number.isNaN(cpu)) expect(cpu).toBeLessThanOrEqual(1.5);
          expect(truth.has(id)).toBe(true);
        });
      },
    );
  });
});

test("the number of failed sessions is known if the list shows them, and unknown otherwise", async () => {
  const failed = ({ sessions }: Snapshot) =>
    ["error", "timeout"].reduce((sum, status) => {
      const begin = SESSION_STATUSES.indexOf(status as "error") * SESSION_TYPES.length;
      return sum + sessions!.counts.slice(begin, begin + SESSION_TYPES.length).reduce((a, b) => a + b, 0);
    }, 0);
  await inspectDaemon(8 * MINUTE_MS, serviceOf({ listEndedSessions: true }), (_, snapshot) => {
    expect(snapshot.sessions!.failedListed).toBe(true);
    expect(failed(snapshot)).toBeGreaterThan(0);
  });
  await inspectDaemon(8 * MINUTE_MS, serviceOf({ listEndedSessions: false }), (_, snapshot) => {
    expect(snapshot.sessions!.failedListed).toBe(false);
  });
});

test("percentages under usage_scale ratio make all usage unknown, which is counted and logged", async () => {
  await inspectDaemon(20 * MINUTE_MS, serviceOf({ usageScale: "percent" }), async ({ metrics, log }, { fleet }) => {
    expect(fleet.usageKnown).toBe(false);
    expect([...fleet.cpuUsage].every(Number.isNaN)).toBe(true);
    const page = await metrics.render("text");
    expect(page).toMatch(/records_rejected_total\{collector="details",reason="usage_out_of_scale"\} [1-9]/);
    expect(log.lines.filter(({ fields }) => fields.reason === "usage_out_of_scale").length).toBeGreaterThan(0);
  });
});

describe("during each fault", () => {
  const faults: readonly [FaultKind, string][] = [
    [{ kind: "status", status: 503 }, "server_error"],
    [{ kind: "status", status: 429, retryAfter: "20" }, "rate_limited"],
    [{ kind: "hang" }, "timeout"],
    [{ kind: "reset" }, "reset"],
    [{ kind: "truncate" }, "reset"],
    [{ kind: "bad_json" }, "not_json"],
    [{ kind: "html" }, "not_json"],
    [{ kind: "wrong_shape" }, "wrong_shape"],
    [{ kind: "slow_drip", bytesPerSecond: 20 }, "timeout"],
    [{ kind: "huge_body", bytes: 20 * 2 ** 20 }, "too_large"],
    [{ kind: "redirect", location: "http://127.0.0.1:1/" }, "redirected"],
    [{ kind: "lost_reply" }, "reset"],
  ];
  const during = (fault: FaultKind): Fault[] => [{ afterMs: 4 * MINUTE_MS, forMs: 6 * MINUTE_MS, fault }];

  test.each(faults)(
    "%o: keeps the last data, counts failures as %s, and recovers afterwards",
    async (fault, reason) => {
      const daemon = await startVirtualDaemon({ scenario: { nodes: 30, sessions: 50, faults: during(fault) } });
      await daemon.clock.advance(9 * MINUTE_MS);
      expect(daemon.snapshots.last!.fleet.count).toBe(30);
      expect(daemon.collectorManager.collectorHealth().nodes.failure).toMatchObject({ kind: reason });
      const page = await daemon.metrics.render("text");
      expect(page).toContain('proxywarden_collect_completeness_ratio{collector="nodes"} 0\n');
      for (const collector of ["nodes", "sessions", "stats"]) {
        expect(page).toMatch(
          new RegExp(`collect_failures_total\\{collector="${collector}",reason="${reason}"\\} [1-9]`),
        );
      }
      await daemon.clock.advance(9 * MINUTE_MS);
      const failing = Object.entries(daemon.collectorManager.collectorHealth()).filter(
        ([, { failure }]) => failure !== null,
      );
      expect(failing).toEqual([]);
      await stopVirtualDaemon(daemon);
    },
  );

  test("logs the beginning and the end of an outage, not every failed run", async () => {
    const options: VirtualDaemonOptions = {
      scenario: { nodes: 50, sessions: 100, faults: during({ kind: "status", status: 503 }) },
    };
    await inspectDaemon(20 * MINUTE_MS, options, ({ log }) => {
      const messages = log.lines.filter(({ fields }) => fields.collector === "nodes").map(({ message }) => message);
      expect(messages).toEqual(["collector failed", "collector works again"]);
    });
  });

  test("removes no node before a second walk if a list lacks a third of the nodes, or all", async () => {
    for (const fault of [{ kind: "vanished", missing: 0.33 }, { kind: "empty_list" }] as const) {
      const short: Fault[] = [{ afterMs: 5 * MINUTE_MS, forMs: MINUTE_MS, fault }];
      await inspectDaemon(8 * MINUTE_MS, { scenario: { nodes: 120, sessions: 400, faults: short } }, (_, { fleet }) => {
        expect(fleet.count).toBe(120);
      });
    }
  });
});

test("reads sessions and statistics with a key without nodes:read, and logs the missing scope", async () => {
  const keys = [{ key: "sessions-only", scopes: ["sessions:read"] }];
  await inspectDaemon(
    5 * MINUTE_MS,
    { key: "sessions-only", scenario: { nodes: 20, sessions: 50, keys } },
    ({ log, collectorManager }, { sessions, stats }) => {
      expect(collectorManager.collectorHealth().nodes.failure).toMatchObject({ kind: "forbidden" });
      expect(log.lines.map(({ fields }) => String(fields.problem)).join()).toContain("nodes:read");
      expect(sessions!.counts.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(30);
      expect(stats).not.toBeNull();
    },
  );
});

test("statistics, hourly statistics and details match those of the service", async () => {
  await inspectDaemon(
    40 * MINUTE_MS,
    { scenario: { nodes: 60, sessions: 300 } },
    ({ service }, { fleet, stats, hourly, sessions }) => {
      const truth = [...actualSessions(service)].filter(({ status }) => status === "active").length;
      const active = SESSION_TYPES.reduce((sum, _, type) => sum + sessions!.counts[type]!, 0);
      expect(Math.abs(active - truth)).toBeLessThanOrEqual(0.1 * truth);
      expect(stats!.value.activeSessions).toBeGreaterThan(0);
      expect(hourly!.value).toHaveLength(24);
      expect([...fleet.detailedAt].every((at) => !Number.isNaN(at))).toBe(true);
    },
  );
});

test("a collector without a schedule does not run", async () => {
  const schedules = {
    nodes: { kind: "every", intervalMs: MINUTE_MS },
    details: null,
    sessions: null,
    stats: null,
    hourly: null,
  } as const;
  await inspectDaemon(10 * MINUTE_MS, { settings: { schedules } }, ({ service }) => {
    expect(replyCounts(service).map(({ endpoint }) => endpoint)).toEqual(["GET /v1/nodes"]);
  });
});

test("runs of a collector do not overlap if the service is slower than the interval", async () => {
  const inFlight: Record<string, number> = {};
  const most: Record<string, number> = {};
  const clock = createVirtualClock(START_MS);
  const service = createService({ ...defaultScenario, nodes: 10, sessions: 10 }, START_MS);
  const simulated = createSimulatedTransport(service, clock, { latencyMs: 9_000 });
  const daemon = await startVirtualDaemon({
    clock,
    service,
    settings: {
      schedules: {
        nodes: { kind: "every", intervalMs: 2_000 },
        stats: { kind: "every", intervalMs: 2_000 },
        sessions: null,
        details: null,
        hourly: null,
      },
    },
    transport: {
      ...simulated,
      async request(request, signal) {
        const { path } = request;
        inFlight[path] = (inFlight[path] ?? 0) + 1;
        most[path] = Math.max(most[path] ?? 0, inFlight[path]);
        const sent = await simulated.request(request, signal);
        inFlight[path]--;
        return sent;
      },
    },
  });
  await clock.advance(10 * MINUTE_MS);
  expect(new Set(Object.values(most))).toEqual(new Set([1]));
  await stopVirtualDaemon(daemon);
});

test("the calls of the month survive a restart, and start at 0 in a new month", async () => {
  const store = createMemoryStateStore();
  const clock = createVirtualClock(START_MS);
  const service = createService({ ...defaultScenario, nodes: 20, sessions: 50 }, START_MS);
  const first = await startVirtualDaemon({ clock, service, store });
  await clock.advance(10 * MINUTE_MS);
  await stopVirtualDaemon(first);
  const used = first.rateLimiter.ledger.monthUsed;
  expect(used).toBeGreaterThan(20);
  const second = await startVirtualDaemon({ clock, service, store });
  expect(second.rateLimiter.ledger.monthUsed).toBe(used);
  await stopVirtualDaemon(second);
  clock.stepWallClock(31 * 24 * 60 * MINUTE_MS);
  const third = await startVirtualDaemon({ clock, service, store });
  expect(third.rateLimiter.ledger.monthUsed).toBe(0);
  await stopVirtualDaemon(third);
});

test("collectors start in an order that varies, and within half a second", async () => {
  const firstCall = async (seed: number): Promise<string> => {
    const daemon = await startVirtualDaemon({ seed, scenario: { nodes: 10, sessions: 10 } });
    for (let ms = 0; ms < 500 && replyCounts(daemon.service).length === 0; ms += 10) await daemon.clock.advance(10);
    const [first] = replyCounts(daemon.service);
    await stopVirtualDaemon(daemon);
    return first!.endpoint;
  };
  const endpoints = new Set<string>();
  for (const seed of [1, 3, 7]) endpoints.add(await firstCall(seed));
  expect(endpoints.size).toBe(3);
});

test("a bug in one collector is counted as internal, and the others continue", async () => {
  const clock = createVirtualClock(START_MS);
  const service = createService({ ...defaultScenario, nodes: 10, sessions: 10 }, clock.now());
  const transport = createSimulatedTransport(service, clock);
  const daemon = await startVirtualDaemon({
    clock,
    service,
    transport: {
      ...transport,
      request(request, signal) {
        if (request.path.startsWith("/v1/sessions?")) throw new Error("a defect");
        return transport.request(request, signal);
      },
    },
  });
  await clock.advance(2 * MINUTE_MS);
  const { nodes, sessions, stats } = daemon.collectorManager.collectorHealth();
  expect([nodes.failure, stats.failure]).toEqual([null, null]);
  expect(sessions.failure).not.toBeNull();
  expect(await daemon.metrics.render("text")).toMatch(
    /collect_failures_total\{collector="sessions",reason="internal"\} [1-9]/,
  );
  await stopVirtualDaemon(daemon);
});
