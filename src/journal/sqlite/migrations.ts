import type { DatabaseSync } from "node:sqlite";
import { createJournalTables } from "../journal-tables.ts";
import { runInTransaction } from "./journal.ts";

/**
 * The schema's history. The first entry creates a database, and every other one migrates it by one version. Released
 * entries are never edited.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE calls (
     day TEXT NOT NULL PRIMARY KEY,
     used INTEGER NOT NULL CHECK (used >= 0)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE facts (
     key TEXT NOT NULL PRIMARY KEY,
     value TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   ${createJournalTables({
     prefix: "",
     time: "REAL",
     json: "TEXT",
     number: "INTEGER PRIMARY KEY",
     sequence: "INTEGER PRIMARY KEY AUTOINCREMENT",
     numbered: "STRICT",
     keyed: "STRICT, WITHOUT ROWID",
   })}`,
];

/** The versions that this version of proxywarden supports. The first release creates the first one. */
export const VERSIONS = { first: 5, last: 4 + MIGRATIONS.length };

/** Returns the schema version of a database, which is 0 if it is new. */
export function schemaVersion(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.user_version);
}

/**
 * Creates a database, or migrates it to the newest version, each step in a transaction of its own. If a step fails or
 * the process is killed, the database stays at the version before that step. Throws SQLite's errors.
 */
export function migrate(database: DatabaseSync, migrations: readonly string[] = MIGRATIONS): void {
  for (const [index, statements] of migrations.entries()) {
    const version = VERSIONS.first + index;
    if (version <= schemaVersion(database)) continue;
    runInTransaction(database, () => {
      database.exec(statements);
      database.exec(`PRAGMA user_version = ${version}`);
    });
  }
}
