import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../src/base/duration.ts";
import { seededRandom } from "../../src/base/random.ts";
import { isLost } from "../../src/policy/facts.ts";
import type { Play } from "./play.ts";
import type { Stage } from "./stage.ts";

/** The operators of a daemon: they give orders, take them back, and answer what waits for them. */
export interface Operators {
  /** Another operator quarantines a node past the daemon. */
  quarantine(node: string, forMs: DurationMs): void;
  /** Another operator lifts one of the daemon's quarantines. */
  liftQuarantine(): void;
  hold(node: string, forMs: DurationMs): void;
  pause(forMs: DurationMs): void;
  acceptInventory(): void;
  /** To be called again and again: does what is due. */
  attend(): void;
  /** From now on every question is answered with yes, at once, and everything that holds is taken back. */
  beDiligent(): void;
}

/** What stays open or shrunk is looked into after so long. */
const BREAKER_MS: DurationMs = 2 * HOUR_MS;
const BREAKER_MS_DILIGENT: DurationMs = 20 * MINUTE_MS;
const INVENTORY_MS: DurationMs = 30 * MINUTE_MS;
const LOSS_MS: DurationMs = 4 * HOUR_MS;
/** The clocks agree within this after a start. */
const CLOCK_MS: DurationMs = 70 * MINUTE_MS;
/** Of the actions that wait, so many are approved or rejected at a look. */
const APPROVED_SHARE = 0.006;
const REJECTED_SHARE = 0.0006;
/** Faults under which no careful operator believes what is listed. */
const LISTS_WRONGLY: ReadonlySet<string> = new Set(["vanished", "empty_list", "bad_records", "page_ignored"]);

/** Creates the operators of a run. What they decide by chance follows from the seed. */
export function createOperators(play: Play, seed: number): Operators {
  const random = seededRandom(seed + 17);
  const { stage } = play;
  let isDiligent = false;
  /** Orders that are taken back at some time, once the daemon takes orders. */
  let takenBack: { readonly at: number; run(): boolean }[] = [];
  /** Since when something is so that an operator looks into, by what it is. */
  const since = new Map<string, number>();
  /** When each request for an approval was first seen. */
  const askedAt = new Map<string, number>();
  const orders = () => play.life()?.warden.orders;

  const later = (ms: DurationMs, run: () => boolean): void => {
    takenBack.push({ at: stage.clock.monotonic() + ms, run });
  };

  /** Whether something has been so for a while. */
  function lasts(what: string, isSo: boolean, ms: DurationMs): boolean {
    const now = stage.clock.monotonic();
    if (!isSo) since.delete(what);
    else if (!since.has(what)) since.set(what, now);
    return isSo && now - since.get(what)! >= ms;
  }

  function answerQuestions(): void {
    const approvals = play.life()?.warden.view.approvals() ?? [];
    for (const { id } of approvals) {
      assertInForce(id);
      const dice = isDiligent ? 0 : random();
      if (dice < APPROVED_SHARE && orders()?.approve(id).ok) stage.approvals.set(id, stage.clock.monotonic());
      else if (dice >= APPROVED_SHARE && dice < APPROVED_SHARE + REJECTED_SHARE) orders()?.reject(id, "not now");
    }
  }

  /** A request that waits for longer than it may is not to be there any more. */
  function assertInForce(id: string): void {
    const now = stage.clock.monotonic();
    if (!askedAt.has(id)) askedAt.set(id, now);
    const waitedMs = now - askedAt.get(id)!;
    const withinMs = stage.rules.safety.approvalTtlMs + MINUTE_MS;
    // After a start it may take an hour until it is known how long the daemon was down.
    const isSettled = now - stage.bornAt > CLOCK_MS && waitedMs > withinMs;
    if (isSettled) stage.breach("approval expired", `${id} still waits after ${waitedMs / MINUTE_MS} min`);
  }

  function lookIntoAlarms(): void {
    const view = play.life()?.warden.view;
    if (view === undefined) return;
    const status = view.status();
    const isFallen = view.policies().some(({ fallen }) => fallen);
    const isOpen = status.breaker !== null || (isDiligent && isFallen);
    if (lasts("breaker", isOpen, isDiligent ? BREAKER_MS_DILIGENT : BREAKER_MS) && orders()?.resetBreaker().ok) {
      stage.tripwire.reset();
      since.delete("breaker");
    }
    const isShort = status.trust.some(
      ({ reason }) => reason === "inventory_shrunk" || reason === "inventory_incomplete",
    );
    const isLosing = [...stage.chronicle.open].some((id) => isLost(stage.chronicle.episodes.get(id)!));
    if (lasts("inventory", isShort, INVENTORY_MS) || lasts("loss", isLosing, isDiligent ? INVENTORY_MS : LOSS_MS)) {
      acceptInventory();
    }
  }

  function acceptInventory(): void {
    const { world } = stage.service;
    const now = world.now - world.startMs;
    const isWrong = world.script.faults.some(
      ({ afterMs, forMs, fault }) => LISTS_WRONGLY.has(fault.kind) && now >= afterMs && now < afterMs + forMs + HOUR_MS,
    );
    if (isWrong || orders()?.acceptInventory().ok !== true) return;
    stage.acceptedAt = stage.clock.monotonic();
    since.delete("inventory");
    since.delete("loss");
  }

  return {
    quarantine(node, forMs) {
      const until = stage.serviceNow() + forMs;
      if (!stage.service.world.fleet.nodes.some(({ id }) => id === node)) return;
      play.people.quarantine(node, until);
      stage.withPeople.set(node, until);
    },
    liftQuarantine() {
      const ours = quarantinedByUs(stage);
      const node = ours[Math.floor(random() * ours.length)];
      if (node !== undefined) play.people.liftQuarantine(node);
    },
    hold(node, forMs) {
      if (orders()?.hold(node, "not now").ok) later(forMs, () => orders()?.release(node).ok ?? false);
    },
    pause(forMs) {
      if (orders()?.pause("not now").ok) later(forMs, () => orders()?.resume().ok ?? false);
    },
    acceptInventory,
    attend() {
      const now = stage.clock.monotonic();
      takenBack = takenBack.filter(({ at, run }) => (at > now && !isDiligent) || !run());
      answerQuestions();
      lookIntoAlarms();
    },
    beDiligent() {
      isDiligent = true;
    },
  };
}

/** Nodes of the fleet that the daemon has in quarantine, by its journal. */
function quarantinedByUs({ chronicle, service }: Stage): string[] {
  const present = new Set(service.world.fleet.nodes.map(({ id }) => id));
  const open = [...chronicle.open].map((id) => chronicle.episodes.get(id)!);
  return open.flatMap(({ quarantine, node }) => (quarantine === null || !present.has(node) ? [] : [node]));
}
