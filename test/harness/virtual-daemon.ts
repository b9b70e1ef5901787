import { seededRandom } from "../../src/base/random.ts";
import { type Limits, PLANS } from "../../src/rate-limit/limits.ts";
import { type Books, openBooks } from "../../src/remediation/state/journaled-state.ts";
import { createNotifier } from "../../src/notify/notifier.ts";
import type { Rules } from "../../src/remediation/context.ts";
import { startWarden, type Warden } from "../../src/remediation/controller.ts";
import { createSight, type Sight, startWatch, type Watch, type WatchSettings } from "../../src/collectors/collector-manager.ts";
import { createWardenMetrics } from "../../src/metrics/daemon-metrics.ts";
import type { Receiver } from "../../src/model/remediation/notification.ts";
import type { Log, Obstacles, Secret, Store, Transport } from "../../src/model/ports.ts";
import type { Scenario } from "../../src/model/scenario.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { createClient } from "../../src/api-client/client.ts";
import { createPermitOffice, type PermitOffice } from "../../src/api-client/rate-limiter.ts";
import { createServiceClock, type ServiceClock } from "../../src/api-client/service-clock.ts";
import { createVirtualClock, type VirtualClock } from "../../src/simulator/clock.ts";
import { defaultScenario, SIMULATION_KEY } from "../../src/simulator/default-scenarios.ts";
import { createService, type SimulatedService } from "../../src/simulator/http/service.ts";
import { createSimulatedTransport } from "../../src/simulator/http/transport.ts";
import { createMemoryStore } from "../../src/journal/sqlite.ts";
import { createBell } from "../../src/platform/cron.ts";

/** 2026-03-01T00:00:00Z: a month begins. */
export const START_MS = Date.UTC(2026, 2, 1);

