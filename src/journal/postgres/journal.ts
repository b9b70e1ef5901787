import type { Journal, JournalChange } from "../../model/remediation/journal.ts";
import type { EpochMs } from "../../model/time.ts";
import { DECISIONS_MAX, deleteExcessDecisions, deleteOldRows, PRUNE_ROWS_MAX } from "../retention.ts";
import { createRowQueries, loadContents, type RowQueries } from "../row-queries.ts";
import { commitParameters, commitStatement } from "./commit-batch.ts";
import { type Database, READ_SNAPSHOT } from "./database.ts";
import type { Lease } from "./lease.ts";

/** Decisions are trimmed after this many new ones, so that a commit needs one round trip. */
const TRIM_INTERVAL_DECISIONS = 1_000;

/**
 * Creates the journal in a database whose schema is current. Commits are fenced: they reject with `Deposed` once
 * another daemon has taken the lease, and write nothing. `onFacts` receives the facts of each commit.
 *
 * A commit whose connection is lost may still be written until a later commit is (see `last_commit` in the schema).
 * Everything that is recorded before an action must therefore be valid even if the action was not taken.
 */
export function createPostgresJournal(
  database: Database,
  lease: Lease,
  onFacts: (facts: ReadonlyMap<string, string | null>) => void,
): Journal {
  const { schema } = database;
  const statement = commitStatement(schema);
  let number = 0;
  let untrimmed = 0;

  async function commit(changes: readonly JournalChange[]): Promise<void> {
    if (changes.length === 0) return;
    const parameters = commitParameters(changes);
    const epoch = lease.requireEpoch();
    number++;
    const [result] = await database.query(statement, [epoch, number, ...parameters]);
    if (result?.placed === true) noteWritten(changes);
    else if (result?.fenced === true) throw new Error("a later commit was written first");
    else if (Number(result?.epoch) === epoch) throw new Error("the lease has ended and is not renewed yet");
    else throw lease.depose();
  }

  function noteWritten(changes: readonly JournalChange[]): void {
    const facts = changes.flatMap((change) => (change.kind === "fact" ? [[change.key, change.value] as const] : []));
    if (facts.length > 0) onFacts(new Map(facts));
    untrimmed += changes.filter(({ kind }) => kind === "decision").length;
    if (untrimmed < TRIM_INTERVAL_DECISIONS) return;
    // This is not waited for. If it fails, the next one deletes twice as many.
    database.query(deleteExcessDecisions(schema), [DECISIONS_MAX, 2 * untrimmed]).catch(() => undefined);
    untrimmed = 0;
  }

  async function prune(before: EpochMs): Promise<void> {
    for (const sql of deleteOldRows(schema)) await database.query(sql, [before, PRUNE_ROWS_MAX]);
  }

  return { ...createJournalQueries(database), commit, prune };
}

/** Creates the reading part of a journal, in a database whose schema is current. */
export const createJournalQueries = (database: Database): RowQueries & Pick<Journal, "load"> => ({
  ...createRowQueries(database, database.schema),
  load: (since) =>
    database.transaction((connection) => loadContents(connection, database.schema, since), READ_SNAPSHOT),
});
