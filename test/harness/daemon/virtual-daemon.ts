import { type ApiClient, createApiClient } from "../../../src/api-client/client.ts";
import { RateLimiter } from "../../../src/api-client/rate-limiter.ts";
import { ServiceClock } from "../../../src/api-client/service-clock.ts";
import { MINUTE_MS, SECOND_MS } from "../../../src/base/duration.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { type CollectedState, createCollectedState } from "../../../src/collectors/collected-state.ts";
import {
  type CollectionSettings,
  type CollectorManager,
  startCollectorManager,
} from "../../../src/collectors/collector-manager.ts";
import type { Scenario } from "../../../src/config/schema/scenario.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/shutdown.ts";
import { createMemoryStateStore } from "../../../src/journal/sqlite/store.ts";
import { createDaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { ExternalBlockers, Log, Secret, StateStore, Transport } from "../../../src/model/ports.ts";
import type { Notification, Receiver } from "../../../src/model/remediation/notification.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { Notifier } from "../../../src/notify/notifier.ts";
import { type Limits, PLANS } from "../../../src/rate-limit/limits.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { RemediationController } from "../../../src/remediation/controller.ts";
import { forgetOtherService } from "../../../src/remediation/service-binding.ts";
import { openRemediationState, type RemediationState } from "../../../src/remediation/state/journaled-state.ts";
import { createVirtualClock, type VirtualClock } from "../../../src/simulator/clock.ts";
import { defaultScenario, SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { createService, type SimulatedService } from "../../../src/simulator/http/service.ts";
import type { StatusSnapshot } from "../../../src/web/api/status-views.ts";
import { createSimulatedTransport } from "../simulator/transport.ts";

/** 2026-03-01T00:00:00Z: a month begins. */
export const START_MS = Date.UTC(2026, 2, 1);

/** Creates a log that keeps its lines, for tests to read. */
export function createRecordingLog(): Log & {
  readonly lines: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[];
} {
  const lines: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[] = [];
  const record = (level: string) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    void lines.push({ level, message, fields });
  return { lines, debug: record("debug"), info: record("info"), warn: record("warn"), error: record("error") };
}

/** Snapshots without changes are rarer than in the product, because simulated hours consist mostly of them. */
const PUBLISH_CHECK_MS = MINUTE_MS;
/** That of a large fleet: waking up every second takes much of the CPU time of a simulated hour. */
const PUBLISH_INTERVAL_MS = 5 * SECOND_MS;

export const fixedKey = (key: string): Secret => ({ value: () => key, refresh: () => ({ ok: true, value: false }) });

/** Returns the limits of the spec, with one of its plans. */
export const createPlanLimits = (plan: keyof typeof PLANS): Limits => ({
  categories: {
    node_management: { requests: 100, burst: 200, windowMs: MINUTE_MS },
    session_monitoring: { requests: 500, burst: 1_000, windowMs: MINUTE_MS },
  },
  plan: PLANS[plan],
  reserve: 0.2,
});

export const businessLimits: Limits = createPlanLimits("business");

type RateLimiterDeps = ConstructorParameters<typeof RateLimiter>[0];
type ApiClientDeps = Parameters<typeof createApiClient>[0];

/** Creates a rate limiter, by default with the limits of the plan Business, in a process without earlier calls. */
export const createTestRateLimiter = (deps: Pick<RateLimiterDeps, "clock"> & Partial<RateLimiterDeps>): RateLimiter =>
  new RateLimiter({
    limits: businessLimits,
    monthStartsOn: 1,
    random: seededRandom(1),
    calls: createMemoryStateStore().calls,
    log: createRecordingLog(),
    onWait: () => {},
    ...deps,
  });

/** Creates a client, by default with the key of the simulated service. */
export const createTestClient = (
  deps: Pick<ApiClientDeps, "clock" | "rateLimiter" | "transport"> & Partial<ApiClientDeps>,
): ApiClient =>
  createApiClient({
    serviceClock: new ServiceClock(),
    random: seededRandom(1),
    secret: fixedKey(SIMULATION_KEY),
    timeoutMs: 10 * SECOND_MS,
    agent: "proxywarden/test",
    ...deps,
  });

export const everyMinuteSettings: CollectionSettings = {
  schedules: {
    nodes: { kind: "every", intervalMs: MINUTE_MS },
    details: { kind: "every", intervalMs: 15 * MINUTE_MS },
    sessions: { kind: "every", intervalMs: MINUTE_MS },
    stats: { kind: "every", intervalMs: MINUTE_MS },
    hourly: { kind: "cron", expression: "2 * * * *" },
  },
  limits: businessLimits,
  monthStartsOn: 1,
  pageLimit: 1_000,
  usageScale: "ratio",
  maxMissing: 0.02,
  minInventory: 0.8,
  reads: new Set(),
};

/** Collectors and remediation on virtual time, against the simulated service. */
export interface VirtualDaemon {
  readonly clock: VirtualClock;
  readonly service: SimulatedService;
  readonly rateLimiter: RateLimiter;
  readonly metrics: ReturnType<typeof createDaemonMetrics>;
  readonly log: ReturnType<typeof createRecordingLog>;
  readonly snapshots: { last: Snapshot | null };
  collectorManager: CollectorManager;
  /** Null: the options have no configuration of it. */
  controller: RemediationController | null;
  /** Kept over a reload, with `collected` and `serviceClock`. */
  readonly remediationState: RemediationState;
  readonly collected: CollectedState;
  readonly serviceClock: ServiceClock;
  readonly notifier: Notifier;
}

export interface VirtualDaemonOptions {
  readonly scenario?: Partial<Scenario>;
  readonly settings?: Partial<CollectionSettings>;
  readonly key?: string;
  /** Replaces `key`. */
  readonly secret?: Secret;
  readonly store?: StateStore;
  readonly clock?: VirtualClock;
  readonly service?: SimulatedService;
  readonly transport?: Transport;
  readonly seed?: number;
  /** Policies and safety; absent: without remediation. */
  readonly config?: RemediationConfig;
  readonly receivers?: readonly Receiver[];
  readonly externalBlockers?: ExternalBlockers;
  /** Why the journal is lost at exit; absent: it is durable. */
  readonly lostReason?: string;
  /** Whether a new journal may lack actions that were sent before. Defaults to false. */
  readonly isNewJournal?: boolean;
  /** `service.base_url`. */
  readonly serviceUrl?: string;
  /** State of the daemon before a reload. */
  readonly remediationState?: RemediationState;
  readonly collected?: CollectedState;
  readonly serviceClock?: ServiceClock;
  readonly activeNotifications?: readonly Notification[];
}

/** No query has a result, and no alert is firing. */
export const noExternalBlockers: ExternalBlockers = {
  blocks: () => Promise.resolve({ ok: true, value: false }),
};

export async function startVirtualDaemon(options: VirtualDaemonOptions = {}): Promise<VirtualDaemon> {
  const clock = options.clock ?? createVirtualClock(START_MS);
  const service = options.service ?? createService({ ...defaultScenario, ...options.scenario }, START_MS);
  const settings = { ...everyMinuteSettings, ...options.settings };
  const random = seededRandom(options.seed ?? 1);
  const metrics = createDaemonMetrics({ process: false });
  const log = createRecordingLog();
  const common = { clock, random, metrics, log };
  const store = options.store ?? createMemoryStateStore();
  const remediationState =
    options.remediationState ??
    (await openRemediationState({
      journal: store.journal,
      clock,
      log,
      lostReason: options.lostReason ?? null,
      assumesEarlierActions: options.isNewJournal ?? false,
    }));
  const { facts } = remediationState;
  const { limits, monthStartsOn } = settings;
  const rateLimiter = createTestRateLimiter({ ...common, calls: store.calls, facts, limits, monthStartsOn });
  const serviceClock = options.serviceClock ?? new ServiceClock();
  const transport = options.transport ?? createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
  const client = createTestClient({
    serviceClock,
    transport,
    rateLimiter,
    clock,
    random,
    secret: options.secret ?? fixedKey(options.key ?? SIMULATION_KEY),
    metrics: { inc: metrics.inc, set() {}, observe() {} },
  });
  const snapshots: { last: Snapshot | null } = { last: null };
  const serviceUrl = options.serviceUrl ?? "https://proxy.example.net";
  forgetOtherService(remediationState, options.config?.policies ?? [], serviceUrl);
  const collected = options.collected ?? createCollectedState(settings, facts, { clock, log, metrics });
  const notifier = new Notifier({ ...common, receivers: options.receivers ?? [], facts });
  notifier.resume(options.activeNotifications ?? []);
  const controller =
    options.config === undefined
      ? null
      : new RemediationController({
          ...common,
          remediationState,
          client,
          rateLimiter,
          notifier,
          config: options.config,
          serviceUrl,
          journal: store.journal,
          inventory: collected.inventory,
          sessionWalks: collected.sessionWalks,
          detailReporter: collected.reporters.details,
          externalBlockers: options.externalBlockers ?? noExternalBlockers,
          onRead: () => collectorManager.markChanged(),
        });
  const collectorManager: CollectorManager = startCollectorManager({
    ...common,
    settings,
    collected,
    client,
    rateLimiter,
    publishCheckMs: PUBLISH_CHECK_MS,
    publishIntervalMs: PUBLISH_INTERVAL_MS,
  });
  collectorManager.setListener((snapshot, plan) => {
    snapshots.last = snapshot;
    controller?.update(snapshot, plan);
  });
  const kept = { remediationState, collected, serviceClock };
  return { clock, service, rateLimiter, metrics, log, snapshots, collectorManager, controller, notifier, ...kept };
}

/** Returns what the status views of a daemon read, as version 1.2.3. */
export const statusSnapshotOf = ({
  clock,
  snapshots,
  collectorManager,
  rateLimiter,
}: VirtualDaemon): StatusSnapshot => ({
  version: "1.2.3",
  startedAt: START_MS,
  now: clock.now(),
  monotonic: clock.monotonic(),
  snapshot: snapshots.last,
  plan: collectorManager.plan(),
  collectors: collectorManager.collectorHealth(),
  ledger: rateLimiter.ledger,
  month: rateLimiter.month(),
  clockSkewMs: null,
  configRejectedAt: null,
});

/** Stops a daemon, and advances the clock so that its last calls can end. */
export async function stopVirtualDaemon({ clock, collectorManager, controller }: VirtualDaemon): Promise<void> {
  const stopped = Promise.all([controller?.stop(SHUTDOWN_BUDGET.postMs), collectorManager.stop()]);
  await clock.advance(MINUTE_MS);
  await stopped;
}
