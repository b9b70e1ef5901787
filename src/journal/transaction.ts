import type { DatabaseSync } from "node:sqlite";

/**
 * Runs `work` in one transaction: all that it wrote is on the disk when this returns, and none of it is in the database
 * when this throws what `work` or SQLite threw. No transaction is ever left open: what others write after it would
 * wait in there, acknowledged and lost. Where SQLite can't even roll back, the database is closed, which does, and
 * whatever uses it from then on throws.
 *
 * One doubt no database takes away: where syncing the disk itself failed, and the process dies before the next
 * transaction, this one may be found after all. What is written before something is done must bear being found.
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

/** SQLite rolls back by itself after some errors, a full disk among them. */
function rollBack(database: DatabaseSync): void {
  if (!database.isTransaction) return;
  try {
    database.exec("ROLLBACK");
  } catch {
    // Why the transaction failed is what is thrown; this follows from it.
  }
  if (database.isTransaction) database.close();
}
