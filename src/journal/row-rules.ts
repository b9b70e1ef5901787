import type { Action } from "../model/remediation/episode.ts";
import type { EpochMs } from "../model/time.ts";

/** Prefix of the keys of the journal's facts. */
export const REMEDIATION_FACT_PREFIX = "warden.";

/** Maximum number of rows that a query returns, whatever its limit; reading them takes about 5 ms. */
export const QUERY_ROWS_MAX = 1_000;

/** Maximum number of rows that one pruning deletes from each table, which takes about 50 ms. */
export const PRUNE_ROWS_MAX = 2_000;

/** Maximum number of decisions to keep, about 200 MB. */
export const DECISIONS_MAX = 200_000;

/** Final states of an action. */
const FINISHED_STATES: ReadonlySet<Action["state"]> = new Set(["ended", "withdrawn", "rejected", "lapsed"]);

/** When an action ended in any way; null: it has not ended. */
export const endOf = ({ state, endedAt, createdAt }: Action): EpochMs | null =>
  FINISHED_STATES.has(state) ? (endedAt ?? createdAt) : null;

/** The number in the id of an episode or action. Throws if it has none. */
export function numberOfId(id: string): number {
  const number = Number(/^(?:ep|act)-([1-9]\d*)$/.exec(id)?.[1]);
  if (!Number.isSafeInteger(number)) throw new Error(`${id} is not the id of an episode or an action`);
  return number;
}

/** Throws if a fact's key lacks the journal's prefix: such a fact would never be loaded. */
export function assertJournalFact(key: string): void {
  if (!key.startsWith(REMEDIATION_FACT_PREFIX))
    throw new Error(`the key of a journal fact must begin with ${REMEDIATION_FACT_PREFIX}: ${key}`);
}

/** The limit of a query, from 0 to {@link QUERY_ROWS_MAX}. */
export const rowLimit = (limit: number): number => Math.min(Math.max(0, Math.floor(limit)), QUERY_ROWS_MAX);
