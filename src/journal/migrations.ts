import type { DatabaseSync } from "node:sqlite";
import { runInTransaction } from "./transaction.ts";

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
  // The journal. A body is the whole row as JSON; the columns beside it are what rows are found by. Times are
  // milliseconds since the Unix epoch, and REAL, since a clock that runs at speed gives fractions of them.
  // number: of the id, which counts episodes and actions together.
  // over_at: when an action came to its end, by whatever way; null while it may still do something.
  // holds.policy: '' where the hold is for every policy. ends_at: null where only a person ends it.
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
  // Orders of operators. node: null where an order is about no node.
  `CREATE TABLE orders (
     seq INTEGER PRIMARY KEY AUTOINCREMENT,
     at REAL NOT NULL,
     node TEXT,
     body TEXT NOT NULL
   ) STRICT;
   CREATE INDEX orders_by_node ON orders (node, at);
   CREATE INDEX orders_by_time ON orders (at);`,
  // created_at of the node of a timer. null: not known.
  "ALTER TABLE timers ADD COLUMN node_created_at REAL",
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
    runInTransaction(database, () => {
      database.exec(statements);
      database.exec(`PRAGMA user_version = ${version + 1}`);
    });
  }
}
