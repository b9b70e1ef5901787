import { isUnfinished } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";

/**
 * The tables that commits write: their columns with the types in PostgreSQL, and the key that identifies a row. If the
 * key is empty, every row is new. `body` is the row as JSON.
 */
export const TABLES = {
  timers: {
    columns:
      "node text, policy text, state text, true_ms float8, clear_ms float8, since float8, node_created_at float8",
    key: "node, policy",
  },
  episodes: {
    columns:
      "number bigint, id text, policy text, node text, state text, opened_at float8, closed_at float8, body jsonb",
    key: "id",
  },
  actions: {
    columns:
      "number bigint, id text, episode text, policy text, node text, state text, created_at float8, over_at float8, body jsonb",
    key: "id",
  },
  decisions: { columns: "at float8, policy text, node text, episode text, verdict text, body jsonb", key: "" },
  holds: { columns: "node text, policy text, ends_at float8, body jsonb", key: "node, policy" },
  operator_commands: { columns: "at float8, node text, body jsonb", key: "" },
  facts: { columns: "key text, value text", key: "key" },
} as const;
type TableName = keyof typeof TABLES;

/** A kind of write: the table, and whether rows are deleted from it. */
export interface Write {
  readonly table: TableName;
  /** Absent if rows are added to the table, or replaced in it. */
  readonly isDelete?: true;
}

/** Every kind of write. */
export const WRITES: readonly Write[] = [
  ...(Object.keys(TABLES) as TableName[]).map((table) => ({ table })),
  ...(["timers", "holds", "facts"] as const).map((table) => ({ table, isDelete: true as const })),
];

/** Returns the names in a list of columns. */
export const namesOf = (columns: string): readonly string[] =>
  columns.split(", ").map((column) => column.split(" ", 1)[0]!);

/**
 * Returns the SQL that adds rows to a table, or replaces those with the same keys. `s` is the quoted name of the schema.
 * `rows` is SQL for the rows, with the columns in order.
 */
export function putSql(s: string, table: TableName, rows: string): string {
  const { columns, key } = TABLES[table];
  const names = namesOf(columns);
  const updates = names.filter((name) => !namesOf(key).includes(name)).map((name) => `${name} = excluded.${name}`);
  const onConflict = key === "" ? "" : `ON CONFLICT (${key}) DO UPDATE SET ${updates.join(", ")}`;
  return `INSERT INTO ${s}.${table} (${names.join(", ")}) ${rows} ${onConflict}`;
}

/** A change to one row of a table. */
export interface RowChange extends Write {
  /** The columns without `body`; only those of the key if the row is deleted. */
  readonly columns: Readonly<Record<string, string | number | null>>;
  /** The column `body`, which is stored as JSON. Absent if the table has none. */
  readonly body?: object;
}

/** Returns the change that a journal change makes to its table. Throws if it is invalid. */
export function rowChangeOf(change: JournalChange): RowChange {
  switch (change.kind) {
    case "timer": {
      const { node, policy, state, trueMs, clearMs, since, nodeCreatedAt = null } = change.row;
      const times = { true_ms: trueMs, clear_ms: clearMs, since, node_created_at: nodeCreatedAt };
      return { table: "timers", columns: { node, policy, state, ...times } };
    }
    case "timer_gone":
      return { table: "timers", columns: { node: change.node, policy: change.policy }, isDelete: true };
    case "episode": {
      const { id, policy, node, state, openedAt, closedAt } = change.row;
      const columns = { number: numberOfId(id), id, policy, node, state, opened_at: openedAt, closed_at: closedAt };
      return { table: "episodes", columns, body: change.row };
    }
    case "action": {
      const { id, episode, policy, node, state, createdAt, endedAt } = change.row;
      const overAt = isUnfinished(change.row) ? null : (endedAt ?? createdAt);
      const times = { created_at: createdAt, over_at: overAt };
      const columns = { number: numberOfId(id), id, episode, policy, node, state, ...times };
      return { table: "actions", columns, body: change.row };
    }
    case "decision": {
      const { at, policy, node, episode, verdict } = change.row;
      return { table: "decisions", columns: { at, policy, node, episode, verdict }, body: change.row };
    }
    case "command": {
      const { at, node } = change.row;
      return { table: "operator_commands", columns: { at, node }, body: change.row };
    }
    case "hold": {
      const { node, policy, until } = change.row;
      return { table: "holds", columns: { node, policy: policy ?? "", ends_at: until }, body: change.row };
    }
    case "hold_gone":
      return { table: "holds", columns: { node: change.node, policy: change.policy ?? "" }, isDelete: true };
    case "fact": {
      const { key, value } = change;
      if (value === null) return { table: "facts", columns: { key }, isDelete: true };
      return { table: "facts", columns: { key, value } };
    }
    default:
      throw new Error(`unknown kind of journal change: ${(change satisfies never as JournalChange).kind}`);
  }
}

/** Returns the number in the id of an episode or action. Throws if it has none. */
function numberOfId(id: string): number {
  const number = Number(/^(?:ep|act)-([1-9]\d*)$/.exec(id)?.[1]);
  if (!Number.isSafeInteger(number)) throw new Error(`${id} is not the id of an episode or an action`);
  return number;
}

/** Maximum number of rows that one pruning deletes from each table, which takes about 50 ms. */
export const PRUNE_ROWS_MAX = 2_000;

/** Maximum number of decisions to keep, about 200 MB. */
export const DECISIONS_MAX = 200_000;

/**
 * Returns the statements that delete rows that ended or were recorded before `$1`, up to `$2` rows of each table. `s`
 * is the quoted name of the schema. Actions are deleted before their episodes.
 */
export const deleteOldRows = (s: string): readonly string[] => [
  // Actions of an open or recent episode are kept. The row with the highest number of each table is kept, so that no
  // number is assigned twice.
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
  // A decision is recorded only when it changes, so the last one about an open episode is in effect, however old it is.
  `DELETE FROM ${s}.decisions WHERE seq IN (
     SELECT seq FROM ${s}.decisions AS old
     WHERE at < $1 AND (
       NOT EXISTS (SELECT 1 FROM ${s}.episodes WHERE id = old.episode AND closed_at IS NULL)
       OR EXISTS (SELECT 1 FROM ${s}.decisions WHERE node = old.node AND episode = old.episode AND seq > old.seq))
     ORDER BY at LIMIT $2)`,
  `DELETE FROM ${s}.holds WHERE (node, policy) IN (
     SELECT node, policy FROM ${s}.holds WHERE ends_at < $1 LIMIT $2)`,
  `DELETE FROM ${s}.operator_commands WHERE seq IN (
     SELECT seq FROM ${s}.operator_commands WHERE at < $1 ORDER BY at LIMIT $2)`,
];

/** Returns the SQL that deletes the oldest decisions beyond the newest `$1`, up to `$2` rows. */
export const deleteExcessDecisions = (s: string): string =>
  `DELETE FROM ${s}.decisions WHERE seq IN (
     SELECT seq FROM ${s}.decisions WHERE seq <= (SELECT max(seq) FROM ${s}.decisions) - $1 ORDER BY seq LIMIT $2)`;
