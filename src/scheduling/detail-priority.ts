import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { growColumn } from "../base/typed-column.ts";
import type { NodeRecord } from "../model/node.ts";
import type { Threshold } from "../model/policy/policy.ts";
import type { MonotonicMs } from "../model/time.ts";
import { createDeadlineQueue } from "./deadline-queue.ts";
import { createListBaselines } from "./list-baseline.ts";
import { createRoundRobin } from "./round-robin.ts";
import { createUsageTrends, type UsageReading } from "./usage-trend.ts";

/**
 * Why a node is a suspect, to be read before its turn: a policy waits for a look at it; a usage rises towards a
 * threshold; it stands near one; its list record changed abruptly; its last read failed.
 */
export const SUSPECT_CAUSES = ["awaited", "rising", "near", "changed", "failed"] as const;
export type SuspectCause = (typeof SUSPECT_CAUSES)[number];

/** Whose detail is read, and why before its turn; null: it is its turn. */
export interface DetailChoice {
  readonly slot: number;
  readonly cause: SuspectCause | null;
}

/**
 * Chooses whose detail is read next: the earliest deadline first. A node's own is one planned round after its last
 * read, so nodes stand in the order of their reads, and those that were never read before all others. A suspect has an
 * earlier one, and is read when that comes.
 *
 * Suspects have a share of the reads, and no more. What nothing announces is found by routine reads alone: they are
 * every second one at least and five of six in the long run, so that no node that can be read waits for more than
 * {@link readsBetweenMax} others, however many are suspect.
 *
 * A slot is a node's index in the fleet. Of a slot that is not there nothing is taken in.
 */
export interface DetailPriority {
  addNode(slot: number): void;
  removeNode(slot: number): void;
  /** A list record came in. */
  recordListed(slot: number, record: NodeRecord, at: MonotonicMs): void;
  /** A detail came in, whoever asked for it. */
  recordRead(slot: number, reading: UsageReading, at: MonotonicMs): void;
  /**
   * A read failed because of the node. It is tried again soon, once; after further failures in a row the node is left
   * out of 1, 3 and then 7 of its turns, until a read succeeds.
   */
  recordFailure(slot: number): void;
  /** All nodes that policies wait on, and when a look at each brings its policy on. */
  setPolicyDeadlines(waits: ReadonlyMap<number, MonotonicMs>): void;
  /** The lines that policies draw through usages, in place of those before. */
  setThresholds(thresholds: readonly Threshold[]): void;
  /** Usages that were read mean nothing any more. */
  forgetUsage(): void;
  /** Whose detail is to be read now, where a round is planned to take so long; its turn is over. Null: there is nobody. */
  takeNext(now: MonotonicMs, roundMs: DurationMs): DetailChoice | null;
  /**
   * A node from anywhere in the fleet, out of turn, to find out whether the service answers: one whose last read
   * succeeded, if a few picks find one. Null: there are no nodes.
   */
  takeProbe(now: MonotonicMs): DetailChoice | null;
  /** From when on {@link takePermit} gives a suspect; Infinity: not before something else happens. */
  suspectAt(): MonotonicMs;
  /** Whether there are nodes whose detail was never tried. */
  hasUnreadNodes(): boolean;
  /** Nodes whose last two reads, or more, failed because of the node. */
  failingNodes(): number;
}

/** So many routine reads earn one before its turn. */
const ROUTINE_PER_SUSPECT = 5;
/** Reads before their turn are saved up to this share of the nodes, for what lists show comes in bursts, by walks. */
const SAVED_SUSPECT_READS_SHARE = 0.05;
/** … and up to this many in a small fleet. */
const SAVED_SUSPECT_READS_MIN = 8;
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
const ROUND_SPREAD = 0.618033988749895;
/** Stands in for the round until one is planned. */
const ROUND_MS_FIRST: DurationMs = 15 * MINUTE_MS;

