import type { DatabaseSync } from "node:sqlite";
import type { Journal, JournalChange } from "../model/remediation/journal.ts";
import { createChangeWriter } from "./change-writer.ts";
import { createRetention } from "./retention.ts";
import { createRowReader } from "./rows.ts";
import { runInTransaction } from "./transaction.ts";

/**
 * The journal in `database`, whose schema is up to date. `assertHeld` throws where the database is no longer the one
 * that a next start would find; it is asked before anything is written.
 */
export function createJournal(database: DatabaseSync, assertHeld: () => void = () => {}): Journal {
  const write = createChangeWriter(database);
  const retention = createRetention(database);
  const rows = createRowReader(database);

  function commit(changes: readonly JournalChange[]): void {
    if (changes.length === 0) return;
    assertHeld();
    const decisions = changes.filter(({ kind }) => kind === "decision").length;
    runInTransaction(database, () => {
      for (const change of changes) write(change);
      if (decisions > 0) retention.trim(decisions);
    });
  }

  return {
    // Without a bound of its own: an open episode or a retry that was left out would be one that never was. What is
    // open is bounded by the fleet and its policies, the rest by pruning.
    load: (closedSince) => ({
      timers: rows.timers(),
      episodes: rows.episodesSince(closedSince),
      actions: rows.actionsSince(closedSince),
      holds: rows.holds(),
      facts: rows.facts(),
      lastNumber: rows.lastNumber(),
    }),
    facts: rows.facts,
    commit,
    decisions: rows.decisions,
    actions: rows.actions,
    episodes: rows.episodes,
    operatorCommands: rows.operatorCommands,
    prune: (before) => {
      assertHeld();
      runInTransaction(database, () => retention.prune(before));
    },
  };
}
