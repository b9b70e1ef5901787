import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Journal, JournalChange } from "../../model/remediation/journal.ts";
import { DECISIONS_MAX, deleteExcessDecisions, deleteOldRows, PRUNE_ROWS_MAX } from "../retention.ts";
import { namesOf, putSql, rowChangeOf, TABLES, WRITES } from "../row-changes.ts";
import { createRowQueries, loadContents } from "../row-queries.ts";
import { createConnection, runInTransaction, SCHEMA } from "./connection.ts";

/**
 * Creates the journal in `database`, whose schema must be current. A commit is on disk before its promise is returned.
 * `assertInPlace` is called before each write; it throws if the database file was moved or replaced.
 */
export function createJournal(database: DatabaseSync, assertInPlace: () => void = () => {}): Journal {
  const write = createChangeWriter(database);
  const oldRows = deleteOldRows(SCHEMA).map((sql) => database.prepare(sql));
  const excessDecisions = database.prepare(deleteExcessDecisions(SCHEMA));
  const connection = createConnection(database);

  async function commit(changes: readonly JournalChange[]): Promise<void> {
    if (changes.length === 0) return;
    assertInPlace();
    const decisions = changes.filter(({ kind }) => kind === "decision").length;
    runInTransaction(database, () => {
      for (const change of changes) write(change);
      if (decisions > 0) excessDecisions.run({ $1: DECISIONS_MAX, $2: 2 * decisions });
    });
  }

  return {
    ...createRowQueries(connection, SCHEMA),
    load: (closedSince) => loadContents(connection, SCHEMA, closedSince),
    commit,
    prune: async (before) => {
      assertInPlace();
      runInTransaction(database, () => {
        for (const statement of oldRows) statement.run({ $1: before, $2: PRUNE_ROWS_MAX });
      });
    },
  };
}

/**
 * Creates a function that writes one change in the caller's transaction. It throws SQLite's errors, and errors for
 * invalid changes.
 */
export function createChangeWriter(database: DatabaseSync): (change: JournalChange) => void {
  const [puts, deletes] = [new Map<string, StatementSync>(), new Map<string, StatementSync>()];
  for (const { table, isDelete } of WRITES) {
    const { columns, key } = TABLES[table];
    const parametersOf = (names: string) => namesOf(names).map((name) => `$${name}`);
    if (isDelete) deletes.set(table, database.prepare(`DELETE FROM ${table} WHERE (${key}) = (${parametersOf(key)})`));
    else puts.set(table, database.prepare(putSql(SCHEMA, table, `VALUES (${parametersOf(columns)})`)));
  }
  return (change) => {
    const { table, isDelete, columns, body } = rowChangeOf(change);
    const values = body === undefined ? columns : { ...columns, body: JSON.stringify(body) };
    (isDelete ? deletes : puts).get(table)!.run(values);
  };
}
