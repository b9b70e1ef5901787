import { type Journal, type JournalChange, rowKeyOf } from "../../model/remediation/journal.ts";
import type { EpochMs } from "../../model/time.ts";
import {
  DECISIONS_MAX,
  deleteExcessDecisions,
  deleteOldRows,
  namesOf,
  PRUNE_ROWS_MAX,
  putSql,
  type RowChange,
  rowChangeOf,
  TABLES,
  WRITES,
  type Write,
} from "../row-changes.ts";
import { createRowQueries, loadContents } from "../row-queries.ts";
import type { StateReader } from "../state-export.ts";
import { type Database, READ_SNAPSHOT, toJsonText } from "./database.ts";
import { type Lease, SHORT_LOCK_WAIT } from "./lease.ts";

/** Decisions are trimmed after this many new ones, so that a commit needs one round trip. */
const TRIM_INTERVAL_DECISIONS = 1_000;

/**
 * Creates the journal in a database whose schema is current. Commits are fenced: they reject with `LeadershipLost` once
 * another daemon has taken the lease, and write nothing.
 *
 * A commit whose connection is lost may still be written until a later commit is (see `last_commit` in the schema).
 * Everything that is recorded before an action must therefore be valid even if the action was not taken.
 */
export function createPostgresJournal(database: Database, lease: Lease): Journal {
  const { schema } = database;
  const statement = commitStatement(schema);
  let number = 0;
  let untrimmed = 0;

  async function commit(changes: readonly JournalChange[]): Promise<void> {
    if (changes.length === 0) return;
    const parameters = commitParameters(changes);
    const epoch = lease.requireEpoch();
    number++;
    const [result] = await database.query(statement, [epoch, number, ...parameters]);
    if (result?.written === true) trimDecisions(changes);
    else if (result?.fenced === true) throw new Error("a later commit was written first");
    else if (Number(result?.epoch) === epoch) throw new Error("the lease has ended and is not renewed yet");
    else throw lease.loseLeadership();
  }

  function trimDecisions(changes: readonly JournalChange[]): void {
    untrimmed += changes.filter(({ kind }) => kind === "decision").length;
    if (untrimmed < TRIM_INTERVAL_DECISIONS) return;
    // The commit does not wait for this. Up to twice as many are deleted as were added, to catch up after a failure.
    database.query(deleteExcessDecisions(schema), [DECISIONS_MAX, 2 * untrimmed]).catch(() => undefined);
    untrimmed = 0;
  }

  async function prune(before: EpochMs): Promise<void> {
    for (const sql of deleteOldRows(schema)) await database.query(sql, [before, PRUNE_ROWS_MAX]);
  }

  return { ...createJournalQueries(database), commit, prune };
}

/**
 * Creates the queries of a journal, in a database whose schema is current. Those of rows, which users make, have
 * connections of their own ({@link Database.history}).
 */
export const createJournalQueries = (database: Database): StateReader & Pick<Journal, "load"> => {
  const { decisions, actions, episodes, operatorCommands } = createRowQueries(database.history(), database.schema);
  return {
    ...createRowQueries(database, database.schema),
    decisions,
    actions,
    episodes,
    operatorCommands,
    load: (since) =>
      database.transaction((connection) => loadContents(connection, database.schema, since), READ_SNAPSHOT),
  };
};

/**
 * Returns the parameters of {@link commitStatement} after the epoch and the number: for each of {@link WRITES} a JSON
 * array. Only the last change of each row is written. Throws for invalid changes.
 */
export function commitParameters(changes: readonly JournalChange[]): readonly string[] {
  const last = new Map<string | number, RowChange>();
  for (const [index, change] of changes.entries()) last.set(rowKeyOf(change) ?? index, rowChangeOf(change));
  return WRITES.map(({ table, isDelete }) => {
    const own = [...last.values()].filter((row) => row.table === table && row.isDelete === isDelete);
    return toJsonText(own.map(({ columns, body }) => ({ ...columns, body })));
  });
}

/**
 * Returns the statement of a commit to the schema `s`, which is quoted. One statement is one transaction and one round
 * trip. It writes nothing unless `$1` is the epoch of a lease that has not ended, and no later commit than `$2` was
 * written. FOR SHARE makes a daemon that takes over the lease wait for this commit. It returns `fenced`, whether the
 * lease was held; `written`, whether the changes were written; and the current `epoch`.
 */
export const commitStatement = (s: string): string => `
  WITH fence AS MATERIALIZED (
    SELECT epoch FROM ${s}.leases WHERE epoch = $1 AND expires_at > clock_timestamp() FOR SHARE
  ), latest AS (
    UPDATE ${s}.last_commit SET epoch = $1, number = $2
    WHERE EXISTS (SELECT FROM fence) AND (epoch, number) < ($1::bigint, $2::bigint) AND ${SHORT_LOCK_WAIT} RETURNING number
  ), ${WRITES.map((write, index) => `${write.table}_${write.isDelete ? "gone" : "put"} AS (${writeSql(s, write, index + 3)})`).join(", ")}
  SELECT EXISTS (SELECT FROM fence) AS fenced, EXISTS (SELECT FROM latest) AS written,
    (SELECT max(epoch) FROM ${s}.leases) AS epoch`;

/** Returns the SQL of one kind of write, whose rows are the JSON array in a parameter. Rows are added in its order. */
function writeSql(s: string, { table, isDelete }: Write, parameter: number): string {
  const { columns, key } = TABLES[table];
  const rows = `jsonb_to_recordset($${parameter}::jsonb)`;
  if (isDelete) {
    const isInRows = `(${key}) IN (SELECT ${key} FROM ${rows} AS r(${columns}))`;
    return `DELETE FROM ${s}.${table} WHERE ${isInRows} AND EXISTS (SELECT FROM latest)`;
  }
  const names = namesOf(columns).join(", ");
  const inOrder = `ROWS FROM (${rows} AS (${columns})) WITH ORDINALITY AS r(${names}, n)`;
  return putSql(s, table, `SELECT ${names} FROM ${inOrder} WHERE EXISTS (SELECT FROM latest) ORDER BY n`);
}
