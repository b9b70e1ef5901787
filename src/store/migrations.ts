import type { DatabaseSync } from "node:sqlite";

/**
 * The schema's history: entry n brings a database from version n to n + 1. An entry that was released is never edited;
 * a change of the schema is one more entry.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE calls (
     day TEXT NOT NULL PRIMARY KEY,
     used INTEGER NOT NULL CHECK (used >= 0)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE facts (
     key TEXT NOT NULL PRIMARY KEY,
     value TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
];

/** The version a database is at; 0: it was just made. */
export function schemaVersion(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.user_version);
}

/**
 * Brings a database to the newest version, each step in a transaction of its own: a step that fails, or a process that
 * dies in it, leaves the version before. Throws SQLite's error.
 */
export function migrate(database: DatabaseSync, migrations: readonly string[] = MIGRATIONS): void {
  for (const [version, statements] of migrations.entries()) {
    if (version < schemaVersion(database)) continue;
    database.exec("BEGIN IMMEDIATE");
    try {
      database.exec(statements);
      database.exec(`PRAGMA user_version = ${version + 1}`);
      database.exec("COMMIT");
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }
}
