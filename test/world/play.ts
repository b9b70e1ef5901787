import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Change } from "../../src/model/journal.ts";
import type { Log, Obstacles, Store } from "../../src/model/ports.ts";
import type { Scenario } from "../../src/model/scenario.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import type { EpochMs } from "../../src/model/time.ts";
import type { Contract } from "../../src/simulator/admission.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { createInterventions, type Interventions } from "../../src/simulator/intervention.ts";
import { createService } from "../../src/simulator/service.ts";
import { createSimulatedTransport } from "../../src/simulator/transport.ts";
import { createMemoryStore } from "../../src/store/sqlite.ts";
import { noObstacles, START_MS } from "../engine/daemon.ts";
import { createChronicle } from "./chronicle.ts";
import { firingLaw } from "./firing-law.ts";
import { beginLife, type Configuration, createMortal, type Life, type Moment } from "./life.ts";
import { createObservations } from "./observations.ts";
import { type Post, type Stage, trueTime } from "./stage.ts";
import { createTripwire } from "./tripwire.ts";
import { createWitness } from "./witness.ts";

/** What a play is about. */
export interface PlayOptions extends Configuration {
  readonly seed: number;
  readonly scenario: Scenario;
  /** The limits of the service where they differ from its plan's. */
  readonly contract?: Contract;
  /** When it begins; absent: at the beginning of a month. */
  readonly startMs?: EpochMs;
  readonly obstacles?: Obstacles;
  /** Told of each moment at which the daemon may be killed, beside commits and POSTs. */
  readonly onMoment?: (moment: Moment, play: Play) => void;
  /** Why the disk refuses writes now; null: it takes them. */
  readonly diskProblem?: () => string | null;
  /** Told of each commit, before and after it reached the store. It may kill the daemon, or throw as a store does. */
  readonly onCommit?: (when: "before" | "after", play: Play, changes: readonly Change[]) => void;
  /** Told of each POST as it goes out. It may kill the daemon. */
  readonly onPost?: (post: Post, play: Play) => void;
  readonly onFirings?: (firings: readonly { readonly policy: string; readonly node: string }[], play: Play) => void;
}

/** A network, the daemon's lives one after the other, and the witness between them. */
export interface Play {
  readonly stage: Stage;
  readonly store: Store;
  readonly people: Interventions;
  /** Messages of the log at warn and error, counted. */
  readonly said: ReadonlyMap<string, number>;
  /** Passes time; a daemon that is dead is started again after `downMs`. */
  pass(ms: DurationMs): Promise<void>;
  /** The life that lasts; null: the daemon is down. */
  life(): Life | null;
  /** Lives so far. */
  lives(): number;
  kill(downMs: DurationMs): void;
  /** Puts another configuration in force: at once if the daemon runs, else with its next start. */
  reload(configuration: Configuration): void;
  /** Stops it in order, and starts it after a while. */
  restart(downMs: DurationMs): Promise<void>;
  end(): Promise<void>;
}

/** Time passes in steps of this: a daemon that died in one is looked after at its end. */
export const STEP_MS: DurationMs = 10 * SECOND_MS;
/** What a stop takes at most. */
const STOP_MS: DurationMs = MINUTE_MS;

