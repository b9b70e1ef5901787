import type { TimerRow } from "../model/remediation/episode.ts";
import type { StateRow } from "./state-rows.ts";

/** All tables of a state. */
export const STATE_TABLES = ["calls", "facts", "timers", "episodes", "actions", "decisions", "holds", "orders"];

/** A table whose rows have a time and are stored as JSON in its column `body`. */
export interface TimedTable {
  readonly table: "episodes" | "actions" | "decisions" | "orders";
  /** The kind of its rows in an exported state. */
  readonly kind: StateRow["kind"];
  /** The column with the time of a row. */
  readonly at: "opened_at" | "created_at" | "at";
  /** The column whose value grows with each new row. */
  readonly sequence: "number" | "seq";
}

/** The tables whose rows have a time, in the order in which they are exported. */
export const TIMED_TABLES = {
  episodes: { table: "episodes", kind: "episode", at: "opened_at", sequence: "number" },
  actions: { table: "actions", kind: "action", at: "created_at", sequence: "number" },
  decisions: { table: "decisions", kind: "decision", at: "at", sequence: "seq" },
  orders: { table: "orders", kind: "order", at: "at", sequence: "seq" },
} as const satisfies Readonly<Record<TimedTable["table"], TimedTable>>;

/** Returns the SQL that selects all timers. `s` is the quoted name of the schema. */
export const selectTimers = (s: string): string =>
  `SELECT policy, node, state, true_ms AS "trueMs", clear_ms AS "clearMs", since,
     node_created_at AS "nodeCreatedAt" FROM ${s}.timers`;

/** Returns the timers in the rows of {@link selectTimers}. */
export const timersOf = (rows: readonly Readonly<Record<string, unknown>>[]): TimerRow[] =>
  rows.map(({ nodeCreatedAt, ...row }) => {
    const timer = row as unknown as TimerRow;
    return nodeCreatedAt === null ? timer : { ...timer, nodeCreatedAt: Number(nodeCreatedAt) };
  });

/** Creates the error of an import into a state with rows in `table`. */
export const notEmptyError = (table: string): Error => new Error(`the state is not empty: its table ${table} has rows`);
