import type { DatabaseSync } from "node:sqlite";
import type { EpochMs } from "../model/time.ts";

/** Most rows of each table that one pruning deletes: some 50 ms of work. */
export const PRUNE_ROWS_MAX = 2_000;

/** Decisions kept at most, the newest: some 200 MB. */
export const DECISIONS_MAX = 200_000;

// What an open episode, or one that is kept, has done is kept with it. The row of the greatest number stays, so that no
// number is ever given twice.
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
// Decisions are written when they change: however old, the last one about an open episode is why it stands as it does.
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

/** Forgets rows, within the transaction of whoever calls. Both throw SQLite's error. */
export interface Retention {
  /** What ended or was decided before `before`, {@link PRUNE_ROWS_MAX} rows of each table at most, the oldest first. */
  prune(before: EpochMs): void;
  /** Decisions beyond {@link DECISIONS_MAX}, after `added` more of them: twice as many at most, the oldest first. */
  trim(added: number): void;
}

/** Forgets rows of the journal in `database`. */
export function createRetention(database: DatabaseSync): Retention {
  // Actions go before their episodes.
  const old = [OLD_ACTIONS, OLD_EPISODES, OLD_DECISIONS, OLD_HOLDS, OLD_OPERATOR_COMMANDS].map((sql) =>
    database.prepare(sql),
  );
  const excess = database.prepare(EXCESS_DECISIONS);
  return {
    prune: (before) => {
      for (const statement of old) statement.run({ before, rows: PRUNE_ROWS_MAX });
    },
    trim: (added) => {
      excess.run({ kept: DECISIONS_MAX, rows: 2 * added });
    },
  };
}
