import { isDeepStrictEqual } from "node:util";
import { createApiClient } from "../../../src/api-client/client.ts";
import { createRateLimiter } from "../../../src/api-client/rate-limiter.ts";
import { createServiceClock } from "../../../src/api-client/service-clock.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { createCollectedState } from "../../../src/collectors/collected-state.ts";
import {
  type CollectionSettings,
  type CollectorManager,
  startCollectorManager,
} from "../../../src/collectors/collector-manager.ts";
import { SHUTDOWN_BUDGET } from "../../../src/daemon/runtime.ts";
import { createDaemonMetrics, type DaemonMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { Clock, ExternalBlockers, Log, StateStore, Transport } from "../../../src/model/ports.ts";
import type { Journal } from "../../../src/model/remediation/journal.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { createNotifier } from "../../../src/notify/notifier.ts";
import { createCron } from "../../../src/platform/cron.ts";
import type { RemediationRules } from "../../../src/remediation/context.ts";
import { type RemediationController, startRemediationController } from "../../../src/remediation/controller.ts";
import { openRemediationState } from "../../../src/remediation/state/journaled-state.ts";
import type { Plan } from "../../../src/scheduling/planner.ts";
import type { VirtualClock } from "../../../src/simulator/clock.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { fixedKey } from "../../harness/virtual-daemon.ts";

/** Whether a process lives. */
export interface ProcessLifetime {
  isAlive(): boolean;
  /** Ends it as SIGKILL would: nothing that it still has in hand does anything any more. */
  kill(): void;
  /** Is called once, when it is killed. */
  onKill(then: () => void): void;
}

/** A process that lives. */
export function createProcessLifetime(): ProcessLifetime {
  const last: (() => void)[] = [];
  let alive = true;
  return {
    isAlive: () => alive,
    kill() {
      if (!alive) return;
      alive = false;
      for (const then of last) then();
    },
    onKill: (then) => void last.push(then),
  };
}

/** A moment of a process at which it may be killed. Commits are moments as well, and those of the journal itself. */
export type ProcessMoment = "sleep" | "wake" | "request" | "answer" | "count" | "fact";

/** What a configuration sets. */
export interface Configuration {
  readonly settings: CollectionSettings;
  readonly rules: RemediationRules;
}

/** One life of the daemon: from the start of a process to its end, in order or not. */
export interface DaemonProcess extends ProcessLifetime {
  /** The one of the configuration in force. */
  readonly remediation: RemediationController;
  readonly metrics: DaemonMetrics;
  snapshot(): Snapshot | null;
  plan(): Plan;
  /** The service's clock at an instant of this life's monotonic clock; null: not known yet. */
  serviceTime(at: number): number | null;
  /** Puts another configuration in force, as SIGHUP does. The clock must be advanced meanwhile. */
  reload(configuration: Configuration): Promise<void>;
  /** Stops it in order. The clock must be advanced meanwhile. */
  stop(): Promise<void>;
}

/** What a life stands on. */
export interface DaemonProcessDeps extends Configuration {
  readonly clock: VirtualClock;
  readonly transport: Transport;
  readonly store: StateStore;
  readonly journal: Journal;
  readonly obstacles: ExternalBlockers;
  readonly seed: number;
  readonly log: Log;
  readonly lifetime: ProcessLifetime;
  /** Told of each moment, which may be its last. */
  readonly onMoment: (moment: ProcessMoment) => void;
  readonly onSnapshot: (snapshot: Snapshot) => void;
  /** Told when a configuration comes into force. */
  readonly onConfiguration: (configuration: Configuration) => void;
}

/** Days are simulated: a round where nothing came is rarer than in a daemon. */
const POLL_INTERVAL_MS = 30_000;

/** What a dead process awaits never comes. */
const never = <T>(): Promise<T> => new Promise<T>(() => {});

/** Starts a life. Its monotonic clock begins anew, as that of a machine that was switched on. */
export function startDaemonProcess(parts: DaemonProcessDeps): DaemonProcess {
  const { lifetime } = parts;
  const { isAlive } = lifetime;
  const clock = clockOfProcess(parts, isAlive);
  const random = seededRandom(parts.seed);
  const log = logOfProcess(parts.log, isAlive);
  const store = storeOfProcess(parts, isAlive);
  const metrics = createDaemonMetrics({ process: false });
  const common = { clock, random, metrics, log };
  const rateLimiter = createRateLimiter({
    ...{ clock, random, log, calls: store.calls, limits: parts.settings.limits },
    monthStartsOn: parts.settings.monthStartsOn,
    onWait: () => {},
  });
  const client = createApiClient({
    ...{
      rateLimiter,
      clock,
      random,
      transport: transportOfProcess(parts, lifetime),
      serviceClock: createServiceClock(),
    },
    secret: fixedKey(SIMULATION_KEY),
    timeoutMs: 10_000,
    observer: { onCall: () => {}, onLimitStated: () => {}, onRejected: () => {} },
    agent: "proxywarden/world",
  });
  const collected = createCollectedState(parts.settings, store.facts, { clock, log, metrics });
  const remediationState = openRemediationState({ journal: store.journal, clock, log, lostReason: null });
  let configuration: Configuration = parts;
  let last: Snapshot | null = null;
  let reloading = Promise.resolve();
  let controller = remediationSettings(parts);
  let watch = startCollectors(parts);

  function remediationSettings({ rules }: Configuration): RemediationController {
    parts.onConfiguration(configuration);
    return startRemediationController({
      ...{ ...common, rules, remediationState, client, journal: store.journal, externalBlockers: parts.obstacles },
      serviceUrl: "https://simulated.invalid",
      inventory: collected.inventory,
      notifier: createNotifier({ receivers: [], clock, random, log, metrics }),
      onRead: () => watch.markChanged(),
    });
  }

  function startCollectors({ settings }: Configuration): CollectorManager {
    collected.inventory.declareScale(settings.usageScale);
    return startCollectorManager({
      ...{ ...common, settings, collected, client, rateLimiter, facts: store.facts },
      cron: createCron(),
      publishCheckMs: POLL_INTERVAL_MS,
      onSnapshot(snapshot, plan) {
        last = snapshot;
        if (isAlive()) parts.onSnapshot(snapshot);
        controller.update(snapshot, plan);
      },
    });
  }

  async function replace(next: Configuration): Promise<void> {
    const keepsCollectors = isDeepStrictEqual(configuration.settings, next.settings);
    await Promise.all([controller.stop(SHUTDOWN_BUDGET.postMs), keepsCollectors ? null : watch.stop()]);
    configuration = next;
    if (!keepsCollectors) rateLimiter.setLimits(next.settings.limits, next.settings.monthStartsOn);
    controller = remediationSettings(next);
    if (!keepsCollectors) watch = startCollectors(next);
    else if (last !== null) watch.publish();
  }

  return {
    ...lifetime,
    get remediation() {
      return controller;
    },
    metrics,
    snapshot: () => last,
    plan: () => watch.plan(),
    serviceTime: client.serviceTime,
    reload(next) {
      reloading = reloading.then(() => replace(next));
      return reloading;
    },
    async stop() {
      await reloading;
      await Promise.all([controller.stop(SHUTDOWN_BUDGET.postMs), watch.stop()]);
      rateLimiter.flush();
      lifetime.kill();
    },
  };
}

function clockOfProcess({ clock, onMoment }: DaemonProcessDeps, isAlive: () => boolean): Clock {
  const bornAt = clock.monotonic();
  return {
    now: clock.now,
    monotonic: () => clock.monotonic() - bornAt,
    sleep(ms, signal) {
      if (isAlive()) onMoment("sleep");
      if (!isAlive()) return never();
      return clock.sleep(ms, signal).then(() => {
        if (isAlive()) onMoment("wake");
        return isAlive() ? undefined : never();
      });
    },
  };
}

/** So long after the death of a process the kernel has closed its connections: what was on the wire is through by then. */
const CLOSING_MS = 1_000;

/** What was on the wire when the process died still reaches the service; its answer reaches nobody. */
function transportOfProcess(
  { transport, clock, onMoment }: DaemonProcessDeps,
  { isAlive, onKill: onDeath }: ProcessLifetime,
): Transport {
  const underWay = new Set<AbortController>();
  onDeath(() => {
    void clock.sleep(CLOSING_MS).then(() => {
      for (const wire of underWay) wire.abort();
    });
  });
  return {
    async request(request, signal) {
      if (isAlive()) onMoment("request");
      if (!isAlive()) return never();
      const wire = new AbortController();
      const cut = () => wire.abort();
      // The signal of a dead process says nothing.
      const onAbort = () => (isAlive() ? cut() : undefined);
      underWay.add(wire);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) cut();
      const answer = await transport.request(request, wire.signal);
      underWay.delete(wire);
      signal.removeEventListener("abort", onAbort);
      if (isAlive()) onMoment("answer");
      return isAlive() ? answer : never();
    },
    close: () => Promise.resolve(),
  };
}

/** A dead process writes nothing. */
function storeOfProcess({ store, journal, onMoment }: DaemonProcessDeps, isAlive: () => boolean): StateStore {
  const processes = (moment: ProcessMoment): boolean => {
    if (isAlive()) onMoment(moment);
    return isAlive();
  };
  return {
    calls: {
      since: store.calls.since,
      add: (day, count) => (processes("count") ? store.calls.add(day, count) : undefined),
    },
    facts: {
      read: store.facts.read,
      write: (key, value) => (processes("fact") ? store.facts.write(key, value) : undefined),
    },
    journal: {
      ...journal,
      commit(changes) {
        if (!isAlive()) throw new Error("the process is dead");
        journal.commit(changes);
      },
      prune: (before) => (isAlive() ? journal.prune(before) : undefined),
    },
    close: () => {},
  };
}

const logOfProcess = (log: Log, isAlive: () => boolean): Log => ({
  debug: (fields, message) => (isAlive() ? log.debug(fields, message) : undefined),
  info: (fields, message) => (isAlive() ? log.info(fields, message) : undefined),
  warn: (fields, message) => (isAlive() ? log.warn(fields, message) : undefined),
  error: (fields, message) => (isAlive() ? log.error(fields, message) : undefined),
});
