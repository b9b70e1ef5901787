import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Journal, JournalChange } from "../../model/remediation/journal.ts";
import {
  DECISIONS_MAX,
  deleteExcessDecisions,
  deleteOldRows,
  namesOf,
  PRUNE_ROWS_MAX,
  putSql,
  rowChangeOf,
  TABLES,
  WRITES,
} from "../row-changes.ts";
import { createRowQueries, loadContents, type Queryable } from "../row-queries.ts";

/** The name that SQLite gives to the schema of a database. */
export const SCHEMA = "main";

/** Creates a connection that runs a statement before it returns a promise. Each is prepared once, on its first use. */
export function createConnection(database: DatabaseSync): Queryable {
  const statements = new Map<string, StatementSync>();
  return {
    async query(sql, parameters = []) {
      const statement = statements.get(sql) ?? database.prepare(sql);
      statements.set(sql, statement);
      return statement.all(Object.fromEntries(parameters.map((value, index) => [`$${index + 1}`, value])));
    },
  };
}

/**
 * Runs `work` in one transaction. When this returns, all its writes are on disk; if `work` or SQLite throws, none of
 * them is in the database, and the error is rethrown. No transaction is left open, because later writes would become
 * part of it and be lost. If SQLite can't roll back, the database is closed, which rolls back, and all later uses
 * throw.
 *
 * There is one exception: if syncing the disk fails and the process ends before the next transaction, the writes of the
 * failed transaction may be in the database after a restart. Everything that is recorded before an action must therefore
 * be valid even if the action was not taken.
 */
export function runInTransaction(database: DatabaseSync, work: () => void): void {
  if (!database.isOpen) throw new Error("the database was closed because a transaction failed; restart the daemon");
  database.exec("BEGIN IMMEDIATE");
  try {
    work();
    database.exec("COMMIT");
  } catch (error) {
    rollBack(database);
    throw error;
  }
}

/** Rolls back, unless SQLite already has, as it does after some errors such as a full disk. */
function rollBack(database: DatabaseSync): void {
  if (!database.isTransaction) return;
  try {
    database.exec("ROLLBACK");
  } catch {
    // The caller rethrows the error that made the transaction fail.
  }
  if (database.isTransaction) database.close();
}

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
