import type { Action } from "../model/remediation/episode.ts";
import type { EpochMs } from "../model/time.ts";

/** Prefix of the keys of the journal's facts. */
export const REMEDIATION_FACT_PREFIX = "warden.";

/** Maximum number of rows that a query returns, whatever its limit; reading them takes about 5 ms. */
export const QUERY_ROWS_MAX = 1_000;

/** Final states of an action. */
const FINISHED_STATES: ReadonlySet<Action["state"]> = new Set(["ended", "withdrawn", "rejected", "lapsed"]);

/** Returns when an action ended in any way, or null if it has not ended. */
export const endOf = ({ state, endedAt, createdAt }: Action): EpochMs | null =>
  FINISHED_STATES.has(state) ? (endedAt ?? createdAt) : null;

/** Returns the number in the id of an episode or action. Throws if it has none. */
export function numberOfId(id: string): number {
  const number = Number(/^(?:ep|act)-([1-9]\d*)$/.exec(id)?.[1]);
  if (!Number.isSafeInteger(number)) throw new Error(`${id} is not the id of an episode or an action`);
  return number;
}

/** Returns whether a fact is one of the journal's. */
export const isJournalFact = (key: string): boolean => key.startsWith(REMEDIATION_FACT_PREFIX);

/** Throws if a fact is not one of the journal's, because it would never be loaded. */
export function assertJournalFact(key: string): void {
  if (!isJournalFact(key))
    throw new Error(`the key of a journal fact must begin with ${REMEDIATION_FACT_PREFIX}: ${key}`);
}

/** Returns the limit of a query, from 0 to {@link QUERY_ROWS_MAX}. */
export const rowLimit = (limit: number): number => Math.min(Math.max(0, Math.floor(limit)), QUERY_ROWS_MAX);

/** Returns the sum of the calls by day (UTC) on and after `day`. */
export const callsSince = (used: ReadonlyMap<string, number>, day: string): number =>
  [...used].reduce((sum, [countedDay, calls]) => (countedDay >= day ? sum + calls : sum), 0);
