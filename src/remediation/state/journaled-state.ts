import { DAY_MS, type DurationMs, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Clock, LazyFactStore, Log } from "../../model/ports.ts";
import type { Journal, JournalChange, JournalContents } from "../../model/remediation/journal.ts";
import type { Fleet } from "../../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { nextTurn } from "../../platform/event-loop.ts";
import { RemediationRecords } from "../../policy/remediation-records.ts";
import { CHANGING_CREATED_AT_FACT, CreatedAtChanges } from "./created-at-changes.ts";
import { CLOCK_BEHIND_FACT, CLOCK_FACT, CLOCK_LAG_FACT, CLOCK_UNCERTAIN_FACT, JournalClock } from "./journal-clock.ts";
import { JournalWriter } from "./journal-writer.ts";
import { LastHealthyTimes } from "./last-healthy.ts";
import { type ClockAdvance, movedTimes } from "./moved-times.ts";

/** A change that takes effect only once it is journaled. */
export interface PendingUpdate {
  readonly changes: readonly JournalChange[];
  /** Adopts the change. Call it after `changes` were committed. */
  apply(): void;
}

/** Dependencies of the remediation state. */
export interface RemediationStateDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  /** Why this journal is lost at exit (the real one can't be opened), or null if it is durable. */
  readonly lostReason: string | null;
  /**
   * Returns why this daemon, which shares the journal with others, may neither poll nor act now, or null if it may.
   * Absent if it always may.
   */
  leadershipProblem?(): string | null;
  /**
   * Whether a new journal may lack actions that were sent before, for example because its folder was lost. Absent means
   * false.
   */
  readonly assumesEarlierActions?: boolean;
  /** Called with every change as soon as it is in memory. It must neither wait nor throw. */
  onChange?(changes: readonly JournalChange[]): void;
}

/** Time for which closed episodes and actions stay in memory. No setting of a policy looks back further. */
export const EPISODE_MEMORY_MS: DurationMs = 30 * DAY_MS;
/** The time is journaled at least this often. After a restart, the time since then counts as downtime. */
const CLOCK_WRITE_INTERVAL_MS: DurationMs = MINUTE_MS;
/** The lag of the journal's clock is journaled once it has changed by this much: the service's Date is in whole seconds. */
const LAG_CHANGE_MS_MIN: DurationMs = 2 * SECOND_MS;
/** Key of the fact that holds when this journal was created. Absent if it has all earlier actions. */
const FIRST_START_FACT = "remediation.first_start";

/** Reads the state from the journal. Rejects if it can't be read. */
export async function openRemediationState(deps: RemediationStateDeps): Promise<RemediationState> {
  const { journal, clock, log } = deps;
  const journalClock = new JournalClock(await journal.facts(), clock, log);
  const contents = await journal.load(journalClock.now() - EPISODE_MEMORY_MS);
  return new RemediationState(deps, journalClock, contents);
}

