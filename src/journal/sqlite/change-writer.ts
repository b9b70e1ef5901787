import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { JournalChange } from "../../model/remediation/journal.ts";
import { rowChangeOf, WRITES, type Write } from "../row-changes.ts";

const STATEMENTS: Readonly<Record<Write, string>> = {
  timers: `REPLACE INTO timers (node, policy, state, true_ms, clear_ms, since, node_created_at)
    VALUES (:node, :policy, :state, :true_ms, :clear_ms, :since, :node_created_at)`,
  timersGone: "DELETE FROM timers WHERE node = :node AND policy = :policy",
  // REPLACE is not used, because another id with the same number is a bug and must not overwrite its row.
  episodes: `INSERT INTO episodes (number, id, policy, node, state, opened_at, closed_at, body)
    VALUES (:number, :id, :policy, :node, :state, :opened_at, :closed_at, :body)
    ON CONFLICT (id) DO UPDATE SET policy = excluded.policy, node = excluded.node, state = excluded.state,
      opened_at = excluded.opened_at, closed_at = excluded.closed_at, body = excluded.body`,
  actions: `INSERT INTO actions (number, id, episode, policy, node, state, created_at, over_at, body)
    VALUES (:number, :id, :episode, :policy, :node, :state, :created_at, :over_at, :body)
    ON CONFLICT (id) DO UPDATE SET episode = excluded.episode, policy = excluded.policy, node = excluded.node,
      state = excluded.state, created_at = excluded.created_at, over_at = excluded.over_at, body = excluded.body`,
  holds: "REPLACE INTO holds (node, policy, ends_at, body) VALUES (:node, :policy, :ends_at, :body)",
  holdsGone: "DELETE FROM holds WHERE node = :node AND policy = :policy",
  facts: "REPLACE INTO facts (key, value) VALUES (:key, :value)",
  factsGone: "DELETE FROM facts WHERE key = :key",
  decisions: `INSERT INTO decisions (at, policy, node, episode, verdict, body)
    VALUES (:at, :policy, :node, :episode, :verdict, :body)`,
  orders: "INSERT INTO orders (at, node, body) VALUES (:at, :node, :body)",
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
    statements[write].run(body === undefined ? columns : { ...columns, body: JSON.stringify(body) });
  };
}
