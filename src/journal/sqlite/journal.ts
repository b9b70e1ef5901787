import type { DatabaseSync } from "node:sqlite";
import type { Journal, JournalChange } from "../../model/remediation/journal.ts";
import { DECISIONS_MAX, deleteExcessDecisions, deleteOldRows, PRUNE_ROWS_MAX } from "../retention.ts";
import { createChangeWriter } from "./change-writer.ts";
import { createRowReader, queriesOver, SCHEMA } from "./rows.ts";
import { runInTransaction } from "./transaction.ts";

/**
 * Creates the journal in `database`, whose schema must be current. All its work is done before a method returns its
 * promise, so a commit is on disk by then. `assertInPlace` is called before each write; it throws if the database file
 * was moved or replaced.
 */
export function createJournal(database: DatabaseSync, assertInPlace: () => void = () => {}): Journal {
  const write = createChangeWriter(database);
  const oldRows = deleteOldRows(SCHEMA).map((sql) => database.prepare(sql));
  const excessDecisions = database.prepare(deleteExcessDecisions(SCHEMA));
  const rows = createRowReader(database);

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
    ...queriesOver(rows),
    // Not limited, since every open episode and retry must be loaded. Open ones are bounded by the fleet and its
    // policies, the others by pruning.
    load: async (closedSince) => ({
      timers: rows.timers(),
      episodes: rows.episodesSince(closedSince),
      actions: rows.actionsSince(closedSince),
      holds: rows.holds(),
      facts: rows.facts(),
      lastNumber: rows.lastNumber(),
    }),
    commit,
    prune: async (before) => {
      assertInPlace();
      runInTransaction(database, () => {
        for (const statement of oldRows) statement.run({ $1: before, $2: PRUNE_ROWS_MAX });
      });
    },
  };
}
