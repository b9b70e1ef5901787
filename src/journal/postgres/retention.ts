import type { EpochMs } from "../../model/time.ts";
import { DECISIONS_MAX, PRUNE_ROWS_MAX } from "../row-rules.ts";
import type { Database } from "./database.ts";

// Actions of an open or recent episode are kept. The row with the highest number stays, so that no number is used twice.
const oldActions = (s: string) => `DELETE FROM ${s}.actions WHERE number IN (
  SELECT number FROM ${s}.actions AS old
  WHERE over_at < $1 AND number < (SELECT max(number) FROM ${s}.actions) AND NOT EXISTS (
    SELECT FROM ${s}.episodes WHERE id = old.episode AND (closed_at IS NULL OR closed_at >= $1))
  ORDER BY over_at LIMIT $2)`;
const oldEpisodes = (s: string) => `DELETE FROM ${s}.episodes WHERE number IN (
  SELECT number FROM ${s}.episodes AS old
  WHERE closed_at < $1 AND number < (SELECT max(number) FROM ${s}.episodes)
    AND NOT EXISTS (SELECT FROM ${s}.actions WHERE episode = old.id)
  ORDER BY closed_at LIMIT $2)`;
// A decision is written only when it changes, so the last one about an open episode is current, however old it is.
const oldDecisions = (s: string) => `DELETE FROM ${s}.decisions WHERE seq IN (
  SELECT seq FROM ${s}.decisions AS old
  WHERE at < $1 AND (
    NOT EXISTS (SELECT FROM ${s}.episodes WHERE id = old.episode AND closed_at IS NULL)
    OR EXISTS (SELECT FROM ${s}.decisions WHERE node = old.node AND episode = old.episode AND seq > old.seq))
  ORDER BY at LIMIT $2)`;
const oldHolds = (s: string) => `DELETE FROM ${s}.holds WHERE (node, policy) IN (
  SELECT node, policy FROM ${s}.holds WHERE ends_at < $1 LIMIT $2)`;
const oldOrders = (s: string) => `DELETE FROM ${s}.orders WHERE seq IN (
  SELECT seq FROM ${s}.orders WHERE at < $1 ORDER BY at LIMIT $2)`;
const excessDecisions = (s: string) => `DELETE FROM ${s}.decisions WHERE seq IN (
  SELECT seq FROM ${s}.decisions WHERE seq <= (SELECT max(seq) FROM ${s}.decisions) - $1 ORDER BY seq LIMIT $2)`;

/** Deletes what ended or was decided before `before`: up to {@link PRUNE_ROWS_MAX} rows per table, oldest first. */
export async function pruneRows(database: Database, before: EpochMs): Promise<void> {
  // Actions are deleted before their episodes.
  for (const deletion of [oldActions, oldEpisodes, oldDecisions, oldHolds, oldOrders])
    await database.query(deletion(database.schema), [before, PRUNE_ROWS_MAX]);
}

/** Deletes decisions beyond {@link DECISIONS_MAX} after `added` new ones: up to twice that number, oldest first. */
export async function trimDecisions(database: Database, added: number): Promise<void> {
  await database.query(excessDecisions(database.schema), [DECISIONS_MAX, 2 * added]);
}
