import type { DatabaseSync } from "node:sqlite";
import { runInTransaction } from "./journal.ts";

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
  // The journal. `body` is the whole row as JSON; the other columns are for queries. Times are milliseconds since the
  // Unix epoch. They are REAL because an accelerated clock returns fractions. number is the number in the id, which
  // counts episodes and actions together. over_at is when an action ended in any way, or null. holds.policy is '' if
  // the hold is for all policies. ends_at is null if only an operator ends the hold.
  `CREATE TABLE timers (
     node TEXT NOT NULL,
     policy TEXT NOT NULL,
     state TEXT NOT NULL,
     true_ms REAL NOT NULL,
     clear_ms REAL NOT NULL,
     since REAL NOT NULL,
     PRIMARY KEY (node, policy)
   ) STRICT, WITHOUT ROWID;

   CREATE TABLE episodes (
     number INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     policy TEXT NOT NULL,
     node TEXT NOT NULL,
     state TEXT NOT NULL,
     opened_at REAL NOT NULL,
     closed_at REAL,
     body TEXT NOT NULL
   ) STRICT;
   CREATE INDEX episodes_by_node ON episodes (node, opened_at);
   CREATE INDEX episodes_by_policy ON episodes (policy, opened_at);
   CREATE INDEX episodes_by_time ON episodes (opened_at);
   CREATE INDEX episodes_by_close ON episodes (closed_at);

   CREATE TABLE actions (
     number INTEGER PRIMARY KEY,
     id TEXT NOT NULL UNIQUE,
     episode TEXT NOT NULL,
     policy TEXT NOT NULL,
     node TEXT NOT NULL,
     state TEXT NOT NULL,
     created_at REAL NOT NULL,
     over_at REAL,
     body TEXT NOT NULL
   ) STRICT;
   CREATE INDEX actions_by_node ON actions (node, created_at);
   CREATE INDEX actions_by_policy ON actions (policy, created_at);
   CREATE INDEX actions_by_time ON actions (created_at);
   CREATE INDEX actions_by_over ON actions (over_at);
   CREATE INDEX actions_by_episode ON actions (episode);

   CREATE TABLE decisions (
     seq INTEGER PRIMARY KEY AUTOINCREMENT,
     at REAL NOT NULL,
     policy TEXT NOT NULL,
     node TEXT NOT NULL,
     episode TEXT,
     verdict TEXT NOT NULL,
     body TEXT NOT NULL
   ) STRICT;
   CREATE INDEX decisions_by_node ON decisions (node, at);
   CREATE INDEX decisions_by_policy ON decisions (policy, at);
   CREATE INDEX decisions_by_time ON decisions (at);

   CREATE TABLE holds (
     node TEXT NOT NULL,
     policy TEXT NOT NULL,
     ends_at REAL,
     body TEXT NOT NULL,
     PRIMARY KEY (node, policy)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX holds_by_end ON holds (ends_at);`,
  // Commands of operators. node is null if a command does not concern a node.
  `CREATE TABLE orders (
     seq INTEGER PRIMARY KEY AUTOINCREMENT,
     at REAL NOT NULL,
     node TEXT,
     body TEXT NOT NULL
   ) STRICT;
   CREATE INDEX orders_by_node ON orders (node, at);
   CREATE INDEX orders_by_time ON orders (at);`,
  // node_created_at is the created_at of the timer's node, or null if not known.
  "ALTER TABLE timers ADD COLUMN node_created_at REAL",
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
