import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Change, Journal } from "../../model/remediation/journal.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { type Casebook, createCasebook } from "../../policy/remediation-state.ts";
import { createJournalClock, type JournalClock } from "./journal-clock.ts";

/** The journal and its image in memory, kept as one. */
export interface Books {
  readonly casebook: Casebook;
  readonly clock: Pick<JournalClock, "isSettled" | "problem">;
  /** Compares the journal's clock with the service's Date; null: not known yet. */
  checkClock(serviceNow: EpochMs | null): void;
  /** When the journal was begun, where nothing is known of actions sent before; null: it knows of all. */
  beganAt(): EpochMs | null;
  /** The journal's clock: it goes on from what was written last, and never goes back behind it. */
  now(): EpochMs;
  /** The instant on the journal's clock at which the monotonic clock showed `at`. */
  epochOf(at: MonotonicMs): EpochMs;
  /** Writes down what is about to be done. False: it could not be, so it must not be done; nothing has changed. */
  commit(changes: readonly Change[]): boolean;
  /**
   * Writes down what has happened, which is so whether or not it can be: memory has it at once, and the journal as soon
   * as it can.
   */
  record(changes: readonly Change[]): void;
  /** Does some work, and writes down all that it recorded at once. */
  batch<T>(work: () => T): T;
  /** Why the journal is behind or can't be written; null: it holds everything. */
  problem(): string | null;
}

/** Something that is so only once it was written down. */
export interface Proposal {
  readonly changes: readonly Change[];
  /** Makes it so; to be called after they were written. */
  adopt(): void;
}

/** What books stand on. */
export interface BooksParts {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  /** Why this journal does not outlive the process, where the real one can't be opened; null: it does. */
  readonly lost: string | null;
  /** Whether actions may have been sent that a new journal does not know of, as where its folder was lost; absent: no. */
  readonly assumesActions?: boolean;
  /** Told of everything that is so now, at once: it must neither wait nor throw. */
  onChange?(changes: readonly Change[]): void;
}

/** Closed episodes and actions are remembered so long: longer than any policy looks back. */
const REMEMBERED_MS: DurationMs = 30 * DAY_MS;
/** Rows that wait to be written while the journal refuses. Beyond it the oldest decisions go: they are only told. */
const BACKLOG_MAX = 50_000;
/** The time is written at least this often: what a restart finds older than that it takes for downtime. */
const STAMP_MS: DurationMs = MINUTE_MS;
/** The fact that keeps the journal's clock from going back. */
const CLOCK_FACT = "warden.clock";

/** The fact that says when a journal was begun of whose past nothing is known. */
const BEGAN_FACT = "warden.began";

/** Opens the books: reads what the journal holds. Throws where it can't be read. */
export function openBooks({ journal, clock, log, lost, assumesActions = false, onChange }: BooksParts): Books {
  const stamp = journal.facts().get(CLOCK_FACT);
  const journalClock = createJournalClock(stamp === undefined ? null : Number(stamp), clock, log);
  const { now, epochOf } = journalClock;
  const casebook = createCasebook(journal.load(now() - REMEMBERED_MS));
  const backlog = new Map<string, Change>();
  let refusal: string | null = null;
  let serial = 0;
  let stampedAt = Number.NEGATIVE_INFINITY;
  /** What a batch recorded so far; null: there is none. */
  let batched: Change[] | null = null;

  function keyOf(change: Change): string {
    switch (change.kind) {
      case "timer":
        return `timer ${change.row.policy} ${change.row.node}`;
      case "timer_gone":
        return `timer ${change.policy} ${change.node}`;
      case "episode":
      case "action":
        return change.row.id;
      case "hold":
        return `hold ${change.row.policy} ${change.row.node}`;
      case "hold_gone":
        return `hold ${change.policy} ${change.node}`;
      case "fact":
        return `fact ${change.key}`;
      case "decision":
        serial++;
        return `decision ${serial}`;
      case "order":
        serial++;
        return `order ${serial}`;
      default:
        return change satisfies never;
    }
  }

  function write(changes: readonly Change[]): boolean {
    try {
      // A new journal is stamped only once it is known what time it is.
      const isDated = stamp !== undefined || journalClock.isSettled();
      const dated: Change[] = isDated ? [{ kind: "fact", key: CLOCK_FACT, value: String(now()) }] : [];
      journal.commit([...backlog.values(), ...changes, ...dated]);
      stampedAt = clock.monotonic();
      if (refusal !== null) log.info({}, "the journal can be written again");
      backlog.clear();
      refusal = null;
      return true;
    } catch (error) {
      // Said when it begins, not at every try.
      if (refusal === null) log.error({ err: error }, "the journal can't be written: no node is touched until it can");
      refusal = error instanceof Error ? error.message : String(error);
      return false;
    }
  }

  function keep(change: Change): void {
    const key = keyOf(change);
    // Last of its key, and in the order in which things happened.
    backlog.delete(key);
    backlog.set(key, change);
    if (backlog.size <= BACKLOG_MAX) return;
    for (const old of backlog.keys()) {
      if (!old.startsWith("decision ")) continue;
      backlog.delete(old);
      return;
    }
  }

  function writeOrKeep(changes: readonly Change[]): void {
    const isDue = changes.length > 0 || backlog.size > 0 || refusal !== null;
    if (!isDue && (!journalClock.isSettled() || clock.monotonic() - stampedAt < STAMP_MS)) return;
    if (!write(changes)) for (const change of changes) keep(change);
  }

  function apply(changes: readonly Change[]): void {
    casebook.apply(changes);
    onChange?.(changes);
  }

  function record(changes: readonly Change[]): void {
    apply(changes);
    if (batched !== null) batched.push(...changes);
    else writeOrKeep(changes);
  }

  function checkClock(serviceNow: EpochMs | null): void {
    const isKnown = journalClock.isSettled();
    journalClock.check(serviceNow);
    const isBegun = !isKnown && journalClock.isSettled() && stamp === undefined && assumesActions;
    if (isBegun) record([{ kind: "fact", key: BEGAN_FACT, value: String(now()) }]);
  }

  return {
    casebook,
    clock: journalClock,
    checkClock,
    beganAt() {
      const began = casebook.fact(BEGAN_FACT);
      return began === null ? null : Number(began);
    },
    now,
    epochOf,
    commit(changes) {
      // What does not outlive the process is as good as not written.
      if (lost !== null || !write(changes)) return false;
      apply(changes);
      return true;
    },
    record,
    batch(work) {
      if (batched !== null) return work();
      batched = [];
      try {
        return work();
      } finally {
        const changes = batched;
        batched = null;
        writeOrKeep(changes);
      }
    },
    problem: () => refusal ?? lost,
  };
}
