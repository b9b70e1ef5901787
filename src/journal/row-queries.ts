import type { Action, Decision, Episode, NodeHold, TimerRow } from "../model/remediation/episode.ts";
import type { JournalContents, JournalQuery } from "../model/remediation/journal.ts";
import type { OperatorCommandRow } from "../model/remediation/operator-command.ts";
import type { EpochMs } from "../model/time.ts";
import type { StateReader, StateRow } from "./state-export.ts";

/** A row of a result. */
export type Row = Readonly<Record<string, unknown>>;

/** Runs statements that are valid in both SQLite and PostgreSQL. Their parameters are `$1`, `$2` and so on. */
export interface Queryable {
  query(sql: string, parameters?: readonly (string | number)[]): Promise<readonly Row[]>;
}

/** Maximum number of rows that a query returns, whatever its limit; reading them takes about 5 ms. */
export const QUERY_ROWS_MAX = 1_000;

/** Number of rows that an export reads at once. */
const EXPORTED_ROWS_AT_ONCE = 2_000;

/**
 * The tables whose rows have a time, and are stored as JSON in the column `body`, in the order in which they are
 * exported: the kind of their rows in an exported state, the column with the time of a row, and the one whose value
 * increases with each new row.
 */
const TIMED_TABLES = {
  episodes: { kind: "episode", at: "opened_at", sequence: "number" },
  actions: { kind: "action", at: "created_at", sequence: "number" },
  decisions: { kind: "decision", at: "at", sequence: "seq" },
  operator_commands: { kind: "command", at: "at", sequence: "seq" },
} as const;
type TimedTable = keyof typeof TIMED_TABLES;

/**
 * Creates queries on a connection, which reject with the database's errors. `s` is the quoted name of the schema. If
 * others may write to the database, `rows` needs a connection in a transaction with one snapshot.
 */
export function createRowQueries(connection: Queryable, s: string): StateReader {
  const timed =
    <T>(table: TimedTable) =>
    async (query: JournalQuery): Promise<T[]> => {
      const { sql, parameters } = selectTimed(s, table, query);
      return bodiesOf<T>(await connection.query(sql, parameters));
    };
  const facts = async () => {
    const rows = await connection.query(`SELECT key, value FROM ${s}.facts`);
    return new Map(rows.map(({ key, value }) => [String(key), String(value)]));
  };
  const calls = async () => {
    const rows = await connection.query(`SELECT day, used FROM ${s}.calls ORDER BY day`);
    return new Map(rows.map(({ day, used }) => [String(day), Number(used)]));
  };
  const commands = timed<OperatorCommandRow>("operator_commands");
  return {
    decisions: timed<Decision>("decisions"),
    actions: timed<Action>("actions"),
    episodes: timed<Episode>("episodes"),
    operatorCommands: ({ policy: _, ...query }) => commands(query),
    timers: async (node) => timersOf(await connection.query(`${selectTimers(s)} WHERE node = $1`, [node])),
    holds: async (node) =>
      bodiesOf<NodeHold>(await connection.query(`SELECT body FROM ${s}.holds WHERE node = $1`, [node])),
    facts,
    rows: () => exportRows(connection, s),
    calls,
    callsSince: async (day) => callsSince(await calls(), day),
  };
}

/** Returns the sum of the calls by day (UTC) on and after `day`. */
export const callsSince = (used: ReadonlyMap<string, number>, day: string): number =>
  [...used].reduce((sum, [countedDay, calls]) => (countedDay >= day ? sum + calls : sum), 0);

/**
 * Loads the content of the journal. `s` is the quoted name of the schema. If others may write to the database, the
 * connection must be in a transaction with one snapshot; the same connection must not write meanwhile. The rows are not
 * limited, since every open episode and every attempt must be loaded: open ones are bounded by the fleet and its
 * policies, attempts by the limits on actions and retries, and by pruning. A closed episode is loaded if it was closed at
 * or after `since`, and `countsAsAttempt` is true.
 */
