import { withRoom } from "../base/typed-column.ts";
import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { NodeRecord } from "../model/node.ts";
import type { Threshold } from "../model/policy/threshold.ts";
import type { MonotonicMs } from "../model/time.ts";
import { createDeadlines } from "./deadline-queue.ts";
import { createHabits } from "./list-baseline.ts";
import { createTrends, type UsageReading } from "./usage-trend.ts";
import { createTurns } from "./round-robin.ts";

/**
 * Why a node is a suspect, to be read before its turn: a policy waits for a look at it; a usage rises towards a
 * threshold; it stands near one; its list record changed abruptly; its last read failed.
 */
export const CAUSES = ["awaited", "rising", "near", "changed", "failed"] as const;
export type Cause = (typeof CAUSES)[number];

/** Whose detail is read, and why before its turn; null: it is its turn. */
export interface Pick {
  readonly slot: number;
  readonly cause: Cause | null;
}

/**
 * Chooses whose detail is read next: the earliest deadline first. A node's own is one planned round after its last
 * read, so nodes stand in the order of their reads, and those that were never read before all others. A suspect has an
 * earlier one, and is read when that comes.
 *
 * Suspects have a share of the reads, and no more. What nothing announces is found by routine reads alone: they are
 * every second one at least and five of six in the long run, so that no node that can be read waits for more than
 * {@link waitMax} others, however many are suspect.
 *
 * A slot is a node's index in the fleet. Of a slot that is not there nothing is taken in.
 */
export interface DetailPriority {
  join(slot: number): void;
  leave(slot: number): void;
  /** A list record came in. */
  list(slot: number, record: NodeRecord, at: MonotonicMs): void;
  /** A detail came in, whoever asked for it. */
  read(slot: number, reading: UsageReading, at: MonotonicMs): void;
  /**
   * A read failed because of the node. It is tried again soon, once; after further failures in a row the node is left
   * out of 1, 3 and then 7 of its turns, until a read succeeds.
   */
  failed(slot: number): void;
  /** All nodes that policies wait on, and when a look at each brings its policy on. */
  setWaits(waits: ReadonlyMap<number, MonotonicMs>): void;
  /** The lines that policies draw through usages, in place of those before. */
  setThresholds(thresholds: readonly Threshold[]): void;
  /** Usages that were read mean nothing any more. */
  forgetUsage(): void;
  /** Whose detail is to be read now, where a round is planned to take so long; its turn is over. Null: there is nobody. */
  take(now: MonotonicMs, roundMs: DurationMs): Pick | null;
  /**
   * A node from anywhere in the fleet, out of turn, to find out whether the service answers: one whose last read
   * succeeded, if a few picks find one. Null: there are no nodes.
   */
  takeProbe(now: MonotonicMs): Pick | null;
  /** From when on {@link take} gives a suspect; Infinity: not before something else happens. */
  suspectAt(): MonotonicMs;
  /** Whether there are nodes whose detail was never tried. */
  hasUntried(): boolean;
  /** Nodes whose last two reads, or more, failed because of the node. */
  failing(): number;
}

/** So many routine reads earn one before its turn. */
const ROUTINE_PER_SUSPECT = 5;
/** Reads before their turn are saved up to this share of the nodes, for what lists show comes in bursts, by walks. */
const SAVED_SHARE = 0.05;
/** … and up to this many in a small fleet. */
const SAVED_MIN = 8;
/** A node is read so many times a round at most, whatever speaks for it. */
const READS_MAX = 64;
/** After a failed read a node is tried again after this share of a round, doubled with each failure, as a suspect. */
const RETRY_SHARE = 1 / 8;
/** Failures in a row after which the spacing of a node's reads stays the same. */
const FAILURES_MAX = 4;
/** Failures in a row from which a node counts as failing. */
const FAILURES_OF_FAILING = 2;
/** Picks of a probe in search of a node whose last read succeeded. */
const PROBE_PICKS_MAX = 8;
/** The fractions of its multiples are spread evenly between 0 and 1: the golden ratio. */
const SPREAD = 0.618033988749895;
/** Stands in for the round until one is planned. */
const ROUND_MS_FIRST: DurationMs = 15 * MINUTE_MS;

/** Most reads of others between two of a node, if there are never more than so many nodes, and so many joined meanwhile. */
export const waitMax = (nodes: number, joined: number): number =>
  (nodes + joined) * (1 + 1 / ROUTINE_PER_SUSPECT) + savedMax(nodes) + 2;

/** Most suspects that may have been saved up for. */
const savedMax = (nodes: number): number => Math.max(SAVED_MIN, SAVED_SHARE * nodes);

