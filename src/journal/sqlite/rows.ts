import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { NodeId } from "../../model/node.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, Episode, NodeHold, TimerRow } from "../../model/remediation/episode.ts";
import type { JournalQueries, JournalQuery } from "../../model/remediation/journal.ts";
import type { OperatorCommandRow } from "../../model/remediation/operator-command.ts";
import type { EpochMs } from "../../model/time.ts";
import { REMEDIATION_FACT_PREFIX, rowLimit } from "../row-rules.ts";
import { selectTimers, TIMED_TABLES, type TimedTable, timersOf } from "../tables.ts";

/** The name that SQLite gives to the schema of a database. */
export const SCHEMA = "main";

/** The first key after all keys with {@link REMEDIATION_FACT_PREFIX}. */
const REMEDIATION_FACT_PREFIX_END = "warden/";

/** Queries of the journal. All throw SQLite's errors. */
export interface RowReader {
  decisions(query: JournalQuery): readonly Decision[];
  actions(query: JournalQuery): readonly Action[];
  episodes(query: JournalQuery): readonly Episode[];
  operatorCommands(query: JournalQuery): readonly OperatorCommandRow[];
  /** Timers of one node, or of all. */
  timers(node?: NodeId): readonly TimerRow[];
  /** Holds of one node, or of all. */
  holds(node?: NodeId): readonly NodeHold[];
  /** All facts of the journal. */
  facts(): ReadonlyMap<string, string>;
  /** The value of any fact, or null if there is none. */
  fact(key: string): string | null;
  /** Number of calls made on or after `day` (UTC). */
  callsSince(day: string): number;
  /** Episodes that are open, or were closed at or after `since`, by number. */
  episodesSince(since: EpochMs): readonly Episode[];
  /** Actions that are not over, belong to an open episode, or were created at or after `since`, by number. */
  actionsSince(since: EpochMs): readonly Action[];
  /** The highest number of an episode or action, 0 if there is none. */
  lastNumber(): number;
}

/** Creates queries of the journal in `database`, whose schema must be current. */
export function createRowReader(database: DatabaseSync): RowReader {
  const statement = createStatementCache(database);
  const timed =
    <T>(table: TimedTable) =>
    (query: JournalQuery): T[] =>
      parseBodies<T>(statement(selectTimed(table, query)).all(...parametersOf(query)));
  const ofNode = (select: string, node: NodeId | undefined) =>
    node === undefined ? statement(select).all() : statement(`${select} WHERE node = ?`).all(node);
  return {
    decisions: timed<Decision>(TIMED_TABLES.decisions),
    actions: timed<Action>(TIMED_TABLES.actions),
    episodes: timed<Episode>(TIMED_TABLES.episodes),
    operatorCommands: ({ policy: _, ...query }) => timed<OperatorCommandRow>(TIMED_TABLES.orders)(query),
    timers: (node) => timersOf(ofNode(selectTimers(SCHEMA), node)),
    holds: (node) => parseBodies<NodeHold>(ofNode("SELECT body FROM holds", node)),
    facts: () => {
      const rows = statement("SELECT key, value FROM facts WHERE key >= ? AND key < ?").all(
        REMEDIATION_FACT_PREFIX,
        REMEDIATION_FACT_PREFIX_END,
      );
      return new Map(rows.map(({ key, value }) => [String(key), String(value)]));
    },
    fact: (key) => {
      const value = statement("SELECT value FROM facts WHERE key = ?").get(key)?.value;
      return value === undefined ? null : String(value);
    },
    callsSince: (day) => Number(statement("SELECT TOTAL(used) AS used FROM calls WHERE day >= ?").get(day)?.used),
    episodesSince: (since) => parseBodies<Episode>(statement(EPISODES_SINCE).all(since)),
    actionsSince: (since) => parseBodies<Action>(statement(ACTIONS_SINCE).all(since)),
    lastNumber: () => Number(statement(LAST_NUMBER).get()?.number),
  };
}

/** Returns the queries of `rows` as promises. */
export const queriesOver = (rows: RowReader): JournalQueries => ({
  decisions: async (query) => rows.decisions(query),
  actions: async (query) => rows.actions(query),
  episodes: async (query) => rows.episodes(query),
  operatorCommands: async (query) => rows.operatorCommands(query),
  facts: async () => rows.facts(),
});

// A plus keeps SQLite from using the index of a column: +number makes it search by the conditions instead of reading
// all rows in order.
const EPISODES_SINCE = "SELECT body FROM episodes WHERE closed_at IS NULL OR closed_at >= ? ORDER BY +number";
const ACTIONS_SINCE = `SELECT body FROM actions
  WHERE over_at IS NULL OR created_at >= ? OR episode IN (SELECT id FROM episodes WHERE closed_at IS NULL)
  ORDER BY +number`;
const LAST_NUMBER = `SELECT MAX(
    COALESCE((SELECT MAX(number) FROM episodes), 0),
    COALESCE((SELECT MAX(number) FROM actions), 0)
  ) AS number`;

/** Returns a query. A node has few rows, so the index of the node is used even if a policy is given as well. */
function selectTimed({ table, at, sequence }: TimedTable, { node, policy, until }: JournalQuery): string {
  const conditions = [
    ...(node === undefined ? [] : ["node = ?"]),
    ...(policy === undefined ? [] : [node === undefined ? "policy = ?" : "+policy = ?"]),
    ...(until === undefined ? [] : [`${at} <= ?`]),
  ];
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return `SELECT body FROM ${table} ${where} ORDER BY ${at} DESC, ${sequence} DESC LIMIT ?`;
}

/** Returns the values of the placeholders, in order. SQLite would treat a negative limit as no limit. */
function parametersOf({ node, policy, until, limit }: JournalQuery): (string | number)[] {
  const conditions = [node, policy, until].filter((condition) => condition !== undefined);
  return [...conditions, rowLimit(limit)];
}

const parseBodies = <T>(rows: readonly Record<string, unknown>[]): T[] =>
  rows.map(({ body }) => JSON.parse(String(body)) as T);

/** Prepares each statement on first use. There are about thirty. */
function createStatementCache(database: DatabaseSync): (sql: string) => StatementSync {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    const statement = statements.get(sql) ?? database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
}
