import type { NodeId } from "../node.ts";
import type { EpochMs } from "../time.ts";
import type { Action, Decision, Episode, NodeHold, TimerRow } from "./episode.ts";
import type { OperatorCommandRow } from "./operator-command.ts";

/** One change to the journal. A row replaces the row with the same key; the key of a timer is its policy and node. */
export type JournalChange =
  | { readonly kind: "timer"; readonly row: TimerRow }
  | { readonly kind: "timer_gone"; readonly policy: string; readonly node: NodeId }
  | { readonly kind: "episode"; readonly row: Episode }
  | { readonly kind: "action"; readonly row: Action }
  | { readonly kind: "decision"; readonly row: Decision }
  | { readonly kind: "hold"; readonly row: NodeHold }
  | { readonly kind: "hold_gone"; readonly node: NodeId; readonly policy: string | null }
  | { readonly kind: "command"; readonly row: OperatorCommandRow }
  | { readonly kind: "fact"; readonly key: string; readonly value: string | null };

/** The content of a journal when it is opened. */
export interface JournalContents {
  readonly timers: readonly TimerRow[];
  /** Open episodes, and those closed at or after the requested time that had acted or were given up. */
  readonly episodes: readonly Episode[];
  /** Unfinished actions, those of open episodes, and those created at or after the requested time. */
  readonly actions: readonly Action[];
  readonly holds: readonly NodeHold[];
  /** The facts by key. */
  readonly facts: ReadonlyMap<string, string>;
  /** The largest number assigned to an episode or action (see {@link formatId}). */
  readonly lastNumber: number;
}

/** Selects rows, newest first. `until` selects those written at or before that time. */
export interface JournalQuery {
  readonly node?: NodeId;
  readonly policy?: string;
  readonly until?: EpochMs;
  /** Maximum number of rows. */
  readonly limit: number;
}

/** Maximum number of rows of each kind in an explanation of a node. It has few episodes, each with a few steps. */
export const EXPLAINED_ROWS_MAX = 100;

/** Queries of the rows of a journal. All methods reject if it can't be read. */
export interface JournalQueries {
  /** The facts by key. */
  facts(): Promise<ReadonlyMap<string, string>>;
  decisions(query: JournalQuery): Promise<readonly Decision[]>;
  actions(query: JournalQuery): Promise<readonly Action[]>;
  episodes(query: JournalQuery): Promise<readonly Episode[]>;
  /** Returns operator commands. They have no policy, so that of the query is ignored. */
  operatorCommands(query: JournalQuery): Promise<readonly OperatorCommandRow[]>;
}

/**
 * The durable record of what was observed, decided and done. All methods reject if the journal can't be read or
 * written.
 */
export interface Journal extends JournalQueries {
  /** Reads the rows that the daemon keeps in memory; `closedSince` is the requested time of {@link JournalContents}. */
  load(closedSince: EpochMs): Promise<JournalContents>;
  /**
   * Writes all changes or none, and resolves once they are on disk. Calls must not overlap, because the order of two
   * commits at the same time is undefined.
   */
  commit(changes: readonly JournalChange[]): Promise<void>;
  /** Deletes rows that ended or were decided before `before`, a bounded number per call. */
  prune(before: EpochMs): Promise<void>;
}

/** Returns a text that identifies the row of a change, or null if the change adds a row and replaces none. */
export function rowKeyOf(change: JournalChange): string | null {
  switch (change.kind) {
    case "timer":
      return `timer\0${change.row.policy}\0${change.row.node}`;
    case "timer_gone":
      return `timer\0${change.policy}\0${change.node}`;
    case "episode":
    case "action":
      return change.row.id;
    case "hold":
      return `hold\0${change.row.policy ?? ""}\0${change.row.node}`;
    case "hold_gone":
      return `hold\0${change.policy ?? ""}\0${change.node}`;
    case "fact":
      return `fact\0${change.key}`;
    case "decision":
    case "command":
      return null;
    default:
      return change satisfies never;
  }
}

/** Returns the identifier of an episode or action, such as `ep-12` or `act-13`. Both share one sequence, from 1. */
export const formatId = (kind: "ep" | "act", number: number): string => `${kind}-${number}`;