/** Nobody is there. The same calls give the same choices. */
export function createDetailPriority(): DetailPriority {
  const untried = createTurns();
  const tried = createTurns();
  const deadlines = createDeadlines(CAUSES.length);
  const trends = createTrends();
  const habits = createHabits();
  let triedAt = new Float64Array(0);
  /** 1: the last try brought something. */
  let answered = new Uint8Array(0);
  /** Failures in a row, up to {@link FAILURES_MAX}, and turns that the node is still left out of. */
  let failures = new Uint8Array(0);
  let turnsOut = new Uint8Array(0);
  let failing = 0;
  let probes = 0;
  /** One more than the highest slot so far. */
  let slots = 0;
  let roundMs = ROUND_MS_FIRST;
  /** Routine reads that earn reads before their turn. */
  let saved = 0;
  let lastCause = 0;
  let wasSuspect = false;

  function suspect(slot: number, cause: Cause, due: MonotonicMs): void {
    // A node that was never tried comes before its turn anyway.
    if (!tried.has(slot)) return;
    const share = answered[slot] === 1 ? 1 / READS_MAX : RETRY_SHARE * 2 ** Math.max(0, failures[slot]! - 1);
    const at = Math.max(due, triedAt[slot]! + roundMs * share);
    if (at < deadlines.dueOf(slot)) deadlines.set(slot, CAUSES.indexOf(cause), at);
  }

  function foresee(slot: number): void {
    const outlook = trends.outlook(slot, roundMs);
    if (outlook !== null && tried.has(slot)) suspect(slot, outlook.kind, triedAt[slot]! + outlook.afterMs);
  }

  function endTurn(slot: number, at: MonotonicMs): void {
    untried.remove(slot);
    tried.append(slot);
    deadlines.clear(slot);
    triedAt[slot] = at;
    answered[slot] = 0;
  }

  /** The suspect whose deadline has come; -1: there is none. Causes take turns: none crowds out the others. */
  function dueSuspect(now: MonotonicMs): number {
    for (let step = 1; step <= CAUSES.length; step++) {
      const slot = deadlines.first((lastCause + step) % CAUSES.length);
      if (slot >= 0 && deadlines.dueOf(slot) <= now) return slot;
    }
    return -1;
  }

  /** Whether suspects have not had their share. */
  const maySuspect = (): boolean => !wasSuspect && saved >= ROUTINE_PER_SUSPECT;

  function takeSuspect(slot: number, now: MonotonicMs): Pick {
    lastCause = deadlines.causeOf(slot);
    saved -= ROUTINE_PER_SUSPECT;
    wasSuspect = true;
    endTurn(slot, now);
    return { slot, cause: CAUSES[lastCause]! };
  }

  function firstInTurn(): number {
    if (untried.count() > 0) return untried.first();
    let slot = tried.first();
    while (slot >= 0 && turnsOut[slot]! > 0) {
      turnsOut[slot]!--;
      tried.append(slot);
      slot = tried.first();
    }
    return slot;
  }

  const has = (slot: number): boolean => untried.has(slot) || tried.has(slot);

  function forgetFailures(slot: number): void {
    if (failures[slot]! >= FAILURES_OF_FAILING) failing--;
    failures[slot] = 0;
    turnsOut[slot] = 0;
  }

  function takeRoutine(now: MonotonicMs): Pick | null {
    const slot = firstInTurn();
    if (slot < 0) return null;
    saved = Math.min(ROUTINE_PER_SUSPECT * savedMax(untried.count() + tried.count()), saved + 1);
    wasSuspect = false;
    endTurn(slot, now);
    return { slot, cause: null };
  }

  /** Of all slots that are suspects for what is known of their usage. */
  function clearOutlooks(): void {
    for (const cause of [CAUSES.indexOf("rising"), CAUSES.indexOf("near")]) {
      for (const slot of deadlines.slotsOf(cause)) deadlines.clear(slot);
    }
  }

  return {
    join(slot) {
      triedAt = withRoom(triedAt, slot);
      answered = withRoom(answered, slot);
      failures = withRoom(failures, slot);
      turnsOut = withRoom(turnsOut, slot);
      answered[slot] = 0;
      slots = Math.max(slots, slot + 1);
      untried.append(slot);
    },
    leave(slot) {
      forgetFailures(slot);
      untried.remove(slot);
      tried.remove(slot);
      deadlines.clear(slot);
      trends.forget(slot);
      habits.forget(slot);
    },
    list(slot, record, at) {
      if (habits.list(slot, record, at)) suspect(slot, "changed", at);
    },
    read(slot, reading, at) {
      if (!has(slot)) return;
      endTurn(slot, at);
      forgetFailures(slot);
      answered[slot] = 1;
      trends.read(slot, reading, at, roundMs);
      foresee(slot);
    },
    failed(slot) {
      if (!tried.has(slot)) return;
      const count = Math.min(FAILURES_MAX, failures[slot]! + 1);
      if (count === FAILURES_OF_FAILING && failures[slot]! < count) failing++;
      failures[slot] = count;
      answered[slot] = 0;
      turnsOut[slot] = 2 ** (count - 1) - 1;
      if (count === 1) suspect(slot, "failed", triedAt[slot]!);
    },
    setWaits(waits) {
      for (const slot of deadlines.slotsOf(CAUSES.indexOf("awaited"))) {
        if (waits.has(slot)) continue;
        deadlines.clear(slot);
        foresee(slot);
      }
      for (const [slot, due] of waits) suspect(slot, "awaited", due);
    },
    setThresholds(thresholds) {
      trends.setThresholds(thresholds);
      clearOutlooks();
      for (let slot = 0; slot < triedAt.length; slot++) foresee(slot);
    },
    forgetUsage() {
      trends.forgetAll();
      clearOutlooks();
    },
    take(now, planned) {
      if (planned > 0 && planned < Number.POSITIVE_INFINITY) roundMs = planned;
      const slot = maySuspect() ? dueSuspect(now) : -1;
      return slot < 0 ? takeRoutine(now) : takeSuspect(slot, now);
    },
    takeProbe(now) {
      let picked = -1;
      for (let picks = 0; picks < PROBE_PICKS_MAX && (picked < 0 || answered[picked] === 0); picks++) {
        const from = Math.floor(((++probes * SPREAD) % 1) * slots);
        for (let step = 0; step < slots; step++) {
          picked = (from + step) % slots;
          if (has(picked)) break;
          picked = -1;
        }
      }
      if (picked < 0) return null;
      endTurn(picked, now);
      return { slot: picked, cause: null };
    },
    suspectAt: () =>
      maySuspect()
        ? Math.min(...CAUSES.map((_, cause) => deadlines.dueOf(deadlines.first(cause))))
        : Number.POSITIVE_INFINITY,
    hasUntried: () => untried.count() > 0,
    failing: () => failing,
  };
}
