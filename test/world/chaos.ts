import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import type { Random } from "../../src/base/random.ts";
import { seededRandom } from "../../src/base/random.ts";
import { rateLimitedCount } from "../../src/simulator/inspection.ts";
import { createPlanLimits, minuteSettings } from "../engine/daemon.ts";
import { beginPlay, type Play, STEP_MS } from "./play.ts";
import type { Breach } from "./stage.ts";
import { type Blow, REST_MS, type Turmoil, turmoilOf } from "./turmoil.ts";

/** What came of a run under turmoil. */
export interface ChaosReport {
  readonly seed: number;
  readonly breaches: readonly Breach[];
  readonly posts: number;
  readonly episodes: number;
  readonly lives: number;
  readonly said: ReadonlyMap<string, number>;
}

/** A breaker that opened is looked into by a person after this. */
const BREAKER_MS = 20 * MINUTE_MS;
/** Most breaches that a run is let go on with. */
const BREACHES_MAX = 50;

/** Lives through the turmoil of a seed. */
export async function liveThrough(
  seed: number,
  size: { readonly hours: number; readonly nodes: number },
): Promise<ChaosReport> {
  const turmoil = turmoilOf(seed, size);
  const drill = createDrillForTrace(turmoil);
  const { play } = drill;
  const { stage } = play;
  const blows = [...turmoil.blows];
  for (let at = 0; at < size.hours * HOUR_MS && stage.breaches.length < BREACHES_MAX; at += STEP_MS) {
    while (blows[0] !== undefined && blows[0].atMs <= at) await drill.strike(blows.shift()!.blow);
    await play.pass(STEP_MS);
    drill.tend();
    if (at > size.hours * HOUR_MS - REST_MS) drill.disarm();
  }
  leftOver(play);
  const limited = rateLimitedCount(stage.service);
  if (limited > 0) stage.breach("no 429", `${limited} calls were answered with 429`);
  await play.end();
  const { chronicle, breaches, posts } = stage;
  return {
    seed,
    breaches,
    posts: posts.length,
    episodes: chronicle.episodes.size,
    lives: drill.lives(),
    said: play.said,
    allPosts: posts,
  } as ChaosReport;
}

/** Once all is calm again, nothing may be left half done. */
function leftOver({ stage, life }: Play): void {
  const { actions, underWay } = stage.chronicle;
  if (life() === null) stage.breach("it goes on", "the daemon is down");
  for (const id of underWay) {
    const action = actions.get(id)!;
    const age = stage.clock.now() - action.createdAt;
    if (age > HOUR_MS) stage.breach("it goes on", `${id} is ${action.state} for ${Math.round(age / MINUTE_MS)} min`);
  }
}

/** Deals blows, and does what people do who watch. */
export function createDrillForTrace(turmoil: Turmoil) {
  const random: Random = seededRandom(turmoil.seed + 17);
  let fuse: Extract<Blow, { kind: "crash_at_commit" }> | null = null;
  let burnt = 0;
  let trap: Extract<Blow, { kind: "crash_at_post" }> | null = null;
  let lives = 1;
  /** Orders that a person takes back at some time. */
  const takeBacks: { at: number; run: () => boolean }[] = [];
  let breakerSeenAt: number | null = null;

  const play = beginPlay({
    ...{ seed: turmoil.seed, scenario: turmoil.scenario, rules: turmoil.rules },
    settings: { ...minuteSettings, limits: createPlanLimits(turmoil.plan) },
    onCommit(when) {
      if (fuse === null) return;
      if (when === "before") burnt++;
      if (burnt < fuse.commits || when !== fuse.when) return;
      const { downMs } = fuse;
      fuse = null;
      lives++;
      play.kill(downMs);
    },
    onPost() {
      if (trap === null) return;
      const { downMs } = trap;
      trap = null;
      lives++;
      play.kill(downMs);
    },
  });
  const { stage, people } = play;
  const { nodes } = stage.service.world.fleet;
  const later = (ms: number, run: () => boolean) => void takeBacks.push({ at: stage.clock.monotonic() + ms, run });

  function lift(): void {
    const ours = [...stage.chronicle.open]
      .map((id) => stage.chronicle.episodes.get(id)!)
      .filter(({ quarantine }) => quarantine !== null);
    const one = ours[Math.floor(random() * ours.length)];
    if (one !== undefined) people.liftQuarantine(one.node);
  }

  function quarantine(node: string, forMs: number): void {
    const until = stage.serviceNow() + forMs;
    people.quarantine(node, until);
    stage.withPeople.set(node, until);
  }

  function hold(node: string, forMs: number): void {
    const held = play.life()?.warden.orders.hold(node, "drill");
    if (held?.ok) later(forMs, () => play.life()?.warden.orders.release(node).ok ?? false);
  }

  function pause(forMs: number): void {
    const paused = play.life()?.warden.orders.pause("drill");
    if (paused?.ok) later(forMs, () => play.life()?.warden.orders.resume().ok ?? false);
  }

  function judgeQueue(): void {
    const life = play.life();
    for (const { id } of life?.warden.view.approvals() ?? []) {
      const dice = random();
      if (dice < 0.05) life!.warden.orders.approve(id);
      else if (dice < 0.06) life!.warden.orders.reject(id, "drill");
    }
  }

  function mindBreaker(): void {
    const { breaker } = play.life()?.warden.view.status() ?? { breaker: null };
    const now = stage.clock.monotonic();
    if (breaker === null) breakerSeenAt = null;
    else if (breakerSeenAt === null) breakerSeenAt = now;
    else if (now - breakerSeenAt >= BREAKER_MS && play.life()?.warden.orders.resetBreaker().ok) {
      stage.tripwire.reset();
      breakerSeenAt = null;
    }
  }

  return {
    play,
    lives: () => lives,
    async strike(blow: Blow): Promise<void> {
      switch (blow.kind) {
        case "restart":
          if (play.life() !== null) lives++;
          return play.restart(blow.downMs);
        case "crash":
          if (play.life() !== null) lives++;
          return play.kill(blow.downMs);
        case "crash_at_commit":
          fuse = blow;
          burnt = 0;
          return;
        case "crash_at_post":
          trap = blow;
          return;
        case "step":
          return stage.clock.step(blow.byMs);
        case "people_quarantine":
          return quarantine(nodes[blow.node]!.id, blow.forMs);
        case "people_lift":
          return lift();
        case "hold":
          return hold(nodes[blow.node]!.id, blow.forMs);
        case "pause":
          return pause(blow.forMs);
        default:
          return blow satisfies never;
      }
    },
    /** What waits for its moment misses it. */
    disarm(): void {
      fuse = null;
      trap = null;
    },
    tend(): void {
      const now = stage.clock.monotonic();
      for (const [index, { at, run }] of [...takeBacks.entries()].toReversed()) {
        if (at <= now && run()) takeBacks.splice(index, 1);
      }
      judgeQueue();
      mindBreaker();
    },
  };
}