/** Begins a play: nothing has happened, and the daemon was just started. */
export function beginPlay(options: PlayOptions): Play {
  const { seed, scenario, startMs = START_MS } = options;
  const clock = createVirtualClock(startMs);
  const service = createService(scenario, startMs, options.contract);
  const store = createMemoryStore();
  const said = new Map<string, number>();
  let configuration: Configuration = options;
  let walkAt: number | null = null;
  let lives = 0;
  let mortal = createMortal();
  let startsAt = Number.POSITIVE_INFINITY;

  const tripwire = createTripwire({
    rules: () => stage.rules,
    nodes: () => stage.life?.snapshot()?.fleet.count ?? scenario.nodes,
    isFallen: (policy) => (chronicle.facts.get(`warden.fallen.${policy}`) ?? null) !== null,
  });
  const chronicle = createChronicle(store, {
    before: (changes) => hook("before", changes),
    after: (changes) => hook("after", changes),
    onFirings(firings) {
      for (const { policy, node } of firings) {
        const broken = firingLaw(policy, node, stage);
        if (broken !== null) stage.breach("a healthy node fires", broken);
      }
      tripwire.fired(firings, clock.monotonic() + stage.forwardMs);
      options.onFirings?.(firings, play);
    },
    breach: (law, detail) => stage.breach(law, detail),
  });
  const stage: Stage = {
    ...{ service, clock, chronicle, tripwire, startMs, rules: options.rules },
    ...{ posts: [], postsOfStep: new Map(), underHand: new Map(), withPeople: new Map(), breaches: [] },
    ...{ seen: createObservations(), wasIllAt: new Map(), approvals: new Map(), acceptedAt: Number.NEGATIVE_INFINITY },
    ledger: { counted: 0, pending: 0, lost: 0 },
    others: { calls: 0, calledAt: Number.NEGATIVE_INFINITY },
    life: null,
    forwardMs: 0,
    bornAt: 0,
    serviceNow: trueTime(service, clock),
    breach(law, detail) {
      stage.breaches.push({ law, at: clock.monotonic(), detail });
    },
  };
  const network = createSimulatedTransport(service, clock, { latencyMs: 50, jitter: 0.5 });
  const transport = createWitness(stage, network, (post) => options.onPost?.(post, play));
  const log = createCountingLog(said, stage);

  function hook(when: "before" | "after", changes: readonly Change[]): void {
    if (when === "before") assertDisk();
    options.onCommit?.(when, play, changes);
    if (!mortal.isAlive()) throw new Error("killed");
  }

  function assertDisk(): void {
    const problem = options.diskProblem?.() ?? null;
    if (problem !== null) throw new Error(problem);
  }

  const disk: Store = {
    ...store,
    facts: {
      read: store.facts.read,
      write(key, value) {
        assertDisk();
        store.facts.write(key, value);
      },
    },
    calls: {
      since: store.calls.since,
      add(day, calls) {
        const { ledger } = stage;
        ledger.pending = calls;
        assertDisk();
        store.calls.add(day, calls);
        ledger.pending = 0;
        ledger.counted += calls;
      },
    },
  };

  function onSnapshot({ fleet }: Snapshot): void {
    if (fleet.lastWalk === null || fleet.lastWalk.at === walkAt) return;
    walkAt = fleet.lastWalk.at;
    const tooSoon = stage.seen.walkEnded(new Set(fleet.ids.filter((id) => id !== "")));
    for (const node of tooSoon) stage.breach("forgotten too soon", `${node} is forgotten after one walk without it`);
  }

  function start(): void {
    lives++;
    startsAt = Number.POSITIVE_INFINITY;
    mortal = createMortal();
    walkAt = null;
    stage.seen.begin();
    chronicle.beginLife();
    stage.bornAt = clock.monotonic();
    stage.forwardMs = Math.max(stage.forwardMs, clock.now() - clock.monotonic() - startMs);
    stage.life = beginLife({
      ...{ clock, transport, store: disk, journal: chronicle.journal, log, mortal, ...configuration },
      obstacles: options.obstacles ?? noObstacles,
      seed: seed * 1_000 + lives,
      onMoment: (moment) => options.onMoment?.(moment, play),
      onSnapshot,
      onConfiguration({ rules }) {
        stage.rules = rules;
      },
    });
  }

  function kill(downMs: DurationMs): void {
    if (!mortal.isAlive()) return;
    mortal.kill();
    losePending();
    startsAt = clock.monotonic() + downMs;
  }

  /** What the disk refused to count ends with the process. */
  function losePending(): void {
    stage.ledger.lost += stage.ledger.pending;
    stage.ledger.pending = 0;
  }

  async function stop(): Promise<void> {
    if (stage.life?.isAlive() !== true) return;
    let isStopped = false;
    void stage.life.stop().then(() => {
      isStopped = true;
    });
    await clock.advance(STOP_MS);
    // It may have been killed while it stopped, and then never ends.
    if (isStopped || !mortal.isAlive()) {
      if ((options.diskProblem?.() ?? null) !== null) losePending();
      return;
    }
    stage.breach("stops in time", `it did not stop within ${STOP_MS / SECOND_MS} s`);
    mortal.kill();
  }

  const play: Play = {
    ...{ stage, store, said, kill },
    people: createInterventions(service, stage.serviceNow),
    reload(next) {
      configuration = next;
      if (stage.life?.isAlive() === true) void stage.life.reload(next);
    },
    life: () => (stage.life?.isAlive() === true ? stage.life : null),
    lives: () => lives,
    async pass(ms) {
      const until = clock.monotonic() + ms;
      while (clock.monotonic() < until) {
        if (clock.monotonic() >= startsAt) start();
        await clock.advance(Math.min(STEP_MS, until - clock.monotonic()));
        noteIll(stage);
      }
    },
    async restart(downMs) {
      await stop();
      if (!mortal.isAlive()) startsAt = Math.min(startsAt, clock.monotonic() + downMs);
    },
    async end() {
      startsAt = Number.POSITIVE_INFINITY;
      await stop();
    },
  };
  start();
  return play;
}

/** Remembers which nodes are ill now. */
function noteIll({ service: { world }, wasIllAt }: Stage): void {
  for (const { id, ailment, dark } of world.fleet.nodes) if (ailment !== "none" || dark) wasIllAt.set(id, world.now);
}

/** Counts what is logged at warn and error. A round that broke is a defect. */
function createCountingLog(said: Map<string, number>, stage: Stage): Log {
  const count = (level: string, message: string) => {
    const line = `${level}: ${message}`;
    said.set(line, (said.get(line) ?? 0) + 1);
    if (message.startsWith("a round of the warden broke")) stage.breach("no round breaks", message);
  };
  return {
    debug: () => {},
    info: () => {},
    warn: (_fields, message) => count("warn", message),
    error: (fields, message) => count("error", `${message}${fields.err === undefined ? "" : ` ${fields.err}`}`),
  };
}
