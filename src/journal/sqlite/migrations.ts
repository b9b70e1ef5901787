import type { DatabaseSync } from "node:sqlite";
import { addNodeCreatedAt, createJournalTables, createOrders, type Dialect } from "../journal-tables.ts";
import { applyRenames } from "../renames.ts";
import { runInTransaction } from "./journal.ts";

const SQLITE: Dialect = {
  prefix: "",
  time: "REAL",
  json: "TEXT",
  number: "INTEGER PRIMARY KEY",
  sequence: "INTEGER PRIMARY KEY AUTOINCREMENT",
  numbered: "STRICT",
  keyed: "STRICT, WITHOUT ROWID",
  renamedKey: (from, to) => `json_set(json_remove(body, '$.${from}'), '$.${to}', body -> '$.${from}')`,
};

/** The schema's history: entry n migrates a database from version n to n + 1. Released entries are never edited. */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE calls (
     day TEXT NOT NULL PRIMARY KEY,
     used INTEGER NOT NULL CHECK (used >= 0)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE facts (
     key TEXT NOT NULL PRIMARY KEY,
     value TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
  createJournalTables(SQLITE),
  createOrders(SQLITE),
  addNodeCreatedAt(SQLITE),
  applyRenames(SQLITE),
];

/** Returns the schema version of a database, 0 if it is new. */
export function schemaVersion(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.user_version);
}

/**
 * Migrates a database to the newest version, each step in a transaction of its own. If a step fails or the process is
 * killed, the database stays at the version before that step. Throws SQLite's errors.
 */
export function migrate(database: DatabaseSync, migrations: readonly string[] = MIGRATIONS): void {
  for (const [version, statements] of migrations.entries()) {
    if (version < schemaVersion(database)) continue;
    runInTransaction(database, () => {
      database.exec(statements);
      database.exec(`PRAGMA user_version = ${version + 1}`);
    });
  }
}
