import { isDeepStrictEqual } from "node:util";
import { seededRandom } from "../../../src/base/random.ts";
import type { Plan } from "../../../src/scheduling/planner.ts";
import { openBooks } from "../../../src/remediation/state/journaled-state.ts";
import { createNotifier } from "../../../src/notify/notifier.ts";
import type { Rules } from "../../../src/remediation/context.ts";
import { startWarden, type Warden } from "../../../src/remediation/controller.ts";
import { createSight, startWatch, type Watch, type WatchSettings } from "../../../src/collectors/collector-manager.ts";
import { createWardenMetrics, type WardenMetrics } from "../../../src/metrics/daemon-metrics.ts";
import type { Journal } from "../../../src/model/remediation/journal.ts";
import type { Clock, Log, Obstacles, Store, Transport } from "../../../src/model/ports.ts";
import type { Snapshot } from "../../../src/model/snapshot.ts";
import { createClient } from "../../../src/api-client/client.ts";
import { createPermitOffice } from "../../../src/api-client/rate-limiter.ts";
import { createServiceClock } from "../../../src/api-client/service-clock.ts";
import type { VirtualClock } from "../../../src/simulator/clock.ts";
import { SIMULATION_KEY } from "../../../src/simulator/default-scenarios.ts";
import { createBell } from "../../../src/platform/cron.ts";
import { fixedKey } from "../../harness/virtual-daemon.ts";

/** Whether a process lives. */
export interface Mortal {
  isAlive(): boolean;
  /** Ends it as SIGKILL would: nothing that it still has in hand does anything any more. */
  kill(): void;
  /** Is called once, when it is killed. */
  onDeath(then: () => void): void;
}

/** A process that lives. */
export function createMortal(): Mortal {
  const last: (() => void)[] = [];
  let alive = true;
  return {
    isAlive: () => alive,
    kill() {
      if (!alive) return;
      alive = false;
      for (const then of last) then();
    },
    onDeath: (then) => void last.push(then),
  };
}

/** A moment of a process at which it may be killed. Commits are moments as well, and those of the journal itself. */
export type Moment = "sleep" | "wake" | "request" | "answer" | "count" | "fact";

/** What a configuration sets. */
export interface Configuration {
  readonly settings: WatchSettings;
  readonly rules: Rules;
}

/** One life of the daemon: from the start of a process to its end, in order or not. */
export interface Life extends Mortal {
  /** The one of the configuration in force. */
  readonly warden: Warden;
  readonly metrics: WardenMetrics;
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
export interface LifeParts extends Configuration {
  readonly clock: VirtualClock;
  readonly transport: Transport;
  readonly store: Store;
  readonly journal: Journal;
  readonly obstacles: Obstacles;
  readonly seed: number;
  readonly log: Log;
  readonly mortal: Mortal;
  /** Told of each moment, which may be its last. */
  readonly onMoment: (moment: Moment) => void;
  readonly onSnapshot: (snapshot: Snapshot) => void;
  /** Told when a configuration comes into force. */
  readonly onConfiguration: (configuration: Configuration) => void;
}

/** Days are simulated: a round where nothing came is rarer than in a daemon. */
const LOOK_MS = 30_000;

/** What a dead process awaits never comes. */
const never = <T>(): Promise<T> => new Promise<T>(() => {});

/** Starts a life. Its monotonic clock begins anew, as that of a machine that was switched on. */
export function beginLife(parts: LifeParts): Life {
  const { mortal } = parts;
  const { isAlive } = mortal;
  const clock = mortalClock(parts, isAlive);
  const random = seededRandom(parts.seed);
  const log = mortalLog(parts.log, isAlive);
  const store = mortalStore(parts, isAlive);
  const metrics = createWardenMetrics({ process: false });
  const common = { clock, random, metrics, log };
  const office = createPermitOffice({
    ...{ clock, random, log, calls: store.calls, limits: parts.settings.limits },
    monthStartsOn: parts.settings.monthStartsOn,
    onWait: () => {},
  });
  const client = createClient({
    ...{ office, clock, random, transport: mortalTransport(parts, mortal), serviceClock: createServiceClock() },
    secret: fixedKey(SIMULATION_KEY),
    timeoutMs: 10_000,
    observer: { called: () => {}, stated: () => {}, refused: () => {} },
    agent: "proxywarden/world",
  });
  const sight = createSight(parts.settings, store.facts, { clock, log, metrics });
  const books = openBooks({ journal: store.journal, clock, log, lost: null });
  let configuration: Configuration = parts;
  let last: Snapshot | null = null;
  let reloading = Promise.resolve();
  let warden = wardenOf(parts);
  let watch = watchOf(parts);

  function wardenOf({ rules }: Configuration): Warden {
    parts.onConfiguration(configuration);
    return startWarden({
      ...{ ...common, rules, books, client, journal: store.journal, obstacles: parts.obstacles },
      serviceUrl: "https://simulated.invalid",
      inventory: sight.inventory,
      notifier: createNotifier({ receivers: [], clock, random, log, metrics }),
      onRead: () => watch.touch(),
    });
  }

  function watchOf({ settings }: Configuration): Watch {
    sight.inventory.declareScale(settings.usageScale);
    return startWatch({
      ...{ ...common, settings, sight, client, office, facts: store.facts },
      bell: createBell(),
      lookMs: LOOK_MS,
      onSnapshot(snapshot, plan) {
        last = snapshot;
        if (isAlive()) parts.onSnapshot(snapshot);
        warden.see(snapshot, plan);
      },
    });
  }

  async function replace(next: Configuration): Promise<void> {
    const keepsCollectors = isDeepStrictEqual(configuration.settings, next.settings);
    await Promise.all([warden.stop(), keepsCollectors ? null : watch.stop()]);
    configuration = next;
    if (!keepsCollectors) office.relimit(next.settings.limits, next.settings.monthStartsOn);
    warden = wardenOf(next);
    if (!keepsCollectors) watch = watchOf(next);
    else if (last !== null) watch.publish();
  }

  return {
    ...mortal,
    get warden() {
      return warden;
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
      await Promise.all([warden.stop(), watch.stop()]);
      mortal.kill();
    },
  };
}

function mortalClock({ clock, onMoment }: LifeParts, isAlive: () => boolean): Clock {
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
function mortalTransport({ transport, clock, onMoment }: LifeParts, { isAlive, onDeath }: Mortal): Transport {
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
function mortalStore({ store, journal, onMoment }: LifeParts, isAlive: () => boolean): Store {
  const lives = (moment: Moment): boolean => {
    if (isAlive()) onMoment(moment);
    return isAlive();
  };
  return {
    calls: {
      since: store.calls.since,
      add: (day, count) => (lives("count") ? store.calls.add(day, count) : undefined),
    },
    facts: {
      read: store.facts.read,
      write: (key, value) => (lives("fact") ? store.facts.write(key, value) : undefined),
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

const mortalLog = (log: Log, isAlive: () => boolean): Log => ({
  debug: (fields, message) => (isAlive() ? log.debug(fields, message) : undefined),
  info: (fields, message) => (isAlive() ? log.info(fields, message) : undefined),
  warn: (fields, message) => (isAlive() ? log.warn(fields, message) : undefined),
  error: (fields, message) => (isAlive() ? log.error(fields, message) : undefined),
});
