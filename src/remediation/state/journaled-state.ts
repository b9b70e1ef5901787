import { DAY_MS, type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { Journal, JournalChange } from "../../model/remediation/journal.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { RemediationRecords } from "../../policy/remediation-records.ts";
import { createJournalClock, type JournalClock } from "./journal-clock.ts";

/** A change that takes effect only once it is journaled. */
export interface PendingUpdate {
  readonly changes: readonly JournalChange[];
  /** Adopts the change; to be called after `changes` were committed. */
  apply(): void;
}

/** Dependencies of the remediation state. */
export interface RemediationStateDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  /** Why this journal is lost at exit, because the real one can't be opened; null: it is durable. */
  readonly lostReason: string | null;
  /** Whether a new journal may lack actions that were sent before, for example because its folder was lost; absent: no. */
  readonly assumesEarlierActions?: boolean;
  /** Called with every change as soon as it is in memory. It must neither wait nor throw. */
  onChange?(changes: readonly JournalChange[]): void;
}

/** How long closed episodes and actions stay in memory: longer than any policy looks back. */
const EPISODE_MEMORY_MS: DurationMs = 30 * DAY_MS;
/** Changes that wait while the journal can't be written. Beyond this the oldest decisions are dropped: nothing reads them. */
const PENDING_CHANGES_MAX = 50_000;
/** The time is journaled at least this often: after a restart, the time since then counts as downtime. */
const CLOCK_WRITE_INTERVAL_MS: DurationMs = MINUTE_MS;
/** Key of the fact that holds the last time on the journal's clock, which keeps the clock from going back. */
const CLOCK_FACT = "warden.clock";
/** Key of the fact that holds when a journal was created that may lack earlier actions. */
const FIRST_START_FACT = "warden.began";

/** Reads the state from the journal. Throws if it can't be read. */
export const openRemediationState = (deps: RemediationStateDeps): RemediationState => new RemediationState(deps);

/** The journal and its image in memory, kept as one. */
export class RemediationState {
  readonly records: RemediationRecords;
  readonly clock: JournalClock;
  readonly #deps: RemediationStateDeps;
  readonly #isNewJournal: boolean;
  readonly #pending = new Map<string, JournalChange>();
  #writeError: string | null = null;
  #rowNumber = 0;
  #clockWrittenAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  /** What the current batch recorded so far; null: there is no batch. */
  #batch: JournalChange[] | null = null;

  constructor(deps: RemediationStateDeps) {
    const { journal, clock, log } = deps;
    const lastTime = journal.facts().get(CLOCK_FACT);
    this.#deps = deps;
    this.#isNewJournal = lastTime === undefined;
    this.clock = createJournalClock(lastTime === undefined ? null : Number(lastTime), clock, log);
    this.records = new RemediationRecords(journal.load(this.now() - EPISODE_MEMORY_MS));
  }

  /** The journal's clock: it continues from the last time that was journaled, and never goes back. */
  now(): EpochMs {
    return this.clock.now();
  }

  /** Returns the time on the journal's clock when the monotonic clock showed `at`. */
  epochOf(at: MonotonicMs): EpochMs {
    return this.clock.epochOf(at);
  }

  /** Compares the journal's clock with the service's Date; null: not known yet. */
  checkClock(serviceNow: EpochMs | null): void {
    const wasSettled = this.clock.isSettled();
    this.clock.check(serviceNow);
    const hasSettled = !wasSettled && this.clock.isSettled();
    if (hasSettled && this.#isNewJournal && this.#deps.assumesEarlierActions === true)
      this.record([{ kind: "fact", key: FIRST_START_FACT, value: String(this.now()) }]);
  }

  /** When the journal was created, if it may lack earlier actions; null: it has all of them. */
  firstStartedAt(): EpochMs | null {
    const fact = this.records.fact(FIRST_START_FACT);
    return fact === null ? null : Number(fact);
  }

  /** Journals what is about to be done. False: it can't be journaled, so it must not be done; nothing has changed. */
  commit(changes: readonly JournalChange[]): boolean {
    // A journal that is lost at exit does not make anything durable.
    if (this.#deps.lostReason !== null || !this.#write(changes)) return false;
    this.#apply(changes);
    return true;
  }

  /** Records what has happened: in memory at once, and in the journal as soon as it can be written. */
  record(changes: readonly JournalChange[]): void {
    this.#apply(changes);
    if (this.#batch !== null) this.#batch.push(...changes);
    else this.#writeOrKeep(changes);
  }

  /** Runs `work`, and journals all that it records in one transaction. */
  runBatched<T>(work: () => T): T {
    if (this.#batch !== null) return work();
    this.#batch = [];
    try {
      return work();
    } finally {
      const changes = this.#batch;
      this.#batch = null;
      this.#writeOrKeep(changes);
    }
  }

  /** Why the journal is behind or can't be written; null: it holds everything. */
  journalProblem(): string | null {
    return this.#writeError ?? this.#deps.lostReason;
  }

  #apply(changes: readonly JournalChange[]): void {
    this.records.apply(changes);
    this.#deps.onChange?.(changes);
  }

  #writeOrKeep(changes: readonly JournalChange[]): void {
    const isClockDue = this.#deps.clock.monotonic() - this.#clockWrittenAt >= CLOCK_WRITE_INTERVAL_MS;
    const isDue = changes.length > 0 || this.#pending.size > 0 || this.#writeError !== null;
    if (!isDue && !(this.clock.isSettled() && isClockDue)) return;
    if (!this.#write(changes)) for (const change of changes) this.#keep(change);
  }

  #write(changes: readonly JournalChange[]): boolean {
    const { journal, clock, log } = this.#deps;
    try {
      // The time goes into a new journal only once it is known.
      const isDated = !this.#isNewJournal || this.clock.isSettled();
      const dated: JournalChange[] = isDated ? [{ kind: "fact", key: CLOCK_FACT, value: String(this.now()) }] : [];
      journal.commit([...this.#pending.values(), ...changes, ...dated]);
      this.#clockWrittenAt = clock.monotonic();
      if (this.#writeError !== null) log.info({}, "the journal can be written again");
      this.#pending.clear();
      this.#writeError = null;
      return true;
    } catch (error) {
      // Logged when it begins, not at every attempt.
      if (this.#writeError === null)
        log.error({ err: error }, "the journal can't be written: no action is taken until it can");
      this.#writeError = error instanceof Error ? error.message : String(error);
      return false;
    }
  }

  /** Keeps a change until the journal can be written: the last one of each row, in the order in which they happened. */
  #keep(change: JournalChange): void {
    const key = this.#keyOf(change);
    this.#pending.delete(key);
    this.#pending.set(key, change);
    if (this.#pending.size <= PENDING_CHANGES_MAX) return;
    for (const [oldKey, { kind }] of this.#pending) {
      if (kind !== "decision") continue;
      this.#pending.delete(oldKey);
      return;
    }
  }

  #keyOf(change: JournalChange): string {
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
      case "order":
        this.#rowNumber++;
        return `row ${this.#rowNumber}`;
      default:
        return change satisfies never;
    }
  }
}
