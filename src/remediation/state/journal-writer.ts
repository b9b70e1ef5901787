import { errorMessage } from "../../base/result.ts";
import type { Log } from "../../model/ports.ts";
import { type Journal, type JournalChange, rowKeyOf } from "../../model/remediation/journal.ts";

/** Dependencies of the journal writer. */
interface JournalWriterDeps {
  readonly journal: Pick<Journal, "commit">;
  readonly log: Log;
  /** Returns the changes to write at the end of a commit that begins now. */
  stamp(): readonly JournalChange[];
}

/**
 * Maximum number of changes that wait while the journal can't be written. Beyond it, the oldest decisions are dropped,
 * because they are only shown.
 */
const QUEUED_CHANGES_MAX = 50_000;

/**
 * Writes changes to the journal, in the order in which they were made and in one commit at a time.
 *
 * A queued change is written immediately if no commit is under way, and otherwise in the next one. If a commit fails,
 * its queued changes stay in the queue, and the next call tries again.
 */
export class JournalWriter {
  readonly #deps: JournalWriterDeps;
  /** The last change of each row, in the order in which they happened. */
  readonly #queue = new Map<string, JournalChange>();
  /** The keys of the queued decisions, oldest first. */
  readonly #queuedDecisions = new Set<string>();
  /** Callers that wait for their turn. */
  readonly #waiting: (() => void)[] = [];
  #isBusy = false;
  #problem: string | null = null;
  #rowNumber = 0;

  constructor(deps: JournalWriterDeps) {
    this.#deps = deps;
  }

  /** Returns why the last commit failed, or null if it succeeded. */
  problem(): string | null {
    return this.#problem;
  }

  /** Returns whether changes wait to be written. */
  hasQueued(): boolean {
    return this.#queue.size > 0;
  }

  /** Returns the queued changes of the same rows. */
  queuedFor(changes: readonly JournalChange[]): readonly JournalChange[] {
    return this.#queue.size === 0 ? [] : changes.flatMap((change) => this.#queue.get(this.#keyOf(change)) ?? []);
  }

  /** Waits until the commit under way, and those that wait for it, are over. */
  async lastCommit(): Promise<void> {
    await this.commit(() => null);
  }

  /** Queues changes. If no commit is under way, all queued changes are written now. */
  enqueue(changes: readonly JournalChange[]): void {
    for (const change of changes) this.#keep(change);
    if (!this.#isBusy) void this.#writeQueue();
  }

  /**
   * Writes what `changesNow` returns, after everything that was queued before, in one transaction. `changesNow` is
   * called when all earlier commits are done, and `adopt` as soon as the changes are written. Resolves to false if
   * `changesNow` returned null or the journal can't be written. What was queued stays queued. `restored` then returns
   * the previous rows, which are queued too, because the journal may have been written if only the response was lost.
   */
  async commit(
    changesNow: () => readonly JournalChange[] | null,
    adopt = () => {},
    restored: () => readonly JournalChange[] = () => [],
  ): Promise<boolean> {
    if (this.#isBusy) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#isBusy = true;
    let isWritten = this.#problem === null;
    try {
      const changes = changesNow();
      if (changes === null) return false;
      isWritten = await this.#write(changes);
      if (isWritten) adopt();
      else for (const change of restored()) this.#keep(change);
      return isWritten;
    } finally {
      this.#endTurn(isWritten);
    }
  }

  async #writeQueue(): Promise<void> {
    this.#isBusy = true;
    this.#endTurn(await this.#write([]));
  }

  /**
   * Lets the next caller write, or writes what was queued in the meantime. After a failure the queue waits for the next
   * call.
   */
  #endTurn(isWritten: boolean): void {
    const next = this.#waiting.shift();
    if (next !== undefined) next();
    else if (isWritten && this.#queue.size > 0) void this.#writeQueue();
    else this.#isBusy = false;
  }

  /** Writes the queue and then `changes`. If that fails, what was queued stays queued. */
  async #write(changes: readonly JournalChange[]): Promise<boolean> {
    const { journal, log, stamp } = this.#deps;
    const queued = this.#takeQueue();
    try {
      await journal.commit([...queued, ...changes, ...stamp()]);
    } catch (error) {
      const later = this.#takeQueue();
      for (const change of [...queued, ...later]) this.#keep(change);
      // Logged when it begins, not at every attempt.
      if (this.#problem === null)
        log.error({ err: error }, "the journal can't be written: no action is taken until it can");
      this.#problem = errorMessage(error);
      return false;
    }
    if (this.#problem !== null) log.info({}, "the journal can be written again");
    this.#problem = null;
    return true;
  }

  #takeQueue(): readonly JournalChange[] {
    const queued = [...this.#queue.values()];
    this.#queue.clear();
    this.#queuedDecisions.clear();
    return queued;
  }

  #keep(change: JournalChange): void {
    const key = this.#keyOf(change);
    this.#queue.delete(key);
    this.#queue.set(key, change);
    if (change.kind === "decision") this.#queuedDecisions.add(key);
    if (this.#queue.size <= QUEUED_CHANGES_MAX) return;
    const [oldest] = this.#queuedDecisions;
    if (oldest === undefined) return;
    this.#queue.delete(oldest);
    this.#queuedDecisions.delete(oldest);
  }

  #keyOf(change: JournalChange): string {
    return rowKeyOf(change) ?? `row ${this.#rowNumber++}`;
  }
}