/** Most reads of others between two of a node, if there are never more than so many nodes, and so many joined meanwhile. */
export const readsBetweenMax = (nodes: number, joined: number): number =>
  (nodes + joined) * (1 + 1 / ROUTINE_PER_SUSPECT) + savedReadsMax(nodes) + 2;

/** Most suspects that may have been saved up for. */
const savedReadsMax = (nodes: number): number => Math.max(SAVED_SUSPECT_READS_MIN, SAVED_SUSPECT_READS_SHARE * nodes);

/** Nobody is there. The same calls give the same choices. */
export function createDetailPriority(): DetailPriority {
  const unread = createRoundRobin();
  const inTurn = createRoundRobin();
  const deadlines = createDeadlineQueue(SUSPECT_CAUSES.length);
  const trends = createUsageTrends();
  const baselines = createListBaselines();
  let triedAt = new Float64Array(0);
  /** 1: the last try brought something. */
  let answered = new Uint8Array(0);
  /** Failures in a row, up to {@link FAILURES_MAX}, and turns that the node is still left out of. */
  let failures = new Uint8Array(0);
  let turnsSkipped = new Uint8Array(0);
  let failing = 0;
  let probes = 0;
  /** One more than the highest slot so far. */
  let slots = 0;
  let roundMs = ROUND_MS_FIRST;
  /** Routine reads that earn reads before their turn. */
  let savedReads = 0;
  let lastCause = 0;
  let wasSuspect = false;

  function suspect(slot: number, cause: SuspectCause, due: MonotonicMs): void {
    // A node that was never tried comes before its turn anyway.
    if (!inTurn.has(slot)) return;
    const share = answered[slot] === 1 ? 1 / READS_MAX : RETRY_SHARE * 2 ** Math.max(0, failures[slot]! - 1);
    const at = Math.max(due, triedAt[slot]! + roundMs * share);
    if (at < deadlines.dueOf(slot)) deadlines.set(slot, SUSPECT_CAUSES.indexOf(cause), at);
  }

  function updateOutlook(slot: number): void {
    const outlook = trends.outlook(slot, roundMs);
    if (outlook !== null && inTurn.has(slot)) suspect(slot, outlook.kind, triedAt[slot]! + outlook.afterMs);
  }

  function finishTurn(slot: number, at: MonotonicMs): void {
    unread.remove(slot);
    inTurn.enqueue(slot);
    deadlines.clear(slot);
    triedAt[slot] = at;
    answered[slot] = 0;
  }

  /** The suspect whose deadline has come; -1: there is none. Causes take turns: none crowds out the others. */
  function dueSuspect(now: MonotonicMs): number {
    for (let step = 1; step <= SUSPECT_CAUSES.length; step++) {
      const slot = deadlines.first((lastCause + step) % SUSPECT_CAUSES.length);
      if (slot >= 0 && deadlines.dueOf(slot) <= now) return slot;
    }
    return -1;
  }

  /** Whether suspects have not had their share. */
  const maySuspect = (): boolean => !wasSuspect && savedReads >= ROUTINE_PER_SUSPECT;

  function takeSuspect(slot: number, now: MonotonicMs): DetailChoice {
    lastCause = deadlines.causeOf(slot);
    savedReads -= ROUTINE_PER_SUSPECT;
    wasSuspect = true;
    finishTurn(slot, now);
    return { slot, cause: SUSPECT_CAUSES[lastCause]! };
  }

  function nextInTurn(): number {
    if (unread.count() > 0) return unread.first();
    let slot = inTurn.first();
    while (slot >= 0 && turnsSkipped[slot]! > 0) {
      turnsSkipped[slot]!--;
      inTurn.enqueue(slot);
      slot = inTurn.first();
    }
    return slot;
  }

  const has = (slot: number): boolean => unread.has(slot) || inTurn.has(slot);

  function forgetFailures(slot: number): void {
    if (failures[slot]! >= FAILURES_OF_FAILING) failing--;
    failures[slot] = 0;
    turnsSkipped[slot] = 0;
  }

  function takeRoutine(now: MonotonicMs): DetailChoice | null {
    const slot = nextInTurn();
    if (slot < 0) return null;
    savedReads = Math.min(ROUTINE_PER_SUSPECT * savedReadsMax(unread.count() + inTurn.count()), savedReads + 1);
    wasSuspect = false;
    finishTurn(slot, now);
    return { slot, cause: null };
  }

  /** Of all slots that are suspects for what is known of their usage. */
  function clearOutlooks(): void {
    for (const cause of [SUSPECT_CAUSES.indexOf("rising"), SUSPECT_CAUSES.indexOf("near")]) {
      for (const slot of deadlines.slotsOf(cause)) deadlines.clear(slot);
    }
  }

  return {
    addNode(slot) {
      triedAt = growColumn(triedAt, slot);
      answered = growColumn(answered, slot);
      failures = growColumn(failures, slot);
      turnsSkipped = growColumn(turnsSkipped, slot);
      answered[slot] = 0;
      slots = Math.max(slots, slot + 1);
      unread.enqueue(slot);
    },
    removeNode(slot) {
      forgetFailures(slot);
      unread.remove(slot);
      inTurn.remove(slot);
      deadlines.clear(slot);
      trends.forgetNode(slot);
      baselines.forgetNode(slot);
    },
    recordListed(slot, record, at) {
      if (baselines.recordAndCheck(slot, record, at)) suspect(slot, "changed", at);
    },
    recordRead(slot, reading, at) {
      if (!has(slot)) return;
      finishTurn(slot, at);
      forgetFailures(slot);
      answered[slot] = 1;
      trends.recordReading(slot, reading, at, roundMs);
      updateOutlook(slot);
    },
    recordFailure(slot) {
      if (!inTurn.has(slot)) return;
      const count = Math.min(FAILURES_MAX, failures[slot]! + 1);
      if (count === FAILURES_OF_FAILING && failures[slot]! < count) failing++;
      failures[slot] = count;
      answered[slot] = 0;
      turnsSkipped[slot] = 2 ** (count - 1) - 1;
      if (count === 1) suspect(slot, "failed", triedAt[slot]!);
    },
    setPolicyDeadlines(waits) {
      for (const slot of deadlines.slotsOf(SUSPECT_CAUSES.indexOf("awaited"))) {
        if (waits.has(slot)) continue;
        deadlines.clear(slot);
        updateOutlook(slot);
      }
      for (const [slot, due] of waits) suspect(slot, "awaited", due);
    },
    setThresholds(thresholds) {
      trends.setThresholds(thresholds);
      clearOutlooks();
      for (let slot = 0; slot < triedAt.length; slot++) updateOutlook(slot);
    },
    forgetUsage() {
      trends.forgetAll();
      clearOutlooks();
    },
    takeNext(now, planned) {
      if (planned > 0 && planned < Number.POSITIVE_INFINITY) roundMs = planned;
      const slot = maySuspect() ? dueSuspect(now) : -1;
      return slot < 0 ? takeRoutine(now) : takeSuspect(slot, now);
    },
    takeProbe(now) {
      let chosen = -1;
      for (let choices = 0; choices < PROBE_PICKS_MAX && (chosen < 0 || answered[chosen] === 0); choices++) {
        const from = Math.floor(((++probes * ROUND_SPREAD) % 1) * slots);
        for (let step = 0; step < slots; step++) {
          chosen = (from + step) % slots;
          if (has(chosen)) break;
          chosen = -1;
        }
      }
      if (chosen < 0) return null;
      finishTurn(chosen, now);
      return { slot: chosen, cause: null };
    },
    suspectAt: () =>
      maySuspect()
        ? Math.min(...SUSPECT_CAUSES.map((_, cause) => deadlines.dueOf(deadlines.first(cause))))
        : Number.POSITIVE_INFINITY,
    hasUnreadNodes: () => unread.count() > 0,
    failingNodes: () => failing,
  };
}
