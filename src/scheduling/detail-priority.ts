import { type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { growColumn } from "../base/typed-column.ts";
import type { NodeRecord } from "../model/node.ts";
import type { Threshold } from "../model/policy/policy.ts";
import type { MonotonicMs } from "../model/time.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import { ListChangeDetector } from "./list-change-detector.ts";
import { type UsageReading, UsageTrends } from "./usage-trend.ts";

/**
 * Why a node is suspect and read before its turn: a policy waits for a read, a usage rises towards a threshold or is
 * near one, its list record changed abruptly, or its last read failed.
 */
const SUSPECT_CAUSES = ["awaited", "rising", "near", "changed", "failed"] as const;
export type SuspectCause = (typeof SUSPECT_CAUSES)[number];

/** A node whose detail to read. `cause` says why it is read before its turn, or is null if it is its turn. */
export interface DetailChoice {
  readonly slot: number;
  readonly cause: SuspectCause | null;
}

/** Number of routine reads per suspect read. */
const ROUTINE_PER_SUSPECT = 5;
/** Suspect reads are saved up to this share of the nodes, since walks find many suspects at once. */
const SAVED_SUSPECT_READS_SHARE = 0.05;
/** Suspect reads are saved up to at least this number in a small fleet. */
const SAVED_SUSPECT_READS_MIN = 8;
/** Maximum number of reads of a node per round, regardless of the causes. */
const READS_MAX = 64;
/** Share of a round after which a failed read is retried, doubled with each failure. */
const RETRY_SHARE = 1 / 8;
/** Number of failures in a row after which the time between reads no longer grows. */
const FAILURES_MAX = 4;
/** Number of failures in a row after which a node counts as failing. */
const FAILURES_OF_FAILING = 2;
/** Number of attempts to find a node for a probe whose last read succeeded. */
const PROBE_PICKS_MAX = 8;
/** The reciprocal of the golden ratio. The fractional parts of its multiples are spread evenly between 0 and 1. */
const ROUND_SPREAD = 0.618033988749895;
/** Maximum number of turns to skip for one choice. After them, which takes a millisecond, a failing node is read early. */
const SKIPS_MAX = 4_096;
/** The queues of turns. */
const [UNREAD, TRIED] = [0, 1] as const;
/** Length of a round until one is planned. */
const ROUND_MS_FIRST: DurationMs = 15 * MINUTE_MS;

/** Returns the maximum number of reads of other nodes between two reads of a node in a fleet of `nodes`. */
export const readsBetweenMax = (nodes: number): number =>
  nodes * (1 + 1 / ROUTINE_PER_SUSPECT) + savedReadsMax(nodes) + 2;

/** Returns the maximum number of saved suspect reads. */
const savedReadsMax = (nodes: number): number => Math.max(SAVED_SUSPECT_READS_MIN, SAVED_SUSPECT_READS_SHARE * nodes);

/**
 * Chooses whose detail is read next, by earliest deadline. The regular deadline of a node is one planned round after
 * its last read, so nodes are in the order of their reads, after those that were never read. A suspect has an earlier
 * deadline and is read once that has passed.
 *
 * Suspects get only a share of the reads, since only routine reads find problems that show no earlier sign. At least
 * every second read is routine, and five of six in the long run, so between two reads of a node there are never more
 * than {@link readsBetweenMax} others, regardless of the number of suspects.
 *
 * The choice is deterministic. A slot is a node's index in the fleet. Reads, failures and deadlines of unknown slots
 * have no effect.
 */
export class DetailPriority {
  /** Nodes that were never tried, and the others, in the order of their turns. */
  readonly #turns = new DeadlineQueue(2);
  #turnsGiven = 0;
  #nodes = 0;
  readonly #deadlines = new DeadlineQueue(SUSPECT_CAUSES.length);
  readonly #trends = new UsageTrends();
  readonly #listChanges = new ListChangeDetector();
  #triedAt = new Float64Array(0);
  /** 1 if the last try succeeded. */
  #succeeded = new Uint8Array(0);
  /** Failures in a row, up to {@link FAILURES_MAX}, and turns that the node still has to skip. */
  #failures = new Uint8Array(0);
  #turnsSkipped = new Uint8Array(0);
  #failingNodes = 0;
  #probes = 0;
  /** The highest slot so far, plus one. */
  #slots = 0;
  #roundMs = ROUND_MS_FIRST;
  /** Routine reads that are not used for suspect reads yet. */
  #savedReads = 0;
  #lastCause = 0;
  #wasSuspect = false;

  addNode(slot: number): void {
    this.#triedAt = growColumn(this.#triedAt, slot);
    this.#succeeded = growColumn(this.#succeeded, slot);
    this.#failures = growColumn(this.#failures, slot);
    this.#turnsSkipped = growColumn(this.#turnsSkipped, slot);
    this.#succeeded[slot] = 0;
    this.#slots = Math.max(this.#slots, slot + 1);
    if (!this.#has(slot)) this.#nodes++;
    this.#enqueue(slot, UNREAD);
  }

  removeNode(slot: number): void {
    this.#clearFailures(slot);
    if (this.#has(slot)) this.#nodes--;
    this.#turns.clear(slot);
    this.#deadlines.clear(slot);
    this.#trends.forgetNode(slot);
    this.#listChanges.forgetNode(slot);
  }

  /** Records a list record. */
  recordListed(slot: number, record: NodeRecord, at: MonotonicMs): void {
    if (this.#listChanges.recordAndCheck(slot, record, at)) this.#markSuspect(slot, "changed", at);
  }

  /** Records a detail, including one that was not chosen here. */
  recordRead(slot: number, reading: UsageReading, at: MonotonicMs): void {
    if (!this.#has(slot)) return;
    this.#finishTurn(slot, at);
    this.#clearFailures(slot);
    this.#succeeded[slot] = 1;
    this.#trends.recordReading(slot, reading, at, this.#roundMs);
    this.#updateOutlook(slot);
  }

  /**
   * Records that a read failed because of the node. It is retried early once. After 2, 3 and 4 failures in a row the
   * node skips 1, 3 and 7 turns, until a read succeeds.
   */
  recordFailure(slot: number): void {
    if (!this.#isTried(slot)) return;
    const count = Math.min(FAILURES_MAX, this.#failures[slot]! + 1);
    if (count === FAILURES_OF_FAILING && this.#failures[slot]! < count) this.#failingNodes++;
    this.#failures[slot] = count;
    this.#succeeded[slot] = 0;
    this.#turnsSkipped[slot] = 2 ** (count - 1) - 1;
    if (count === 1) this.#markSuspect(slot, "failed", this.#triedAt[slot]!);
  }

  /** Sets the nodes that policies wait for, and when a read of each one helps its policy. */
  setPolicyDeadlines(deadlines: ReadonlyMap<number, MonotonicMs>): void {
    for (const slot of this.#deadlines.slotsOf(SUSPECT_CAUSES.indexOf("awaited"))) {
      if (deadlines.has(slot)) continue;
      this.#deadlines.clear(slot);
      this.#updateOutlook(slot);
    }
    for (const [slot, due] of deadlines) this.#markSuspect(slot, "awaited", due);
  }

  /** Sets the usage thresholds of the policies. */
  setThresholds(thresholds: readonly Threshold[]): void {
    this.#trends.setThresholds(thresholds);
    this.#clearOutlooks();
    for (let slot = 0; slot < this.#triedAt.length; slot++) this.#updateOutlook(slot);
  }

  /** Forgets all usages, for example because their scale is in doubt. */
  forgetUsage(): void {
    this.#trends.forgetAll();
    this.#clearOutlooks();
  }

  /**
   * Takes the node to read now. Null if there are no nodes. `roundMs` is the planned time for one read of each node.
   */
  takeNext(now: MonotonicMs, roundMs: DurationMs): DetailChoice | null {
    if (roundMs > 0 && roundMs < Number.POSITIVE_INFINITY) this.#roundMs = roundMs;
    const slot = this.#maySuspect() ? this.#dueSuspect(now) : -1;
    return slot < 0 ? this.#takeRoutine(now) : this.#takeSuspect(slot, now);
  }

  /**
   * Takes a node from anywhere in the fleet, if possible one whose last read succeeded, to find out whether the service
   * answers. Null if there are no nodes.
   */
  takeProbe(now: MonotonicMs): DetailChoice | null {
    let chosen = -1;
    for (let picks = 0; picks < PROBE_PICKS_MAX && (chosen < 0 || this.#succeeded[chosen] === 0); picks++) {
      const from = Math.floor(((++this.#probes * ROUND_SPREAD) % 1) * this.#slots);
      for (let step = 0; step < this.#slots; step++) {
        chosen = (from + step) % this.#slots;
        if (this.#has(chosen)) break;
        chosen = -1;
      }
    }
    if (chosen < 0) return null;
    this.#finishTurn(chosen, now);
    return { slot: chosen, cause: null };
  }

  /** Returns when {@link takeNext} will return a suspect, or Infinity if it will not until something else changes. */
  suspectAt(): MonotonicMs {
    if (!this.#maySuspect()) return Number.POSITIVE_INFINITY;
    return Math.min(...SUSPECT_CAUSES.map((_, cause) => this.#deadlines.dueOf(this.#deadlines.first(cause))));
  }

  /** Whether there are nodes whose detail was never tried. */
  hasUnreadNodes(): boolean {
    return this.#turns.first(UNREAD) >= 0;
  }

  /** Returns the number of nodes whose reads failed at least twice in a row because of the node. */
  failingNodes(): number {
    return this.#failingNodes;
  }

  #has(slot: number): boolean {
    return this.#turns.causeOf(slot) >= 0;
  }

  #isTried(slot: number): boolean {
    return this.#turns.causeOf(slot) === TRIED;
  }

  /** Puts a node at the end of a queue, regardless of where it was. */
  #enqueue(slot: number, queue: typeof UNREAD | typeof TRIED): void {
    this.#turns.set(slot, queue, this.#turnsGiven++);
  }

  #markSuspect(slot: number, cause: SuspectCause, due: MonotonicMs): void {
    // A node that was never tried comes first anyway.
    if (!this.#isTried(slot)) return;
    const failures = Math.max(0, this.#failures[slot]! - 1);
    const share = this.#succeeded[slot] === 1 ? 1 / READS_MAX : RETRY_SHARE * 2 ** failures;
    const at = Math.max(due, this.#triedAt[slot]! + this.#roundMs * share);
    if (at < this.#deadlines.dueOf(slot)) this.#deadlines.set(slot, SUSPECT_CAUSES.indexOf(cause), at);
  }

  #updateOutlook(slot: number): void {
    const outlook = this.#trends.outlook(slot, this.#roundMs);
    if (outlook !== null) this.#markSuspect(slot, outlook.kind, this.#triedAt[slot]! + outlook.afterMs);
  }

  /** Clears the deadlines that were set because of usages. */
  #clearOutlooks(): void {
    for (const cause of [SUSPECT_CAUSES.indexOf("rising"), SUSPECT_CAUSES.indexOf("near")]) {
      for (const slot of this.#deadlines.slotsOf(cause)) this.#deadlines.clear(slot);
    }
  }

  #clearFailures(slot: number): void {
    if (this.#failures[slot]! >= FAILURES_OF_FAILING) this.#failingNodes--;
    this.#failures[slot] = 0;
    this.#turnsSkipped[slot] = 0;
  }

  #finishTurn(slot: number, at: MonotonicMs): void {
    this.#enqueue(slot, TRIED);
    this.#deadlines.clear(slot);
    this.#triedAt[slot] = at;
    this.#succeeded[slot] = 0;
  }

  /** Returns whether a suspect may be read, which is not twice in a row, and only if enough routine reads are saved. */
  #maySuspect(): boolean {
    return !this.#wasSuspect && this.#savedReads >= ROUTINE_PER_SUSPECT;
  }

  /**
   * Returns a suspect whose deadline has passed, or -1 if there is none. Causes take turns, so that none displaces the
   * others.
   */
  #dueSuspect(now: MonotonicMs): number {
    for (let step = 1; step <= SUSPECT_CAUSES.length; step++) {
      const slot = this.#deadlines.first((this.#lastCause + step) % SUSPECT_CAUSES.length);
      if (slot >= 0 && this.#deadlines.dueOf(slot) <= now) return slot;
    }
    return -1;
  }

  #takeSuspect(slot: number, now: MonotonicMs): DetailChoice {
    this.#lastCause = this.#deadlines.causeOf(slot);
    this.#savedReads -= ROUTINE_PER_SUSPECT;
    this.#wasSuspect = true;
    this.#finishTurn(slot, now);
    return { slot, cause: SUSPECT_CAUSES[this.#lastCause]! };
  }

  #takeRoutine(now: MonotonicMs): DetailChoice | null {
    const slot = this.#nextInTurn();
    if (slot < 0) return null;
    this.#savedReads = Math.min(ROUTINE_PER_SUSPECT * savedReadsMax(this.#nodes), this.#savedReads + 1);
    this.#wasSuspect = false;
    this.#finishTurn(slot, now);
    return { slot, cause: null };
  }

  #nextInTurn(): number {
    if (this.hasUnreadNodes()) return this.#turns.first(UNREAD);
    let slot = this.#turns.first(TRIED);
    for (let skips = 0; slot >= 0 && this.#turnsSkipped[slot]! > 0 && skips < SKIPS_MAX; skips++) {
      this.#turnsSkipped[slot]!--;
      this.#enqueue(slot, TRIED);
      slot = this.#turns.first(TRIED);
    }
    return slot;
  }
}
