import { MINUTE_MS } from "../../src/base/duration.ts";
import { seededRandom } from "../../src/base/random.ts";
import { createPlanLimits, minuteSettings } from "../engine/daemon.ts";
import { beginPlay, type Play } from "./play.ts";
import type { Stage } from "./stage.ts";
import type { Blow, Turmoil } from "./turmoil.ts";

/** A play under turmoil. */
export interface Drill {
  readonly play: Play;
  strike(blow: Blow): Promise<void>;
  /** What people do who watch. */
  tend(): void;
  /** What still waits for its moment misses it. */
  disarm(): void;
}

/** A breaker that opened is looked into by a person after this. */
const BREAKER_MS = 20 * MINUTE_MS;
/** Of the actions that wait, so many are approved or rejected at a look. */
const APPROVED_SHARE = 0.05;
const REJECTED_SHARE = 0.01;

/** Begins a drill: the turmoil's faults happen by themselves, its blows when they are struck. */
export function createDrill(turmoil: Turmoil): Drill {
  const ambush = createAmbush();
  const play = beginPlay({
    ...{ seed: turmoil.seed, scenario: turmoil.scenario, rules: turmoil.rules },
    settings: { ...minuteSettings, limits: createPlanLimits(turmoil.plan) },
    onCommit: (when, on) => ambush.onCommit(when, on),
    onPost: (_post, on) => ambush.onPost(on),
  });
  const people = createPeople(play, turmoil.seed);
  const { stage } = play;
  const idOf = (index: number) => stage.service.world.fleet.nodes[index]!.id;
  return {
    play,
    async strike(blow) {
      switch (blow.kind) {
        case "restart":
          return play.restart(blow.downMs);
        case "crash":
          return play.kill(blow.downMs);
        case "crash_at_commit":
        case "crash_at_post":
          return ambush.lay(blow);
        case "disk_full":
          return ambush.fillDisk(stage.clock.monotonic() + blow.forMs);
        case "step":
          return stage.clock.step(blow.byMs);
        case "people_quarantine":
          return people.quarantine(idOf(blow.node), blow.forMs);
        case "people_lift":
          return people.lift();
        case "hold":
          return people.hold(idOf(blow.node), blow.forMs);
        case "pause":
          return people.pause(blow.forMs);
        default:
          return blow satisfies never;
      }
    },
    tend: people.tend,
    disarm: ambush.disarm,
  };
}

/** What strikes when the daemon writes something down, or sends something. */
function createAmbush() {
  let atCommit: Extract<Blow, { kind: "crash_at_commit" }> | null = null;
  let atPost: Extract<Blow, { kind: "crash_at_post" }> | null = null;
  let commits = 0;
  let fullUntil = 0;
  return {
    lay(blow: Extract<Blow, { kind: "crash_at_commit" | "crash_at_post" }>): void {
      if (blow.kind === "crash_at_post") atPost = blow;
      else [atCommit, commits] = [blow, 0];
    },
    fillDisk(until: number): void {
      fullUntil = until;
    },
    disarm(): void {
      [atCommit, atPost, fullUntil] = [null, null, 0];
    },
    onCommit(when: "before" | "after", play: Play): void {
      if (when === "before" && play.stage.clock.monotonic() < fullUntil) throw new Error("the disk is full");
      if (atCommit === null) return;
      if (when === "before") commits++;
      if (commits < atCommit.commits || when !== atCommit.when) return;
      const { downMs } = atCommit;
      atCommit = null;
      play.kill(downMs);
    },
    onPost(play: Play): void {
      if (atPost === null) return;
      const { downMs } = atPost;
      atPost = null;
      play.kill(downMs);
    },
  };
}

/** People, who order, and mend, and take nodes into their own hands. */
function createPeople(play: Play, seed: number) {
  const random = seededRandom(seed + 17);
  const { stage } = play;
  /** Orders that a person takes back at some time, once the daemon takes orders. */
  let takeBacks: { readonly at: number; run(): boolean }[] = [];
  let breakerSeenAt: number | null = null;

  const later = (ms: number, run: () => boolean): void => {
    takeBacks.push({ at: stage.clock.monotonic() + ms, run });
  };

  function judgeQueue(): void {
    const life = play.life();
    for (const { id } of life?.warden.view.approvals() ?? []) {
      const dice = random();
      if (dice < APPROVED_SHARE) life!.warden.orders.approve(id);
      else if (dice < APPROVED_SHARE + REJECTED_SHARE) life!.warden.orders.reject(id, "drill");
    }
  }

  function mindBreaker(): void {
    const isOpen = play.life()?.warden.view.status().breaker != null;
    const now = stage.clock.monotonic();
    if (!isOpen) breakerSeenAt = null;
    else if (breakerSeenAt === null) breakerSeenAt = now;
    else if (now - breakerSeenAt >= BREAKER_MS && play.life()?.warden.orders.resetBreaker().ok) {
      stage.tripwire.reset();
      breakerSeenAt = null;
    }
  }

  return {
    quarantine(node: string, forMs: number): void {
      const until = stage.serviceNow() + forMs;
      play.people.quarantine(node, until);
      stage.withPeople.set(node, until);
    },
    lift(): void {
      const ours = quarantinedByUs(stage);
      const node = ours[Math.floor(random() * ours.length)];
      if (node !== undefined) play.people.liftQuarantine(node);
    },
    hold(node: string, forMs: number): void {
      const held = play.life()?.warden.orders.hold(node, "drill");
      if (held?.ok) later(forMs, () => play.life()?.warden.orders.release(node).ok ?? false);
    },
    pause(forMs: number): void {
      const paused = play.life()?.warden.orders.pause("drill");
      if (paused?.ok) later(forMs, () => play.life()?.warden.orders.resume().ok ?? false);
    },
    tend(): void {
      const now = stage.clock.monotonic();
      takeBacks = takeBacks.filter(({ at, run }) => at > now || !run());
      judgeQueue();
      mindBreaker();
    },
  };
}

function quarantinedByUs({ chronicle }: Stage): string[] {
  const open = [...chronicle.open].map((id) => chronicle.episodes.get(id)!);
  return open.flatMap(({ quarantine, node }) => (quarantine === null ? [] : [node]));
}
