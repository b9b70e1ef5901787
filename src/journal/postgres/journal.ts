import type { Journal, JournalChange } from "../../model/remediation/journal.ts";
import { commitParameters, commitStatement } from "./commit-batch.ts";
import type { Database } from "./database.ts";
import type { Lease } from "./lease.ts";
import { pruneRows, trimDecisions } from "./retention.ts";
import { createRowQueries, loadContents } from "./row-queries.ts";

/** Begins a transaction in which all queries see the same rows. */
export const READ_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/** Decisions are trimmed after this many new ones, so that a commit needs one round trip. */
const TRIM_INTERVAL_DECISIONS = 1_000;

/**
 * The journal in a database whose schema is current. Commits are fenced: they reject with `Deposed` once another daemon has
 * taken the lease, and write nothing.
 *
 * A commit whose connection is lost may still be written, until a later one is: see `last_commit` in the schema. So everything
 * that is recorded before an action must be valid even if the action was not taken.
 */
export class PostgresJournal implements Journal {
  readonly decisions: Journal["decisions"];
  readonly actions: Journal["actions"];
  readonly episodes: Journal["episodes"];
  readonly operatorCommands: Journal["operatorCommands"];
  readonly facts: Journal["facts"];
  readonly #database: Database;
  readonly #lease: Lease;
  readonly #onFacts: (facts: ReadonlyMap<string, string | null>) => void;
  readonly #statement: string;
  #number = 0;
  #untrimmed = 0;

  /** `onFacts` receives the facts of each commit. */
  constructor(database: Database, lease: Lease, onFacts: (facts: ReadonlyMap<string, string | null>) => void) {
    const queries = createRowQueries(database, database.schema);
    this.decisions = queries.decisions;
    this.actions = queries.actions;
    this.episodes = queries.episodes;
    this.operatorCommands = queries.operatorCommands;
    this.facts = queries.facts;
    this.#database = database;
    this.#lease = lease;
    this.#onFacts = onFacts;
    this.#statement = commitStatement(database.schema);
  }

  load: Journal["load"] = (closedSince) =>
    this.#database.transaction(
      (connection) => loadContents(connection, this.#database.schema, closedSince),
      READ_SNAPSHOT,
    );

  commit: Journal["commit"] = async (changes) => {
    if (changes.length === 0) return;
    const parameters = commitParameters(changes);
    const epoch = this.#lease.epoch();
    if (epoch === null) throw this.#lease.depose();
    this.#number++;
    const [result] = await this.#database.query(this.#statement, [epoch, this.#number, ...parameters]);
    if (result?.placed === true) this.#noteWritten(changes);
    else if (result?.fenced === true) throw new Error("a later commit was written first");
    else if (Number(result?.epoch) === epoch) throw new Error("the lease has ended and is not renewed yet");
    else throw this.#lease.depose();
  };

  prune: Journal["prune"] = (before) => pruneRows(this.#database, before);

  #noteWritten(changes: readonly JournalChange[]): void {
    const facts = changes.flatMap((change) => (change.kind === "fact" ? [[change.key, change.value] as const] : []));
    if (facts.length > 0) this.#onFacts(new Map(facts));
    this.#untrimmed += changes.filter(({ kind }) => kind === "decision").length;
    if (this.#untrimmed < TRIM_INTERVAL_DECISIONS) return;
    // Not waited for: if it fails, the next one deletes twice as many.
    trimDecisions(this.#database, this.#untrimmed).catch(() => undefined);
    this.#untrimmed = 0;
  }
}
