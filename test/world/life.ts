import { seededRandom } from "../../src/base/random.ts";
import type { Plan } from "../../src/budget/planner.ts";
import { openBooks } from "../../src/engine/books.ts";
import { createNotifier } from "../../src/engine/notify.ts";
import type { Rules } from "../../src/engine/ward.ts";
import { startWarden, type Warden } from "../../src/engine/warden.ts";
import { createSight, startWatch, type Watch, type WatchSettings } from "../../src/engine/watch.ts";
import { createWardenMetrics } from "../../src/metrics/warden.ts";
import type { Journal } from "../../src/model/journal.ts";
import type { Clock, Log, Store, Transport } from "../../src/model/ports.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { createClient } from "../../src/service/client.ts";
import { createPermitOffice } from "../../src/service/permits.ts";
import type { VirtualClock } from "../../src/simulator/clock.ts";
import { SIMULATION_KEY } from "../../src/simulator/defaults.ts";
import { createBell } from "../../src/system/bell.ts";
import { fixedKey, noObstacles } from "../engine/daemon.ts";

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

/** One life of the daemon: from the start of a process to its end, in order or not. */
export interface Life extends Mortal {
  readonly warden: Warden;
  readonly metrics: ReturnType<typeof createWardenMetrics>;
  snapshot(): Snapshot | null;
  plan(): Plan;
  /** Stops it in order. The clock must be advanced meanwhile. */
  stop(): Promise<void>;
}

/** What a life stands on. */
export interface LifeParts {
  readonly clock: VirtualClock;
  readonly transport: Transport;
  readonly store: Store;
  readonly journal: Journal;
  readonly settings: WatchSettings;
  readonly rules: Rules;
  readonly seed: number;
  readonly log: Log;
  readonly mortal: Mortal;
}

/** What a dead process awaits never comes. */
const never = <T>(): Promise<T> => new Promise<T>(() => {});

/** Starts a life. Its monotonic clock begins anew, as that of a machine that was switched on. */
export function beginLife(parts: LifeParts): Life {
  const { store, settings, seed, mortal } = parts;
  const { isAlive } = mortal;
  const clock = mortalClock(parts.clock, isAlive);
  const random = seededRandom(seed);
  const log = mortalLog(parts.log, isAlive);
  const transport = mortalTransport(parts.transport, parts.clock, mortal);
  const metrics = createWardenMetrics({ process: false });
  const calls: Store["calls"] = {
    since: store.calls.since,
    add: (day, count) => (isAlive() ? store.calls.add(day, count) : undefined),
  };
  const facts: Store["facts"] = {
    read: store.facts.read,
    write: (key, value) => (isAlive() ? store.facts.write(key, value) : undefined),
  };
  const office = createPermitOffice({
    ...{ clock, random, calls, log },
    limits: settings.limits,
    monthStartsOn: settings.monthStartsOn,
    onWait: () => {},
  });
  const client = createClient({
    ...{ office, clock, random, transport },
    secret: fixedKey(SIMULATION_KEY),
    timeoutMs: 10_000,
    observer: { called: () => {}, stated: () => {}, refused: () => {} },
    agent: "proxywarden/world",
  });
  const sight = createSight(settings, facts, { clock, log, metrics });
  const journal = mortalJournal(parts.journal, isAlive);
  let last: Snapshot | null = null;
  const warden = startWarden({
    ...{ rules: parts.rules, journal, client, clock, random, metrics, log },
    books: openBooks({ journal, clock, log, lost: null }),
    serviceUrl: "https://simulated.invalid",
    inventory: sight.inventory,
    notifier: createNotifier({ receivers: [], clock, random, log, metrics }),
    obstacles: noObstacles,
    onRead: () => watch.touch(),
  });
  const watch: Watch = startWatch({
    ...{ settings, sight, client, office, facts, clock, random, metrics, log },
    bell: createBell(),
    onSnapshot(snapshot, plan) {
      last = snapshot;
      warden.see(snapshot, plan);
    },
  });
  return {
    ...mortal,
    ...{ warden, metrics },
    snapshot: () => last,
    plan: () => watch.plan(),
    async stop() {
      await Promise.all([warden.stop(), watch.stop()]);
      mortal.kill();
    },
  };
}

function mortalClock(clock: VirtualClock, isAlive: () => boolean): Clock {
  const bornAt = clock.monotonic();
  return {
    now: clock.now,
    monotonic: () => clock.monotonic() - bornAt,
    sleep: (ms, signal) =>
      isAlive() ? clock.sleep(ms, signal).then(() => (isAlive() ? undefined : never())) : never(),
  };
}

/** So long after the death of a process the kernel has closed its connections: what was on the wire is through by then. */
const CLOSING_MS = 1_000;

/** What was on the wire when the process died still reaches the service; its answer reaches nobody. */
function mortalTransport(transport: Transport, clock: Clock, { isAlive, onDeath }: Mortal): Transport {
  const underWay = new Set<AbortController>();
  onDeath(() => {
    void clock.sleep(CLOSING_MS).then(() => {
      for (const wire of underWay) wire.abort();
    });
  });
  return {
    async request(request, signal) {
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
      return isAlive() ? answer : never();
    },
    close: () => Promise.resolve(),
  };
}

function mortalJournal(journal: Journal, isAlive: () => boolean): Journal {
  return {
    ...journal,
    commit(changes) {
      if (!isAlive()) throw new Error("the process is dead");
      journal.commit(changes);
    },
    prune: (before) => (isAlive() ? journal.prune(before) : undefined),
  };
}

const mortalLog = (log: Log, isAlive: () => boolean): Log => ({
  debug: (fields, message) => (isAlive() ? log.debug(fields, message) : undefined),
  info: (fields, message) => (isAlive() ? log.info(fields, message) : undefined),
  warn: (fields, message) => (isAlive() ? log.warn(fields, message) : undefined),
  error: (fields, message) => (isAlive() ? log.error(fields, message) : undefined),
});
