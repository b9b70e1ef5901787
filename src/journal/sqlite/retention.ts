import type { DatabaseSync } from "node:sqlite";
import type { EpochMs } from "../../model/time.ts";
import { DECISIONS_MAX, PRUNE_ROWS_MAX } from "../row-rules.ts";

// Actions of an open or recent episode are kept. The row with the highest number stays, so that no number is used twice.
const OLD_ACTIONS = `DELETE FROM actions WHERE number IN (
  SELECT number FROM actions AS old
  WHERE over_at < :before AND number < (SELECT MAX(number) FROM actions) AND NOT EXISTS (
    SELECT 1 FROM episodes WHERE id = old.episode AND (closed_at IS NULL OR closed_at >= :before))
  ORDER BY over_at LIMIT :rows)`;
const OLD_EPISODES = `DELETE FROM episodes WHERE number IN (
  SELECT number FROM episodes AS old
  WHERE closed_at < :before AND number < (SELECT MAX(number) FROM episodes)
    AND NOT EXISTS (SELECT 1 FROM actions WHERE episode = old.id)
  ORDER BY closed_at LIMIT :rows)`;
// A decision is written only when it changes, so the last one about an open episode is current, however old it is.
const OLD_DECISIONS = `DELETE FROM decisions WHERE seq IN (
  SELECT seq FROM decisions AS old
  WHERE at < :before AND (
    NOT EXISTS (SELECT 1 FROM episodes WHERE id = old.episode AND closed_at IS NULL)
    OR EXISTS (SELECT 1 FROM decisions WHERE node = old.node AND +episode = old.episode AND seq > old.seq))
  ORDER BY at LIMIT :rows)`;
const OLD_HOLDS = `DELETE FROM holds WHERE (node, policy) IN (
  SELECT node, policy FROM holds WHERE ends_at < :before LIMIT :rows)`;
const OLD_OPERATOR_COMMANDS = `DELETE FROM orders WHERE seq IN (
  SELECT seq FROM orders WHERE at < :before ORDER BY at LIMIT :rows)`;
const EXCESS_DECISIONS = `DELETE FROM decisions WHERE seq IN (
  SELECT seq FROM decisions WHERE seq <= (SELECT MAX(seq) FROM decisions) - :kept ORDER BY seq LIMIT :rows)`;

/** Deletes old rows in the caller's transaction. Throws SQLite's errors. */
export interface Retention {
  /** Deletes what ended or was decided before `before`: up to {@link PRUNE_ROWS_MAX} rows per table, oldest first. */
  prune(before: EpochMs): void;
  /** Deletes decisions beyond {@link DECISIONS_MAX} after `added` new ones: up to twice that number, oldest first. */
  trim(added: number): void;
}

/** Creates the retention of the journal in `database`. */
export function createRetention(database: DatabaseSync): Retention {
  // Actions are deleted before their episodes.
  const deletions = [OLD_ACTIONS, OLD_EPISODES, OLD_DECISIONS, OLD_HOLDS, OLD_OPERATOR_COMMANDS].map((sql) =>
    database.prepare(sql),
  );
  const excess = database.prepare(EXCESS_DECISIONS);
  return {
    prune: (before) => {
      for (const statement of deletions) statement.run({ before, rows: PRUNE_ROWS_MAX });
    },
    trim: (added) => {
      excess.run({ kept: DECISIONS_MAX, rows: 2 * added });
    },
  };
}
