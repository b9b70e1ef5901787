/** Maximum number of rows that one pruning deletes from each table, which takes about 50 ms. */
export const PRUNE_ROWS_MAX = 2_000;

/** Maximum number of decisions to keep, about 200 MB. */
export const DECISIONS_MAX = 200_000;

/**
 * Returns the SQL that deletes rows that ended or were decided before `$1`, up to `$2` rows of each table, oldest
 * first. `s` is the quoted name of the schema. Actions are deleted before their episodes.
 */
export const deleteOldRows = (s: string): readonly string[] => [
  // Actions of an open or recent episode are kept. The row with the highest number stays, so that no number is used
  // twice.
  `DELETE FROM ${s}.actions WHERE number IN (
     SELECT number FROM ${s}.actions AS old
     WHERE over_at < $1 AND number < (SELECT max(number) FROM ${s}.actions) AND NOT EXISTS (
       SELECT 1 FROM ${s}.episodes WHERE id = old.episode AND (closed_at IS NULL OR closed_at >= $1))
     ORDER BY over_at LIMIT $2)`,
  `DELETE FROM ${s}.episodes WHERE number IN (
     SELECT number FROM ${s}.episodes AS old
     WHERE closed_at < $1 AND number < (SELECT max(number) FROM ${s}.episodes)
       AND NOT EXISTS (SELECT 1 FROM ${s}.actions WHERE episode = old.id)
     ORDER BY closed_at LIMIT $2)`,
  // A decision is written only when it changes, so the last one about an open episode is current, however old it is.
  `DELETE FROM ${s}.decisions WHERE seq IN (
     SELECT seq FROM ${s}.decisions AS old
     WHERE at < $1 AND (
       NOT EXISTS (SELECT 1 FROM ${s}.episodes WHERE id = old.episode AND closed_at IS NULL)
       OR EXISTS (SELECT 1 FROM ${s}.decisions WHERE node = old.node AND episode = old.episode AND seq > old.seq))
     ORDER BY at LIMIT $2)`,
  `DELETE FROM ${s}.holds WHERE (node, policy) IN (
     SELECT node, policy FROM ${s}.holds WHERE ends_at < $1 LIMIT $2)`,
  `DELETE FROM ${s}.orders WHERE seq IN (
     SELECT seq FROM ${s}.orders WHERE at < $1 ORDER BY at LIMIT $2)`,
];

/** Returns the SQL that deletes the oldest decisions beyond the newest `$1`, up to `$2` rows. */
export const deleteExcessDecisions = (s: string): string =>
  `DELETE FROM ${s}.decisions WHERE seq IN (
     SELECT seq FROM ${s}.decisions WHERE seq <= (SELECT max(seq) FROM ${s}.decisions) - $1 ORDER BY seq LIMIT $2)`;