/** The journal together with its image in memory. */
export class RemediationState {
  readonly records: RemediationRecords;
  /** Facts of other parts of the daemon. */
  readonly facts: LazyFactStore = {
    read: (key) => this.records.fact(key),
    write: (key, value) => this.record([{ kind: "fact", key, value }]),
    writeLater: (key, compute) => {
      if (this.#laterFacts.size === 0) queueMicrotask(() => this.#laterFacts.size > 0 && this.record([]));
      this.#laterFacts.set(key, compute);
    },
  };
  readonly #laterFacts = new Map<string, () => string>();
  readonly clock: JournalClock;
  /**
   * The ids and `created_at` that were compared last, the ids that were found to belong to another node and still have the
   * state of the previous one, and how often `created_at` changed. Like timers, they are kept until the service changes.
   */
  identities: {
    compared: Pick<Fleet, "ids" | "createdAtMs"> | null;
    replaced: Set<NodeId>;
    readonly changes: CreatedAtChanges;
  };
  /** Kept over a reload too, unless the condition of a policy or the service changes. */
  readonly lastHealthy = new LastHealthyTimes();
  readonly #deps: RemediationStateDeps;
  readonly #isNewJournal: boolean;
  readonly #writer: JournalWriter;
  #clockWrittenAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  /** What the current batch recorded so far, or null if there is no batch. */
  #batch: JournalChange[] | null = null;

  constructor(deps: RemediationStateDeps, clock: JournalClock, contents: JournalContents) {
    this.#deps = deps;
    this.#isNewJournal = !contents.facts.has(CLOCK_FACT);
    this.clock = clock;
    this.records = new RemediationRecords(contents);
    const changingAt = contents.facts.get(CHANGING_CREATED_AT_FACT);
    const unreliableAt = changingAt === undefined ? null : Number(changingAt) - this.epochOf(0);
    this.identities = { compared: null, replaced: new Set(), changes: new CreatedAtChanges(unreliableAt) };
    this.#writer = new JournalWriter({ ...deps, stamp: () => this.#clockFacts() });
  }

  /** Returns the time by the journal's clock. */
  now(): EpochMs {
    return this.clock.now();
  }

  /** Returns the time on the journal's clock when the monotonic clock showed `at`. */
  epochOf(at: MonotonicMs): EpochMs {
    return this.clock.epochOf(at);
  }

  /**
   * Compares the journal's clock with the service's Date, which is null if not known yet. If the clock advances, what
   * began while it was behind is moved with it. This happens between two commits, so that no commit has earlier times.
   * Resolves to the advance, or to null if there was none.
   */
  async checkClock(serviceNow: () => EpochMs | null): Promise<ClockAdvance | null> {
    let advance: ClockAdvance | null = null;
    if (this.clock.isSettled() && this.clock.checkSuspension(serviceNow()) === null) this.#recordLag();
    else
      await this.#writer.commit(() => {
        advance = this.#checkClock(serviceNow());
        return null;
      });
    return advance;
  }

  #recordLag(): void {
    const lagMs = this.clock.lagMs();
    if (Math.abs(lagMs - Number(this.records.fact(CLOCK_LAG_FACT) ?? 0)) >= LAG_CHANGE_MS_MIN)
      this.record([{ kind: "fact", key: CLOCK_LAG_FACT, value: String(lagMs) }]);
  }

  #checkClock(serviceNow: EpochMs | null): ClockAdvance | null {
    const [wasSettled, offset] = [this.clock.isSettled(), this.epochOf(0)];
    const since = this.clock.checkSuspension(serviceNow);
    const behindSince = since ?? this.clock.behindSince();
    this.clock.check(serviceNow);
    const hasSettled = !wasSettled && this.clock.isSettled();
    const changes: JournalChange[] = [];
    if (hasSettled && this.#isNewJournal && this.#deps.assumesEarlierActions === true)
      changes.push({ kind: "fact", key: FIRST_START_FACT, value: String(this.now()) });
    const uncertainUntil = String(this.clock.uncertainUntil());
    if (uncertainUntil !== (this.records.fact(CLOCK_UNCERTAIN_FACT) ?? "-Infinity"))
      changes.push({ kind: "fact", key: CLOCK_UNCERTAIN_FACT, value: uncertainUntil });
    const byMs = this.epochOf(0) - offset;
    const advance =
      behindSince === null || byMs === 0 ? null : { byMs, behindSince, openedAt: since ?? this.clock.openedAt };
    if (advance !== null) changes.push(...movedTimes(this.records, advance));
    if (behindSince !== null && this.clock.behindSince() === null)
      changes.push({ kind: "fact", key: CLOCK_BEHIND_FACT, value: null });
    if (changes.length > 0) this.record(changes);
    return advance;
  }

  /** Returns when the journal was created if it may lack earlier actions, or null if it has all of them. */
  firstStartedAt(): EpochMs | null {
    return this.records.jsonFact<EpochMs>(FIRST_START_FACT);
  }

  /**
   * Journals what is about to be done, after everything recorded before. `changesNow` is called when all earlier commits
   * have taken effect, and `adopt` when the changes do. Resolves to false if it returned null or the changes can't be
   * journaled. Then nothing must be done, and nothing has changed.
   */
  commit(changesNow: () => readonly JournalChange[] | null, adopt = () => {}): Promise<boolean> {
    let changes: readonly JournalChange[] | null = null;
    return this.#writer.commit(
      () => {
        changes = changesNow();
        // A journal that is lost at exit does not make anything durable.
        return this.#deps.lostReason === null ? changes : null;
      },
      () => {
        this.#adopt(changes!);
        adopt();
      },
      () => this.records.currentRows(changes!),
    );
  }

  /**
   * Journals changes that take effect only when the returned function is called, so that a caller can first check
   * whether they still apply. That function takes the rows as they are by then, and does not journal what differs: their
   * next change does. `appliesNow` is called when all earlier commits have taken effect. Resolves to null if it returned
   * false or the changes can't be journaled.
   */
  async prepare(
    changes: readonly JournalChange[],
    appliesNow: () => boolean,
  ): Promise<((latest: readonly JournalChange[]) => void) | null> {
    const changesNow = () => (this.#deps.lostReason === null && appliesNow() ? changes : null);
    const isWritten = await this.#writer.commit(changesNow);
    return isWritten ? (latest) => this.#adopt(latest) : null;
  }

  /** Waits until all commits so far have taken effect or have failed. */
  pendingCommits(): Promise<void> {
    return this.#writer.lastCommit();
  }

  /** Writes what is still to be written, if the journal can be written. Call it before the journal is closed. */
  async flush(): Promise<void> {
    await this.#writer.commit(() => []);
  }

  /**
   * Records what has happened. This takes effect in memory immediately, and is written to the journal now or after the
   * commit under way.
   */
  record(changes: readonly JournalChange[]): void {
    this.#apply(changes);
    if (this.#batch !== null) this.#batch.push(...changes);
    else this.#enqueue(changes);
  }

  /**
   * Records changes, and journals each part in a transaction of its own, in order and with a turn of the event loop
   * between them. A crash may leave only the first parts. Resolves when the last transaction has begun.
   */
  async recordInParts(parts: readonly (readonly JournalChange[])[]): Promise<void> {
    for (const [index, part] of parts.entries()) {
      // A journal that can't be written is not tried again with each part.
      if (this.#writer.problem() !== null) return this.record(parts.slice(index).flat());
      if (part.length > 0) this.record(part);
      if (index === parts.length - 1) return;
      await this.#writer.lastCommit();
      await nextTurn();
    }
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
      this.#enqueue(changes);
    }
  }

  /**
   * Returns why no action can be journaled (the last write failed, this daemon does not lead, or the journal is lost at
   * exit), or null if one can.
   */
  journalProblem(): string | null {
    const failure = this.#writer.problem();
    const leadership = this.leadershipProblem();
    if (failure === null) return leadership ?? this.#deps.lostReason;
    if (leadership === null) return `the journal can't be written: ${failure}`;
    return `${leadership} (the last write to the journal failed: ${failure})`;
  }

  /** Returns why this daemon, which shares the journal, may neither poll nor act now, or null if it may. */
  leadershipProblem(): string | null {
    return this.#deps.leadershipProblem?.() ?? null;
  }

  #apply(changes: readonly JournalChange[]): void {
    this.records.apply(changes);
    this.#deps.onChange?.(changes);
  }

  #adopt(changes: readonly JournalChange[]): void {
    this.#apply(changes);
    // What was recorded for the same rows during the commit is written after it.
    this.records.apply(this.#writer.queuedFor(changes));
  }

  #enqueue(recorded: readonly JournalChange[]): void {
    const later = [...this.#laterFacts].map(([key, compute]) => ({ kind: "fact", key, value: compute() }) as const);
    this.#laterFacts.clear();
    this.#apply(later);
    const changes = [...recorded, ...later];
    const isClockDue = this.#deps.clock.monotonic() - this.#clockWrittenAt >= CLOCK_WRITE_INTERVAL_MS;
    const isDue = changes.length > 0 || this.#writer.hasQueued() || this.#writer.problem() !== null;
    if (isDue || (this.clock.isSettled() && isClockDue)) this.#writer.enqueue(changes);
  }

  /** Returns the facts with the time, which are written now. A new journal gets them only once the time is known. */
  #clockFacts(): JournalChange[] {
    this.#clockWrittenAt = this.#deps.clock.monotonic();
    if (this.#isNewJournal && !this.clock.isSettled()) return [];
    const behindSince = this.clock.behindSince();
    return [
      { kind: "fact", key: CLOCK_FACT, value: String(this.now()) },
      ...(behindSince === null ? [] : [{ kind: "fact", key: CLOCK_BEHIND_FACT, value: String(behindSince) } as const]),
    ];
  }
}
