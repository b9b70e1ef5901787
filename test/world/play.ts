import { type DurationMs, MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import type { Rules } from "../../src/engine/ward.ts";
import type { WatchSettings } from "../../src/engine/watch.ts";
import type { Change } from "../../src/model/journal.ts";
import type { Log, Store } from "../../src/model/ports.ts";
import type { Scenario } from "../../src/model/scenario.ts";
import { createVirtualClock } from "../../src/simulator/clock.ts";
import { createInterventions, type Interventions } from "../../src/simulator/intervention.ts";
import { createService } from "../../src/simulator/service.ts";
import { createSimulatedTransport } from "../../src/simulator/transport.ts";
import { createMemoryStore } from "../../src/store/sqlite.ts";
import { START_MS } from "../engine/daemon.ts";
import { createChronicle } from "./chronicle.ts";
import { beginLife, createMortal, type Life } from "./life.ts";
import { type Post, type Stage, trueTime } from "./stage.ts";
import { createTripwire } from "./tripwire.ts";
import { createWitness } from "./witness.ts";

/** What a play is about. */
export interface PlayOptions {
  readonly seed: number;
  readonly scenario: Scenario;
  readonly settings: WatchSettings;
  readonly rules: Rules;
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
  const { seed, scenario, settings, rules } = options;
  const clock = createVirtualClock(START_MS);
  const service = createService(scenario, START_MS);
  const store = createMemoryStore();
  const said = new Map<string, number>();
  const tripwire = createTripwire(rules, scenario.nodes);
  let lives = 0;
  let mortal = createMortal();
  let startsAt = Number.POSITIVE_INFINITY;

  const chronicle = createChronicle(store, {
    before: (changes) => hook("before", changes),
    after: (changes) => hook("after", changes),
    onFirings(firings) {
      tripwire.fired(firings, clock.monotonic() + stage.forwardMs);
      options.onFirings?.(firings, play);
    },
    breach: (law, detail) => stage.breach(law, detail),
  });
  const stage: Stage = {
    ...{ service, clock, chronicle, rules, tripwire },
    ...{ posts: [], postsOfStep: new Map(), underHand: new Map(), withPeople: new Map(), breaches: [] },
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
  const count = (level: string, message: string) => {
    const line = `${level}: ${message}`;
    said.set(line, (said.get(line) ?? 0) + 1);
    if (message.startsWith("a round of the warden broke")) stage.breach("no round breaks", message);
  };
  const log: Log = {
    debug: () => {},
    info: () => {},
    warn: (_fields, message) => count("warn", message),
    error: (fields, message) => count("error", `${message}${fields.err === undefined ? "" : ` ${fields.err}`}`),
  };

  function hook(when: "before" | "after", changes: readonly Change[]): void {
    options.onCommit?.(when, play, changes);
    if (!mortal.isAlive()) throw new Error("killed");
  }

  function start(): void {
    lives++;
    startsAt = Number.POSITIVE_INFINITY;
    mortal = createMortal();
    stage.bornAt = clock.monotonic();
    stage.forwardMs = Math.max(stage.forwardMs, clock.now() - clock.monotonic() - START_MS);
    const { journal } = chronicle;
    stage.life = beginLife({
      ...{ clock, transport, store, journal, settings, rules, log, mortal },
      seed: seed * 1_000 + lives,
    });
  }

  function kill(downMs: DurationMs): void {
    if (!mortal.isAlive()) return;
    mortal.kill();
    startsAt = clock.monotonic() + downMs;
  }

  async function stop(): Promise<void> {
    if (stage.life?.isAlive() !== true) return;
    const stopped = stage.life.stop();
    await clock.advance(STOP_MS);
    await stopped;
  }

  const play: Play = {
    ...{ stage, store, said, kill },
    people: createInterventions(service, stage.serviceNow),
    life: () => (stage.life?.isAlive() === true ? stage.life : null),
    lives: () => lives,
    async pass(ms) {
      const until = clock.monotonic() + ms;
      while (clock.monotonic() < until) {
        if (clock.monotonic() >= startsAt) start();
        await clock.advance(Math.min(STEP_MS, until - clock.monotonic()));
      }
    },
    async restart(downMs) {
      await stop();
      startsAt = clock.monotonic() + downMs;
    },
    async end() {
      startsAt = Number.POSITIVE_INFINITY;
      await stop();
    },
  };
  start();
  return play;
}