/** A log that keeps what was said, for tests to read. */
export function createKeptLog(): Log & {
  readonly lines: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[];
} {
  const lines: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[] = [];
  const keep = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    void lines.push({ level, message, fields });
  return { lines, debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") };
}

export const fixedKey = (key: string): Secret => ({ value: () => key, refresh: () => ({ ok: true, value: false }) });

/** The spec's limits, under one of its plans. */
export const createPlanLimits = (plan: keyof typeof PLANS): Limits => ({
  categories: {
    node_management: { requests: 100, burst: 200, windowMs: 60_000 },
    session_monitoring: { requests: 500, burst: 1_000, windowMs: 60_000 },
  },
  plan: PLANS[plan],
  reserve: 0.2,
});

export const businessLimits: Limits = createPlanLimits("business");

export const minuteSettings: WatchSettings = {
  cadences: {
    nodes: { kind: "every", intervalMs: 60_000 },
    details: { kind: "every", intervalMs: 900_000 },
    sessions: { kind: "every", intervalMs: 60_000 },
    stats: { kind: "every", intervalMs: 60_000 },
    hourly: { kind: "cron", expression: "2 * * * *" },
  },
  limits: businessLimits,
  monthStartsOn: 1,
  pageLimit: 1_000,
  usageScale: "ratio",
  maxMissing: 0.02,
  reads: new Set(),
};

/** The whole engine on virtual time, over the simulator's handler. */
export interface Daemon {
  readonly clock: VirtualClock;
  readonly service: SimulatedService;
  readonly office: PermitOffice;
  readonly metrics: ReturnType<typeof createWardenMetrics>;
  readonly log: ReturnType<typeof createKeptLog>;
  readonly snapshots: { last: Snapshot | null };
  watch: Watch;
  /** Null where there are no rules. */
  warden: Warden | null;
  /** What outlives a reload. */
  readonly books: Books;
  readonly sight: Sight;
  readonly serviceClock: ServiceClock;
}

export interface DaemonOptions {
  readonly scenario?: Partial<Scenario>;
  readonly settings?: Partial<WatchSettings>;
  readonly key?: string;
  /** In place of `key`. */
  readonly secret?: Secret;
  readonly store?: Store;
  readonly clock?: VirtualClock;
  readonly service?: SimulatedService;
  readonly transport?: Transport;
  readonly seed?: number;
  /** Policies and safety: with them, a warden acts on what is seen. */
  readonly rules?: Rules;
  readonly receivers?: readonly Receiver[];
  readonly obstacles?: Obstacles;
  /** Why the journal does not outlive the process; absent: it does. */
  readonly lost?: string;
  /** Whether actions may have been sent that a new journal does not know of; absent: none were. */
  readonly isNewJournal?: boolean;
  /** `service.base_url`. */
  readonly serviceUrl?: string;
  /** Of a daemon that was reloaded. */
  readonly books?: Books;
  readonly sight?: Sight;
  readonly serviceClock?: ServiceClock;
}

/** Nothing ever blocks. */
export const noObstacles: Obstacles = {
  query: () => Promise.resolve({ ok: true, value: false }),
  alerts: () => Promise.resolve({ ok: true, value: false }),
};

export function startDaemon(options: DaemonOptions = {}): Daemon {
  const clock = options.clock ?? createVirtualClock(START_MS);
  const service = options.service ?? createService({ ...defaultScenario, ...options.scenario }, START_MS);
  const settings = { ...minuteSettings, ...options.settings };
  const random = seededRandom(options.seed ?? 1);
  const metrics = createWardenMetrics({ process: false });
  const log = createKeptLog();
  const store = options.store ?? createMemoryStore();
  const office = createPermitOffice({
    limits: settings.limits,
    monthStartsOn: settings.monthStartsOn,
    clock,
    random,
    calls: store.calls,
    log,
    onWait: () => {},
  });
  const serviceClock = options.serviceClock ?? createServiceClock();
  const client = createClient({
    serviceClock,
    transport: options.transport ?? createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 }),
    office,
    clock,
    random,
    secret: options.secret ?? fixedKey(options.key ?? SIMULATION_KEY),
    timeoutMs: 10_000,
    observer: {
      called: (endpoint, code) => metrics.inc("proxywarden_api_requests_total", { endpoint, code }),
      stated: () => {},
      refused: (category) => metrics.inc("proxywarden_ratelimit_exceeded_total", { category }),
    },
    agent: "proxywarden/test",
  });
  const snapshots: { last: Snapshot | null } = { last: null };
  const sight = options.sight ?? createSight(settings, store.facts, { clock, log, metrics });
  const books =
    options.books ??
    openBooks({
      ...{ journal: store.journal, clock, log },
      lost: options.lost ?? null,
      assumesActions: options.isNewJournal ?? false,
    });
  const warden =
    options.rules === undefined
      ? null
      : startWarden({
          rules: options.rules,
          serviceUrl: options.serviceUrl ?? "https://proxy.example.net",
          books,
          journal: store.journal,
          client,
          inventory: sight.inventory,
          notifier: createNotifier({ receivers: options.receivers ?? [], clock, random, log, metrics }),
          obstacles: options.obstacles ?? noObstacles,
          clock,
          random,
          metrics,
          log,
          onRead: () => watch.touch(),
        });
  const watch: Watch = startWatch({
    settings,
    sight,
    client,
    office,
    facts: store.facts,
    clock,
    bell: createBell(),
    random,
    metrics,
    log,
    onSnapshot: (snapshot, plan) => {
      snapshots.last = snapshot;
      warden?.see(snapshot, plan);
    },
  });
  return { clock, service, office, metrics, log, snapshots, watch, warden, books, sight, serviceClock };
}

/** Stops a daemon whose last calls need time to pass. */
export async function stopDaemon({ clock, watch, warden }: Daemon): Promise<void> {
  const stopped = Promise.all([warden?.stop(), watch.stop()]);
  await clock.advance(60_000);
  await stopped;
}
