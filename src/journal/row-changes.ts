import type { Action } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";

/** Prefix of the keys of the journal's facts. */
const REMEDIATION_FACT_PREFIX = "warden.";

/** Returns whether a fact is one of the journal's. */
export const isJournalFact = (key: string): boolean => key.startsWith(REMEDIATION_FACT_PREFIX);

/**
 * What a commit writes, by table. `Gone` means that rows are deleted. PostgreSQL's commit statement has a parameter for
 * each, in this order.
 */
export const WRITES = [
  "timers",
  "timersGone",
  "episodes",
  "actions",
  "holds",
  "holdsGone",
  "facts",
  "factsGone",
  "decisions",
  "orders",
] as const;
export type Write = (typeof WRITES)[number];

/** A change to one row of a table. */
export interface RowChange {
  readonly write: Write;
  /** Identifies the row among those of all tables. Null if it is new in any case. */
  readonly key: string | null;
  /**
   * The columns without `body`; only those of the key if the row is deleted. SQLite binds them in this order, which is
   * that of its statements.
   */
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
      return { write: "timers", key: rowKey("timer", node, policy), columns: { node, policy, state, ...times } };
    }
    case "timer_gone": {
      const { node, policy } = change;
      return { write: "timersGone", key: rowKey("timer", node, policy), columns: { node, policy } };
    }
    case "episode": {
      const { id, policy, node, state, openedAt, closedAt } = change.row;
      const columns = { number: numberOfId(id), id, policy, node, state, opened_at: openedAt, closed_at: closedAt };
      return { write: "episodes", key: rowKey("episode", id), columns, body: change.row };
    }
    case "action": {
      const { id, episode, policy, node, state, createdAt, endedAt } = change.row;
      const overAt = FINISHED_STATES.has(state) ? (endedAt ?? createdAt) : null;
      const times = { created_at: createdAt, over_at: overAt };
      const columns = { number: numberOfId(id), id, episode, policy, node, state, ...times };
      return { write: "actions", key: rowKey("action", id), columns, body: change.row };
    }
    case "decision": {
      const { at, policy, node, episode, verdict } = change.row;
      return { write: "decisions", key: null, columns: { at, policy, node, episode, verdict }, body: change.row };
    }
    case "order": {
      const { at, node } = change.row;
      return { write: "orders", key: null, columns: { at, node }, body: change.row };
    }
    case "hold": {
      const { node, until } = change.row;
      const policy = change.row.policy ?? "";
      const columns = { node, policy, ends_at: until };
      return { write: "holds", key: rowKey("hold", node, policy), columns, body: change.row };
    }
    case "hold_gone": {
      const [node, policy] = [change.node, change.policy ?? ""];
      return { write: "holdsGone", key: rowKey("hold", node, policy), columns: { node, policy } };
    }
    case "fact": {
      const { key, value } = change;
      assertJournalFact(key);
      if (value === null) return { write: "factsGone", key: rowKey("fact", key), columns: { key } };
      return { write: "facts", key: rowKey("fact", key), columns: { key, value } };
    }
    default:
      throw new Error(`unknown kind of journal change: ${(change satisfies never as JournalChange).kind}`);
  }
}

const rowKey = (...parts: readonly string[]): string => JSON.stringify(parts);

/** Final states of an action. */
const FINISHED_STATES: ReadonlySet<Action["state"]> = new Set(["ended", "withdrawn", "rejected", "lapsed"]);

/** Returns the number in the id of an episode or action. Throws if it has none. */
function numberOfId(id: string): number {
  const number = Number(/^(?:ep|act)-([1-9]\d*)$/.exec(id)?.[1]);
  if (!Number.isSafeInteger(number)) throw new Error(`${id} is not the id of an episode or an action`);
  return number;
}

/** Throws if a fact is not one of the journal's, because it would never be loaded. */
function assertJournalFact(key: string): void {
  if (!isJournalFact(key))
    throw new Error(`the key of a journal fact must begin with ${REMEDIATION_FACT_PREFIX}: ${key}`);
}
