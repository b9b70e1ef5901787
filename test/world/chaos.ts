import { HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { rateLimitedCount } from "../../src/simulator/inspection.ts";
import { START_MS } from "../engine/daemon.ts";
import { createDrill } from "./drill.ts";
import { type Play, STEP_MS } from "./play.ts";
import type { Breach, Post } from "./stage.ts";
import { REST_MS, type TurmoilSize, turmoilOf } from "./turmoil.ts";

/** What came of a run under turmoil. */
export interface ChaosReport {
  readonly breaches: readonly Breach[];
  readonly posts: readonly Post[];
  readonly episodes: number;
  /** Processes, one after the other. */
  readonly lives: number;
}

/** With so many laws broken a run is over. */
const BREACHES_MAX = 50;

/** Lives through the turmoil of a seed. */
export async function liveThrough(seed: number, size: TurmoilSize): Promise<ChaosReport> {
  const turmoil = turmoilOf(seed, size);
  const drill = createDrill(turmoil);
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
  const { breaches, posts, chronicle } = stage;
  return { breaches, posts, episodes: chronicle.episodes.size, lives: play.lives() };
}

/** Once all has been calm for a while, nothing may be left half done. */
function leftOver({ stage, life }: Play): void {
  const { actions, underWay } = stage.chronicle;
  if (life() === null) stage.breach("it goes on", "the daemon is down");
  const now = START_MS + stage.clock.monotonic() + stage.forwardMs;
  for (const id of underWay) {
    const { createdAt, state } = actions.get(id)!;
    const age = now - createdAt;
    if (age > HOUR_MS) stage.breach("it goes on", `${id} is ${state} for ${Math.round(age / MINUTE_MS)} min`);
  }
}
