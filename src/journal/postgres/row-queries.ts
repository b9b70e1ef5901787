import type { NodeId } from "../../model/node.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, Episode, NodeHold, TimerRow } from "../../model/remediation/episode.ts";
import type { Journal, JournalContents, JournalQueries, JournalQuery } from "../../model/remediation/journal.ts";
import type { OperatorCommandRow } from "../../model/remediation/operator-command.ts";
import type { EpochMs } from "../../model/time.ts";
import { callsSince, REMEDIATION_FACT_PREFIX, rowLimit } from "../row-rules.ts";
import { selectTimers, TIMED_TABLES, type TimedTable, timersOf } from "../tables.ts";
import { type Connection, type Database, type Parameters, READ_SNAPSHOT, type Row } from "./database.ts";

/** Queries of the journal. All reject with the database's errors. */
export interface RowQueries extends JournalQueries {
  timers(node: NodeId): Promise<readonly TimerRow[]>;
  holds(node: NodeId): Promise<readonly NodeHold[]>;
  /** All facts, including those that are not the journal's. */
  allFacts(): Promise<ReadonlyMap<string, string>>;
  /** Calls by day (UTC). */
  calls(): Promise<ReadonlyMap<string, number>>;
  /** Number of calls made on or after `day` (UTC). */
  callsSince(day: string): Promise<number>;
}

/** Creates queries on a connection. `s` is the quoted name of the schema. */
export function createRowQueries(connection: Connection, s: string): RowQueries {
  const timed =
    <T>(table: TimedTable) =>
    async (query: JournalQuery): Promise<T[]> => {
      const { sql, parameters } = selectTimed(s, table, query);
      return bodiesOf<T>(await connection.query(sql, parameters));
    };
  const facts = async (prefix: string) => {
    const rows = await connection.query(
      `SELECT key, value FROM ${s}.facts WHERE starts_with(key, $1) ORDER BY key COLLATE "C"`,
      [prefix],
    );
    return new Map(rows.map(({ key, value }) => [String(key), String(value)]));
  };
  const calls = async () => {
    const rows = await connection.query(`SELECT day, used FROM ${s}.calls ORDER BY day`);
    return new Map(rows.map(({ day, used }) => [String(day), Number(used)]));
  };
  const orders = timed<OperatorCommandRow>(TIMED_TABLES.orders);
  return {
    decisions: timed<Decision>(TIMED_TABLES.decisions),
    actions: timed<Action>(TIMED_TABLES.actions),
    episodes: timed<Episode>(TIMED_TABLES.episodes),
    operatorCommands: ({ policy: _, ...query }) => orders(query),
    timers: async (node) => timersOf(await connection.query(`${selectTimers(s)} WHERE node = $1`, [node])),
    holds: async (node) =>
      bodiesOf<NodeHold>(await connection.query(`SELECT body FROM ${s}.holds WHERE node = $1`, [node])),
    facts: () => facts(REMEDIATION_FACT_PREFIX),
    allFacts: () => facts(""),
    calls,
    callsSince: async (day) => callsSince(await calls(), day),
  };
}

/** Creates the reading part of a journal, in a database whose schema is current. */
export function createJournalQueries(database: Database): RowQueries & Pick<Journal, "load"> {
  const { schema } = database;
  return {
    ...createRowQueries(database, schema),
    load: (closedSince) =>
      database.transaction((connection) => loadContents(connection, schema, closedSince), READ_SNAPSHOT),
  };
}

/**
 * Loads the content of the journal. `s` is the quoted name of the schema. The connection should be in a transaction
 * with one snapshot.
 */
async function loadContents(connection: Connection, s: string, since: EpochMs): Promise<JournalContents> {
  const timers = await connection.query(selectTimers(s));
  const episodes = await connection.query(
    `SELECT body FROM ${s}.episodes WHERE closed_at IS NULL OR closed_at >= $1 ORDER BY number`,
    [since],
  );
  const actions = await connection.query(
    `SELECT body FROM ${s}.actions
     WHERE over_at IS NULL OR created_at >= $1 OR episode IN (SELECT id FROM ${s}.episodes WHERE closed_at IS NULL)
     ORDER BY number`,
    [since],
  );
  const holds = await connection.query(`SELECT body FROM ${s}.holds`);
  const [last] = await connection.query(
    `SELECT GREATEST((SELECT max(number) FROM ${s}.episodes), (SELECT max(number) FROM ${s}.actions), 0) AS number`,
  );
  return {
    timers: timersOf(timers),
    episodes: bodiesOf<Episode>(episodes),
    actions: bodiesOf<Action>(actions),
    holds: bodiesOf<NodeHold>(holds),
    facts: await createRowQueries(connection, s).facts(),
    lastNumber: Number(last?.number),
  };
}

const bodiesOf = <T>(rows: readonly Row[]): T[] => rows.map(({ body }) => body as T);

function selectTimed(
  s: string,
  { table, at, sequence }: TimedTable,
  { node, policy, until, limit }: JournalQuery,
): { readonly sql: string; readonly parameters: Parameters } {
  const parameters: (string | number)[] = [];
  const conditions = Object.entries({ "node =": node, "policy =": policy, [`${at} <=`]: until }).flatMap(
    ([condition, value]) => (value === undefined ? [] : [`${condition} $${parameters.push(value)}`]),
  );
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const sql = `SELECT body FROM ${s}.${table} ${where} ORDER BY ${at} DESC, ${sequence} DESC LIMIT $${parameters.push(rowLimit(limit))}`;
  return { sql, parameters };
}
