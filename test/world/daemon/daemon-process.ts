import { isDeepStrictEqual } from "node:util";
import { seededRandom } from "../../../src/base/random.ts";
import { createCollectedState } from "../../../src/collectors/collected-state.ts";
import {
  type CollectionSettings,
  type CollectorManager,
  startCollectorManager,
} from "../../../src/collectors/collector-manager.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/shutdown.ts";
import { createDaemonMetrics, type DaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { Clock, ExternalBlockers, Log, StateStore, Transport } from "../../../src/model/ports.ts";
import type { Journal } from "../../../src/model/remediation/journal.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { Notifier } from "../../../src/notify/notifier.ts";
import type { RemediationConfig } from "../../../src/remediation/context.ts";
import { RemediationController } from "../../../src/remediation/controller.ts";
import { openRemediationState } from "../../../src/remediation/state/journaled-state.ts";
import type { Plan } from "../../../src/scheduling/planner.ts";
import type { VirtualClock } from "../../../src/simulator/clock.ts";
import { createTestClient, createTestRateLimiter } from "../../harness/daemon/virtual-daemon.ts";
import type { Machine } from "./machine.ts";

/** Whether a simulated process is running. */
export interface ProcessLifetime {
  isAlive(): boolean;
  /** Ends the process as SIGKILL does: its pending work has no further effect. */
  kill(): void;
  /** Registers a callback that runs once, when the process is killed. */
  onKill(callback: () => void): void;
}

/** Creates the lifetime of a running process. */
export function createProcessLifetime(): ProcessLifetime {
  const callbacks: (() => void)[] = [];
  let alive = true;
  return {
    isAlive: () => alive,
    kill() {
      if (!alive) return;
      alive = false;
      for (const callback of callbacks) callback();
    },
    onKill: (callback) => void callbacks.push(callback),
  };
}

/** A point in the execution of a process at which it may be killed. Commits of the journal are reported separately. */
export type ProcessMoment = "sleep" | "wake" | "request" | "answer" | "count";

/** The parts of a configuration that a reload can change. */
export interface Configuration {
  readonly settings: CollectionSettings;
  readonly config: RemediationConfig;
}

/** One process of the daemon, from its start until it is stopped or killed. */
export interface DaemonProcess extends ProcessLifetime {
  /** The controller of the active configuration. */
  readonly remediation: RemediationController;
  readonly metrics: DaemonMetrics;
  snapshot(): Snapshot | null;
  plan(): Plan;
  /** The monotonic clock of this process. */
  monotonic(): number;
  /** The service's clock at an instant of that clock, or null if it is not known yet. */
  serviceTime(at: number): number | null;
  /** Activates another configuration, as SIGHUP does. The caller must advance the clock in the meantime. */
  reload(configuration: Configuration): Promise<void>;
  /** Stops the process gracefully. The caller must advance the clock in the meantime. */
  stop(): Promise<void>;
}

/** Dependencies of a process. */
export interface DaemonProcessDeps extends Configuration {
  readonly clock: VirtualClock;
  readonly machine: Machine;
  readonly transport: Transport;
  readonly store: StateStore;
  readonly journal: Journal;
  readonly externalBlockers: ExternalBlockers;
  readonly seed: number;
  readonly log: Log;
  readonly lifetime: ProcessLifetime;
  /** Called at each moment. May kill the process. */
  readonly onMoment: (moment: ProcessMoment) => void;
  readonly onSnapshot: (snapshot: Snapshot) => void;
  /** Called when a configuration becomes active. */
  readonly onConfiguration: (configuration: Configuration) => void;
}

/** Longer than in production: simulated days would otherwise spend most of their time on rounds without new data. */
const POLL_INTERVAL_MS = 30_000;

/** Returned to a killed process: the promise never settles. */
const never = <T>(): Promise<T> => new Promise<T>(() => {});

/** Starts a process. Its monotonic clock starts at 0, as after a boot of the machine. */
export async function startDaemonProcess(deps: DaemonProcessDeps): Promise<DaemonProcess> {
  const { lifetime } = deps;
  const { isAlive } = lifetime;
  const { common, journal, rateLimiter, client, remediationState, collected } = await openProcess(deps);
  let configuration: Configuration = deps;
  let reloading = Promise.resolve();
  let controller = startController(deps);
  let collectors = startCollectors(deps);

  function startController({ config }: Configuration): RemediationController {
    deps.onConfiguration(configuration);
    return new RemediationController({
      ...common,
      config,
      remediationState,
      client,
      rateLimiter,
      journal,
      externalBlockers: deps.externalBlockers,
      serviceUrl: "https://simulated.invalid",
      inventory: collected.inventory,
      sessionWalks: collected.sessionWalks,
      detailReporter: collected.reporters.details,
      notifier: new Notifier({ receivers: [], ...common }),
      onRead: () => collectors.markChanged(),
    });
  }

  function startCollectors({ settings }: Configuration): CollectorManager {
    collected.inventory.declareScale(settings.usageScale);
    const started = startCollectorManager({
      ...common,
      settings,
      collected,
      client,
      rateLimiter,
      publishCheckMs: POLL_INTERVAL_MS,
    });
    listenTo(started);
    return started;
  }

  function listenTo(manager: CollectorManager): void {
    manager.setListener((snapshot, plan) => {
      if (isAlive()) deps.onSnapshot(snapshot);
      controller.update(snapshot, plan);
    });
  }

  async function activate(next: Configuration): Promise<void> {
    const keepsCollectors = isDeepStrictEqual(configuration.settings, next.settings);
    await Promise.all([controller.stop(SHUTDOWN_BUDGET.postMs), keepsCollectors ? null : collectors.stop()]);
    configuration = next;
    if (!keepsCollectors) rateLimiter.setLimits(next.settings.limits, next.settings.monthStartsOn);
    controller = startController(next);
    if (!keepsCollectors) collectors = startCollectors(next);
    else listenTo(collectors);
  }

  return {
    ...lifetime,
    get remediation() {
      return controller;
    },
    metrics: common.metrics,
    snapshot: () => collectors.latest(),
    plan: () => collectors.plan(),
    monotonic: common.clock.monotonic,
    serviceTime: client.serviceTime,
    reload(next) {
      reloading = reloading.then(() => activate(next));
      return reloading;
    },
    async stop() {
      await reloading;
      await Promise.all([controller.stop(SHUTDOWN_BUDGET.postMs), collectors.stop()]);
      await Promise.all([rateLimiter.flush(), remediationState.flush()]);
      lifetime.kill();
    },
  };
}

/** Opens what a process keeps when it reloads its configuration. */
async function openProcess(deps: DaemonProcessDeps) {
  const { lifetime, settings } = deps;
  const clock = clockOfProcess(deps, lifetime.isAlive);
  const random = seededRandom(deps.seed);
  const log = logOfProcess(deps.log, lifetime.isAlive);
  const { calls, journal } = storeOfProcess(deps, lifetime.isAlive);
  const metrics = createDaemonMetrics({ process: false });
  const { limits, monthStartsOn } = settings;
  const remediationState = await openRemediationState({ journal, clock, log, lostReason: null });
  const { facts } = remediationState;
  const rateLimiter = createTestRateLimiter({ clock, random, log, calls, limits, monthStartsOn, facts });
  const client = createTestClient({ rateLimiter, clock, random, transport: transportOfProcess(deps, lifetime) });
  const collected = createCollectedState(settings, facts, { clock, log, metrics });
  return { common: { clock, random, metrics, log }, journal, rateLimiter, client, remediationState, collected };
}

function clockOfProcess({ clock, machine, onMoment }: DaemonProcessDeps, isAlive: () => boolean): Clock {
  const startedAt = machine.monotonic();
  return {
    now: clock.now,
    monotonic: () => machine.monotonic() - startedAt,
    async sleep(ms, signal) {
      if (isAlive()) onMoment("sleep");
      if (!isAlive()) return never();
      await machine.sleep(ms, signal);
      if (isAlive()) onMoment("wake");
      if (machine.isSuspended()) await machine.running();
      return isAlive() ? undefined : never();
    },
  };
}

/** Time after a kill until the kernel closes the connections of the process. */
const CONNECTION_CLOSE_MS = 1_000;

/** Requests that were sent before the process was killed still reach the service; their answers are discarded. */
function transportOfProcess(
  { transport, clock, machine, onMoment }: DaemonProcessDeps,
  { isAlive, onKill }: ProcessLifetime,
): Transport {
  const connections = new Set<AbortController>();
  onKill(() => {
    void clock.sleep(CONNECTION_CLOSE_MS).then(() => {
      for (const connection of connections) connection.abort();
    });
  });
  return {
    async request(request, signal) {
      if (isAlive()) onMoment("request");
      if (!isAlive()) return never();
      const connection = new AbortController();
      // A killed process cannot abort its requests.
      const onAbort = () => (isAlive() ? connection.abort() : undefined);
      connections.add(connection);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) connection.abort();
      const answer = await transport.request(request, connection.signal);
      connections.delete(connection);
      signal.removeEventListener("abort", onAbort);
      if (isAlive()) onMoment("answer");
      if (machine.isSuspended()) await machine.running();
      return isAlive() ? answer : never();
    },
    close: () => Promise.resolve(),
  };
}

/** A killed process writes nothing. */
function storeOfProcess({ store, journal, machine, onMoment }: DaemonProcessDeps, isAlive: () => boolean): StateStore {
  const survives = (moment: ProcessMoment): boolean => {
    if (isAlive()) onMoment(moment);
    return isAlive();
  };
  return {
    calls: {
      since: store.calls.since,
      add: async (day, count) => (survives("count") ? store.calls.add(day, count) : undefined),
    },
    journal: {
      ...journal,
      async commit(changes) {
        if (!isAlive()) throw new Error("the process was killed");
        await journal.commit(changes);
        if (machine.isSuspended()) await machine.running();
      },
      prune: async (before) => (isAlive() ? journal.prune(before) : undefined),
    },
    close: async () => {},
  };
}

const logOfProcess = (log: Log, isAlive: () => boolean): Log => ({
  debug: (fields, message) => (isAlive() ? log.debug(fields, message) : undefined),
  info: (fields, message) => (isAlive() ? log.info(fields, message) : undefined),
  warn: (fields, message) => (isAlive() ? log.warn(fields, message) : undefined),
  error: (fields, message) => (isAlive() ? log.error(fields, message) : undefined),
});
