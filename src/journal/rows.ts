import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { NodeId } from "../model/node.ts";
import type { Decision } from "../model/remediation/decision.ts";
import type { Action, Episode, NodeHold, TimerRow } from "../model/remediation/episode.ts";
import type { JournalQuery } from "../model/remediation/journal.ts";
import type { OperatorCommandRow } from "../model/remediation/operator-command.ts";
import type { EpochMs } from "../model/time.ts";

/** Facts of the journal begin so; others are of other parts. */
export const REMEDIATION_FACT_PREFIX = "warden.";
/** The first text after all that begin with {@link REMEDIATION_FACT_PREFIX}. */
const REMEDIATION_FACT_PREFIX_END = "warden/";

/** Most rows that one query gives, whatever was asked for: some 5 ms of reading. */
export const QUERY_ROWS_MAX = 1_000;

/** A table of rows in time, and the columns that they stand in. */
interface TimedTable {
  readonly table: "decisions" | "actions" | "episodes" | "orders";
  readonly at: "at" | "created_at" | "opened_at";
  readonly sequence: "seq" | "number";
}

/** The journal's rows, as whoever holds the database may read them. All throw SQLite's error. */
export interface RowReader {
  decisions(query: JournalQuery): readonly Decision[];
  actions(query: JournalQuery): readonly Action[];
  episodes(query: JournalQuery): readonly Episode[];
  operatorCommands(query: JournalQuery): readonly OperatorCommandRow[];
  /** Of one node, or all. */
  timers(node?: NodeId): readonly TimerRow[];
  /** Of one node, or all. */
  holds(node?: NodeId): readonly NodeHold[];
  facts(): ReadonlyMap<string, string>;
  /** Open ones, and those that closed at or after `since`; in the order of their numbers. */
  episodesSince(since: EpochMs): readonly Episode[];
  /** Those not over, those of open episodes, and those created at or after `since`; in the order of their numbers. */
  actionsSince(since: EpochMs): readonly Action[];
  /** The greatest number of an episode or action; 0: none yet. */
  lastNumber(): number;
}

/** Reads the journal in `database`, which has its tables. */
export function createRowReader(database: DatabaseSync): RowReader {
  const statement = createStatementCache(database);
  const timed =
    <T>(table: TimedTable) =>
    (query: JournalQuery): T[] =>
      parseBodies<T>(statement(selectTimed(table, query)).all(...parametersOf(query)));
  const ofNode = (select: string, node: NodeId | undefined) =>
    node === undefined ? statement(select).all() : statement(`${select} WHERE node = ?`).all(node);
  return {
    decisions: timed<Decision>({ table: "decisions", at: "at", sequence: "seq" }),
    actions: timed<Action>({ table: "actions", at: "created_at", sequence: "number" }),
    episodes: timed<Episode>({ table: "episodes", at: "opened_at", sequence: "number" }),
    operatorCommands: ({ policy: _, ...query }) =>
      timed<OperatorCommandRow>({ table: "orders", at: "at", sequence: "seq" })(query),
    timers: (node) =>
      ofNode(SELECT_TIMERS, node).map(({ nodeCreatedAt, ...row }) => {
        const timer = { ...row } as unknown as TimerRow;
        return nodeCreatedAt === null ? timer : { ...timer, nodeCreatedAt: Number(nodeCreatedAt) };
      }),
    holds: (node) => parseBodies<NodeHold>(ofNode("SELECT body FROM holds", node)),
    facts: () => {
      const rows = statement("SELECT key, value FROM facts WHERE key >= ? AND key < ?").all(
        REMEDIATION_FACT_PREFIX,
        REMEDIATION_FACT_PREFIX_END,
      );
      return new Map(rows.map(({ key, value }) => [String(key), String(value)]));
    },
    episodesSince: (since) => parseBodies<Episode>(statement(EPISODES_SINCE).all(since)),
    actionsSince: (since) => parseBodies<Action>(statement(ACTIONS_SINCE).all(since)),
    lastNumber: () => Number(statement(LAST_NUMBER).get()?.number),
  };
}

const SELECT_TIMERS = `SELECT policy, node, state, true_ms AS "trueMs", clear_ms AS "clearMs", since,
  node_created_at AS "nodeCreatedAt" FROM timers`;
// A plus keeps a column from leading the search: +number, so that the rows are found by the conditions, not by reading
// all in order.
const EPISODES_SINCE = "SELECT body FROM episodes WHERE closed_at IS NULL OR closed_at >= ? ORDER BY +number";
const ACTIONS_SINCE = `SELECT body FROM actions
  WHERE over_at IS NULL OR created_at >= ? OR episode IN (SELECT id FROM episodes WHERE closed_at IS NULL)
  ORDER BY +number`;
const LAST_NUMBER = `SELECT MAX(
    COALESCE((SELECT MAX(number) FROM episodes), 0),
    COALESCE((SELECT MAX(number) FROM actions), 0)
  ) AS number`;

/** The rows of a node are few, so a node leads the search even where a policy is asked for as well. */
function selectTimed({ table, at, sequence }: TimedTable, { node, policy, until }: JournalQuery): string {
  const conditions = [
    ...(node === undefined ? [] : ["node = ?"]),
    ...(policy === undefined ? [] : [node === undefined ? "policy = ?" : "+policy = ?"]),
    ...(until === undefined ? [] : [`${at} <= ?`]),
  ];
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return `SELECT body FROM ${table} ${where} ORDER BY ${at} DESC, ${sequence} DESC LIMIT ?`;
}

/** In the order of the placeholders. A negative limit would be none to SQLite. */
function parametersOf({ node, policy, until, limit }: JournalQuery): (string | number)[] {
  const asked = [node, policy, until].filter((each) => each !== undefined);
  return [...asked, Math.min(Math.max(0, Math.floor(limit)), QUERY_ROWS_MAX)];
}

const parseBodies = <T>(rows: readonly Record<string, unknown>[]): T[] =>
  rows.map(({ body }) => JSON.parse(String(body)) as T);

/** Each statement is prepared when it is first needed, and kept: there are some thirty. */
function createStatementCache(database: DatabaseSync): (sql: string) => StatementSync {
  const statements = new Map<string, StatementSync>();
  return (sql) => {
    const known = statements.get(sql) ?? database.prepare(sql);
    statements.set(sql, known);
    return known;
  };
}
