import { errorMessage, fail, ok, type Result } from "../../base/result.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import { isJournalFact } from "../row-changes.ts";
import { notEmptyError, STATE_TABLES, type StateRow } from "../state-rows.ts";
import { type Connection, type DatabaseDeps, toJsonText } from "./database.ts";
import { commitParameters, commitStatement } from "./journal.ts";
import { openMigratedDatabase } from "./store.ts";

/** Number of rows that are written at once. */
const ROWS_AT_ONCE = 2_000;

/**
 * Writes rows in one transaction, during which the lease is held. Fails, and writes nothing, if a daemon leads, the
 * schema has rows, or a row is invalid.
 */
export async function importState(deps: DatabaseDeps, rows: readonly StateRow[]): Promise<Result<void, string>> {
  const opened = await openMigratedDatabase(deps);
  if (!opened.ok) return fail(opened.error.message);
  const database = opened.value;
  try {
    await database.transaction((connection) => writeAll(connection, database.schema, rows));
    return ok(undefined);
  } catch (error) {
    return fail(errorMessage(error));
  } finally {
    await database.close();
  }
}

async function writeAll(connection: Connection, s: string, rows: readonly StateRow[]): Promise<void> {
  const [lease] = await connection.query(
    `INSERT INTO ${s}.leases AS held (holder, epoch, expires_at) VALUES ('proxywarden state import', 1, 'infinity')
     ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, epoch = held.epoch + 1, expires_at = excluded.expires_at
     WHERE held.expires_at <= clock_timestamp() RETURNING epoch`,
  );
  if (lease === undefined) throw new Error("a daemon is using the state; stop it first");
  for (const table of STATE_TABLES) {
    const [row] = await connection.query(`SELECT FROM ${s}.${table} LIMIT 1`);
    if (row !== undefined) throw notEmptyError(table);
  }
  const isOther = (row: StateRow) => row.kind === "fact" && !isJournalFact(row.key);
  const changes = rows.filter((row): row is StateRow & JournalChange => row.kind !== "calls" && !isOther(row));
  for (let from = 0, number = 1; from < changes.length; from += ROWS_AT_ONCE, number++) {
    const parameters = commitParameters(changes.slice(from, from + ROWS_AT_ONCE));
    const [written] = await connection.query(commitStatement(s), [Number(lease.epoch), number, ...parameters]);
    if (written?.placed !== true) throw new Error("the rows were not written");
  }
  const calls = rows.filter(({ kind }) => kind === "calls");
  const sqlOfCalls = `INSERT INTO ${s}.calls SELECT r.* FROM jsonb_to_recordset($1::jsonb) AS r(day text, used bigint)`;
  await connection.query(sqlOfCalls, [toJsonText(calls)]);
  const sqlOfFacts = `INSERT INTO ${s}.facts SELECT r.* FROM jsonb_to_recordset($1::jsonb) AS r(key text, value text)`;
  await connection.query(sqlOfFacts, [toJsonText(rows.filter(isOther))]);
  await connection.query(`UPDATE ${s}.leases SET expires_at = '-infinity'`);
}
