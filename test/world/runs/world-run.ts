import { createHash } from "node:crypto";
import type { DurationMs } from "../../../src/base/duration.ts";
import type { Obstacles } from "../../../src/model/ports.ts";
import { livenessLaws } from "../invariants/liveness-invariants.ts";
import { createOperators, type Operators } from "../faults/operators.ts";
import { callFor } from "../faults/external-client.ts";
import { beginPlay, type Play, STEP_MS } from "../daemon/simulation.ts";
import { beginQuiet } from "../faults/quiet-period.ts";
import type { Breach } from "../daemon/simulation-parts.ts";
import { truthBreaches } from "../invariants/metrics-invariants.ts";
import type { KillPoint, WorldEvent } from "../faults/world-events.ts";
import type { WorldInput } from "./world-input.ts";

/** What came of a run. */
export interface WorldReport {
  readonly breaches: readonly Breach[];
  readonly nodes: number;
  readonly posts: number;
  readonly episodes: number;
  /** Processes, one after the other. */
  readonly lives: number;
  readonly calls: number;
  /** How often a changed decision gave each reason to hold. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Nodes that were ill in the quiet period, by what became of them. */
  readonly accounts: Readonly<Record<string, number>>;
  /** A fingerprint of all POSTs and of the calls: the same input gives the same one. */
  readonly digest: string;
}

/** With so many laws broken a run is over. */
const BREACHES_MAX = 20;

/** Every law, where one is named. */
export const ANY_LAW = "*";

/** When a run ends before its end. */
export interface Until {
  /** As soon as this law is broken, or any by {@link ANY_LAW}; absent: it goes on. */
  readonly law?: string;
  /** At this time from its start. */
  readonly ms?: DurationMs;
}

/** Runs an input to its end, or until something is so. */
export async function runWorld(input: WorldInput, until: Until = {}): Promise<WorldReport> {
  const world = createWorldRun(input);
  const { play, operators } = world;
  const { stage } = play;
  const events = [...input.events];
  const isOver = () =>
    stage.breaches.length >= BREACHES_MAX ||
    stage.clock.monotonic() >= (until.ms ?? Number.POSITIVE_INFINITY) ||
    stage.breaches.some(({ law }) => until.law === ANY_LAW || law === until.law);
  for (let at = 0; at < input.quietAtMs && !isOver(); at += STEP_MS) {
    while (events[0] !== undefined && events[0].atMs <= at) await world.apply(events.shift()!.event);
    await play.pass(STEP_MS);
    operators.attend();
  }
  world.disarm();
  const quiet = beginQuiet(play, operators);
  const liveness = livenessLaws(stage);
  for (let at = input.quietAtMs; at < input.endMs && !isOver(); at += STEP_MS) {
    quiet.attend();
    await play.pass(STEP_MS);
    operators.attend();
    liveness.look();
  }
  if (!isOver() && play.life() === null) stage.breach("runs at the end", "the daemon is down");
  else if (!isOver()) {
    liveness.close();
    for (const [law, detail] of await truthBreaches(stage)) stage.breach(law, detail);
  }
  await play.end();
  return reportOf(play, liveness.accounts());
}

function reportOf(play: Play, accounts: WorldReport["accounts"]): WorldReport {
  const { breaches, posts, chronicle, service } = play.stage;
  const hash = createHash("sha256");
  for (const { at, node, kind, answer } of posts) hash.update(`${at} ${node} ${kind} ${answer}\n`);
  return {
    ...{ breaches, accounts, nodes: service.world.fleet.all.length, posts: posts.length },
    ...{ episodes: chronicle.episodes.size, lives: play.lives(), calls: service.serial },
    reasons: Object.fromEntries(chronicle.reasons),
    digest: hash.update(`${service.serial}`).digest("hex").slice(0, 12),
  };
}

interface WorldRun {
  readonly play: Play;
  readonly operators: Operators;
  apply(event: WorldEvent): Promise<void>;
  /** What waits for its moment misses it, and what lasts ends. */
  disarm(): void;
}

function createWorldRun(input: WorldInput): WorldRun {
  const { seed, scenario, configuration, startMs, callsPerMonth } = input;
  const trap = createTrap();
  let fullUntil = 0;
  let blockedUntil = 0;
  const isBlocked = () => Promise.resolve({ ok: true, value: play.stage.clock.monotonic() < blockedUntil } as const);
  const obstacles: Obstacles = { query: isBlocked, alerts: isBlocked };
  const play = beginPlay({
    ...{ seed, scenario, startMs, obstacles, ...configuration },
    ...(callsPerMonth === null ? {} : { contract: { plan: { callsPerMonth } } }),
    onMoment: trap.pass,
    onCommit: (when, on) => trap.pass(`commit_${when}`, on),
    onPost: (_post, on) => trap.pass("post", on),
    diskProblem: () => (play.stage.clock.monotonic() < fullUntil ? "the disk is full" : null),
  });
  const { stage } = play;
  const operators = createOperators(play, seed);
  const idOf = (index: number) => stage.service.world.fleet.all[index]!.id;
  const until = (forMs: DurationMs) => stage.clock.monotonic() + forMs;

  async function apply(event: WorldEvent): Promise<void> {
    switch (event.kind) {
      case "restart":
        return play.restart(event.downMs);
      case "kill":
        return trap.lay(event);
      case "disk_full":
        fullUntil = until(event.forMs);
        return;
      case "clock_step":
        return stage.clock.step(event.byMs);
      case "reload":
        return play.reload(event.configuration);
      case "quarantine":
        return operators.quarantine(idOf(event.node), event.forMs);
      case "lift_quarantine":
        return operators.liftQuarantine();
      case "hold":
        return operators.hold(idOf(event.node), event.forMs);
      case "pause":
        return operators.pause(event.forMs);
      case "blocked":
        blockedUntil = until(event.forMs);
        return;
      case "accept_inventory":
        return operators.acceptInventory();
      case "other_user":
        return callFor(event, stage);
      default:
        return event satisfies never;
    }
  }

  return {
    ...{ play, operators, apply },
    disarm() {
      trap.disarm();
      // The machine's clock is right again.
      stage.clock.step(startMs + stage.clock.monotonic() - stage.clock.now());
      [fullUntil, blockedUntil] = [0, 0];
    },
  };
}

/** Kills the process at the n-th moment of a kind. */
function createTrap() {
  let laid: { readonly point: KillPoint; readonly downMs: DurationMs } | null = null;
  let left = 0;
  return {
    lay({ point, count, downMs }: Extract<WorldEvent, { kind: "kill" }>): void {
      laid = { point, downMs };
      left = count;
    },
    disarm(): void {
      laid = null;
    },
    pass(point: KillPoint, play: Play): void {
      if (laid?.point !== point) return;
      left--;
      if (left > 0) return;
      const { downMs } = laid;
      laid = null;
      play.kill(downMs);
    },
  };
}
