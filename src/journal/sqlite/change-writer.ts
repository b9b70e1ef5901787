import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { JournalChange } from "../../model/remediation/journal.ts";
import { rowChangeOf, WRITES, type Write } from "../row-changes.ts";

/** The statements, whose placeholders are in the order of the columns of a row change, followed by its body. */
const STATEMENTS: Readonly<Record<Write, string>> = {
  timers: `REPLACE INTO timers (node, policy, state, true_ms, clear_ms, since, node_created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)`,
  timersGone: "DELETE FROM timers WHERE node = ? AND policy = ?",
  // REPLACE is not used, because another id with the same number is a bug and must not overwrite its row.
  episodes: `INSERT INTO episodes (number, id, policy, node, state, opened_at, closed_at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET policy = excluded.policy, node = excluded.node, state = excluded.state,
      opened_at = excluded.opened_at, closed_at = excluded.closed_at, body = excluded.body`,
  actions: `INSERT INTO actions (number, id, episode, policy, node, state, created_at, over_at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET episode = excluded.episode, policy = excluded.policy, node = excluded.node,
      state = excluded.state, created_at = excluded.created_at, over_at = excluded.over_at, body = excluded.body`,
  holds: "REPLACE INTO holds (node, policy, ends_at, body) VALUES (?, ?, ?, ?)",
  holdsGone: "DELETE FROM holds WHERE node = ? AND policy = ?",
  facts: "REPLACE INTO facts (key, value) VALUES (?, ?)",
  factsGone: "DELETE FROM facts WHERE key = ?",
  decisions: "INSERT INTO decisions (at, policy, node, episode, verdict, body) VALUES (?, ?, ?, ?, ?, ?)",
  orders: "INSERT INTO orders (at, node, body) VALUES (?, ?, ?)",
};

/**
 * Creates a function that writes one change in the caller's transaction. It throws SQLite's errors, and errors for
 * invalid changes.
 */
export function createChangeWriter(database: DatabaseSync): (change: JournalChange) => void {
  const statements = Object.fromEntries(
    WRITES.map((write) => [write, database.prepare(STATEMENTS[write])]),
  ) as Readonly<Record<Write, StatementSync>>;
  return (change) => {
    const { write, columns, body } = rowChangeOf(change);
    const values = Object.values(columns);
    if (body !== undefined) values.push(JSON.stringify(body));
    statements[write].run(...values);
  };
}
