import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { Journal, JournalChange } from "../../model/remediation/journal.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { RemediationRecords } from "../../policy/remediation-records.ts";
import { createJournalClock, type JournalClock } from "./journal-clock.ts";

/** The journal and its image in memory, kept as one. */
export interface RemediationState {
  readonly records: RemediationRecords;
  readonly clock: Pick<JournalClock, "isSettled" | "problem">;
  /** Compares the journal's clock with the service's Date; null: not known yet. */
  checkClock(serviceNow: EpochMs | null): void;
  /** When the journal was created, if actions may have been sent before; null: it has all of them. */
  firstStartedAt(): EpochMs | null;
  /** The journal's clock: it goes on from what was written last, and never goes back behind it. */
  now(): EpochMs;
  /** The instant on the journal's clock at which the monotonic clock showed `at`. */
  epochOf(at: MonotonicMs): EpochMs;
  /** Writes down what is about to be done. False: it could not be, so it must not be done; nothing has changed. */
  commit(changes: readonly JournalChange[]): boolean;
  /**
   * Writes down what has happened, which is so whether or not it can be: memory has it at once, and the journal as soon
   * as it can.
   */
  record(changes: readonly JournalChange[]): void;
  /** Does some work, and writes down all that it recorded at once. */
  runBatched<T>(work: () => T): T;
  /** Why the journal is behind or can't be written; null: it holds everything. */
  journalProblem(): string | null;
}

/** Something that is so only once it was written down. */
export interface PendingUpdate {
  readonly changes: readonly JournalChange[];
  /** Makes it so; to be called after they were written. */
  apply(): void;
}

/** Dependencies of the remediation state. */
export interface RemediationStateDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  /** Why this journal does not outlive the process, where the real one can't be opened; null: it does. */
  readonly lostReason: string | null;
  /** Whether actions may have been sent that a new journal does not know of, as where its folder was lost; absent: no. */
  readonly assumesEarlierActions?: boolean;
  /** Told of everything that is so now, at once: it must neither wait nor throw. */
  onChange?(changes: readonly JournalChange[]): void;
}

/** How long closed episodes and actions stay in memory: longer than any policy looks back. */
const EPISODE_MEMORY_MS: DurationMs = 30 * DAY_MS;
/** Rows that wait while the journal can't be written. Beyond this the oldest decisions are dropped: nothing depends on them. */
const PENDING_CHANGES_MAX = 50_000;
/** The time is written at least this often: what a restart finds older than that it takes for downtime. */
const CLOCK_WRITE_INTERVAL_MS: DurationMs = MINUTE_MS;
/** The fact that keeps the journal's clock from going back. */
const CLOCK_FACT = "warden.clock";

/** Fact: when a journal was created of whose past nothing is known. */
const FIRST_START_FACT = "warden.began";

/** Reads the state from the journal. Throws if it can't be read. */
export function openRemediationState({
  journal,
  clock,
  log,
  lostReason,
  assumesEarlierActions = false,
  onChange,
}: RemediationStateDeps): RemediationState {
  const clockStamp = journal.facts().get(CLOCK_FACT);
  const journalClock = createJournalClock(clockStamp === undefined ? null : Number(clockStamp), clock, log);
  const { now, epochOf } = journalClock;
  const records = new RemediationRecords(journal.load(now() - EPISODE_MEMORY_MS));
  const pendingChanges = new Map<string, JournalChange>();
  let writeError: string | null = null;
  let changeNumber = 0;
  let clockWrittenAt = Number.NEGATIVE_INFINITY;
  /** What a batch recorded so far; null: there is none. */
  let batch: JournalChange[] | null = null;

  function keyOf(change: JournalChange): string {
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
        changeNumber++;
        return `decision ${changeNumber}`;
      case "order":
        changeNumber++;
        return `order ${changeNumber}`;
      default:
        return change satisfies never;
    }
  }

  function write(changes: readonly JournalChange[]): boolean {
    try {
      // A new journal is stamped only once it is known what time it is.
      const isDated = clockStamp !== undefined || journalClock.isSettled();
      const dated: JournalChange[] = isDated ? [{ kind: "fact", key: CLOCK_FACT, value: String(now()) }] : [];
      journal.commit([...pendingChanges.values(), ...changes, ...dated]);
      clockWrittenAt = clock.monotonic();
      if (writeError !== null) log.info({}, "the journal can be written again");
      pendingChanges.clear();
      writeError = null;
      return true;
    } catch (error) {
      // Said when it begins, not at every try.
      if (writeError === null)
        log.error({ err: error }, "the journal can't be written: no node is touched until it can");
      writeError = error instanceof Error ? error.message : String(error);
      return false;
    }
  }

  function keepPending(change: JournalChange): void {
    const key = keyOf(change);
    // Last of its key, and in the order in which things happened.
    pendingChanges.delete(key);
    pendingChanges.set(key, change);
    if (pendingChanges.size <= PENDING_CHANGES_MAX) return;
    for (const old of pendingChanges.keys()) {
      if (!old.startsWith("decision ")) continue;
      pendingChanges.delete(old);
      return;
    }
  }

  function writeOrKeepPending(changes: readonly JournalChange[]): void {
    const isDue = changes.length > 0 || pendingChanges.size > 0 || writeError !== null;
    if (!isDue && (!journalClock.isSettled() || clock.monotonic() - clockWrittenAt < CLOCK_WRITE_INTERVAL_MS)) return;
    if (!write(changes)) for (const change of changes) keepPending(change);
  }

  function apply(changes: readonly JournalChange[]): void {
    records.apply(changes);
    onChange?.(changes);
  }

  function record(changes: readonly JournalChange[]): void {
    apply(changes);
    if (batch !== null) batch.push(...changes);
    else writeOrKeepPending(changes);
  }

  function checkClock(serviceNow: EpochMs | null): void {
    const isKnown = journalClock.isSettled();
    journalClock.check(serviceNow);
    const hasStarted = !isKnown && journalClock.isSettled() && clockStamp === undefined && assumesEarlierActions;
    if (hasStarted) record([{ kind: "fact", key: FIRST_START_FACT, value: String(now()) }]);
  }

  return {
    records,
    clock: journalClock,
    checkClock,
    firstStartedAt() {
      const firstStart = records.fact(FIRST_START_FACT);
      return firstStart === null ? null : Number(firstStart);
    },
    now,
    epochOf,
    commit(changes) {
      // What does not outlive the process is as good as not written.
      if (lostReason !== null || !write(changes)) return false;
      apply(changes);
      return true;
    },
    record,
    runBatched(work) {
      if (batch !== null) return work();
      batch = [];
      try {
        return work();
      } finally {
        const changes = batch;
        batch = null;
        writeOrKeepPending(changes);
      }
    },
    journalProblem: () => writeError ?? lostReason,
  };
}