export async function loadContents(connection: Queryable, s: string, since: EpochMs): Promise<JournalContents> {
  // Sorted here, because with ORDER BY either database may read the whole table in order instead of using the indexes
  // of the conditions.
  const inOrder = (rows: readonly Row[]) => rows.toSorted((a, b) => Number(a.number) - Number(b.number));
  const episodes = await connection.query(
    `SELECT number, body FROM ${s}.episodes WHERE closed_at IS NULL
       OR (closed_at >= $1 AND (state = 'given_up' OR CAST(body ->> 'acted' AS integer) > 0))`,
    [since],
  );
  const actions = await connection.query(
    `SELECT number, body FROM ${s}.actions
     WHERE over_at IS NULL OR created_at >= $1 OR episode IN (SELECT id FROM ${s}.episodes WHERE closed_at IS NULL)`,
    [since],
  );
  const [last] = await connection.query(
    `SELECT (SELECT max(number) FROM ${s}.episodes) AS episode, (SELECT max(number) FROM ${s}.actions) AS action`,
  );
  return {
    timers: timersOf(await connection.query(selectTimers(s))),
    episodes: bodiesOf<Episode>(inOrder(episodes)),
    actions: bodiesOf<Action>(inOrder(actions)),
    holds: bodiesOf<NodeHold>(await connection.query(`SELECT body FROM ${s}.holds`)),
    facts: await createRowQueries(connection, s).facts(),
    lastNumber: Math.max(Number(last?.episode), Number(last?.action)),
  };
}

async function* exportRows(connection: Queryable, s: string): AsyncGenerator<StateRow> {
  const { calls, facts } = createRowQueries(connection, s);
  for (const [day, used] of await calls()) yield { kind: "calls", day, used };
  for (const [key, value] of sortedBy(await facts(), ([key]) => key)) yield { kind: "fact", key, value };
  const timers = timersOf(await connection.query(selectTimers(s)));
  for (const row of sortedBy(timers, keyOfRow)) yield { kind: "timer", row };
  for (const [table, { kind, sequence: key }] of Object.entries(TIMED_TABLES)) {
    let last = 0;
    for (;;) {
      const sql = `SELECT ${key} AS key, body FROM ${s}.${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT $2`;
      const rows = await connection.query(sql, [last, EXPORTED_ROWS_AT_ONCE]);
      for (const row of bodiesOf(rows)) yield { kind, row } as StateRow;
      if (rows.length < EXPORTED_ROWS_AT_ONCE) break;
      last = Number(rows.at(-1)!.key);
    }
  }
  const holds = bodiesOf<NodeHold>(await connection.query(`SELECT body FROM ${s}.holds`));
  for (const row of sortedBy(holds, keyOfRow)) yield { kind: "hold", row };
}

const keyOfRow = ({ node, policy }: TimerRow | NodeHold): string => `${node}\0${policy ?? ""}`;

/** Sorts rows, so that both databases export them in the same order. */
const sortedBy = <T>(rows: Iterable<T>, keyOf: (row: T) => string): T[] =>
  [...rows].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));

const selectTimers = (s: string): string =>
  `SELECT policy, node, state, true_ms AS "trueMs", clear_ms AS "clearMs", since,
     node_created_at AS "nodeCreatedAt" FROM ${s}.timers`;

const timersOf = (rows: readonly Row[]): TimerRow[] =>
  rows.map(({ nodeCreatedAt, ...row }) => {
    const timer = row as unknown as TimerRow;
    return nodeCreatedAt === null ? timer : { ...timer, nodeCreatedAt: Number(nodeCreatedAt) };
  });

/** Returns the bodies of rows, which are texts in SQLite. */
const bodiesOf = <T>(rows: readonly Row[]): T[] =>
  rows.map(({ body }) => (typeof body === "string" ? JSON.parse(body) : body) as T);

/**
 * Returns a query and its parameters. A node has few rows, so its index is used even if a policy is given as well:
 * `|| ''` keeps SQLite from using the index of the policy. A negative limit, which SQLite would treat as none, becomes 0.
 */
function selectTimed(s: string, table: TimedTable, { node, policy, until, limit }: JournalQuery) {
  const { at, sequence } = TIMED_TABLES[table];
  const parameters: (string | number)[] = [];
  const ofPolicy = node === undefined ? "policy =" : "policy || '' =";
  const conditions = Object.entries({ "node =": node, [ofPolicy]: policy, [`${at} <=`]: until }).flatMap(
    ([condition, value]) => (value === undefined ? [] : [`${condition} $${parameters.push(value)}`]),
  );
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const rowsMax = `$${parameters.push(Math.min(Math.max(0, Math.floor(limit)), QUERY_ROWS_MAX))}`;
  const sql = `SELECT body FROM ${s}.${table} ${where} ORDER BY ${at} DESC, ${sequence} DESC LIMIT ${rowsMax}`;
  return { sql, parameters };
}
