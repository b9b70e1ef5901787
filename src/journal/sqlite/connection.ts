import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Queryable } from "../row-queries.ts";

/** The name that SQLite gives to the schema of a database. */
export const SCHEMA = "main";

/** Creates a connection that runs each statement before it returns a promise. Statements are prepared on first use. */
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
 * There is one exception: if syncing the disk fails and the process ends before the next transaction, the data may be
 * there after a restart. Everything that is recorded before an action must therefore be valid even if the action was
 * not taken.
 */
export function runInTransaction(database: DatabaseSync, work: () => void): void {
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
