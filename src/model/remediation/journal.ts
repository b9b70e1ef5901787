import type { NodeId } from "../node.ts";
import type { EpochMs } from "../time.ts";
import type { Decision } from "./decision.ts";
import type { Action, Episode, NodeHold, TimerRow } from "./episode.ts";
import type { OperatorCommandRow } from "./operator-command.ts";

/** One thing to write down. Rows replace the row of the same key: a timer's is its policy and node. */
export type JournalChange =
  | { readonly kind: "timer"; readonly row: TimerRow }
  | { readonly kind: "timer_gone"; readonly policy: string; readonly node: NodeId }
  | { readonly kind: "episode"; readonly row: Episode }
  | { readonly kind: "action"; readonly row: Action }
  | { readonly kind: "decision"; readonly row: Decision }
  | { readonly kind: "hold"; readonly row: NodeHold }
  | { readonly kind: "hold_gone"; readonly node: NodeId; readonly policy: string | null }
  | { readonly kind: "order"; readonly row: OperatorCommandRow }
  | { readonly kind: "fact"; readonly key: string; readonly value: string | null };

/** What a journal holds when it is opened. */
export interface JournalContents {
  readonly timers: readonly TimerRow[];
  /** Open ones, and those that closed at or after the time asked for. */
  readonly episodes: readonly Episode[];
  /** Those not over, those of open episodes, and those created at or after the time asked for. */
  readonly actions: readonly Action[];
  readonly holds: readonly NodeHold[];
  /** Facts whose key begins with `warden.`. */
  readonly facts: ReadonlyMap<string, string>;
  /** The greatest number ever given to an episode or action: see {@link formatId}. */
  readonly lastNumber: number;
}

/** Which rows to read; newest first. `until`: written at or before it. */
export interface JournalQuery {
  readonly node?: NodeId;
  readonly policy?: string;
  readonly until?: EpochMs;
  /** At most so many rows. */
  readonly limit: number;
}

/** The durable memory of what was seen, decided and done. */
export interface Journal {
  load(closedSince: EpochMs): JournalContents;
  /** Facts whose key begins with `warden.`. */
  facts(): ReadonlyMap<string, string>;
  /** Writes all changes, or none; returns once they are on the disk. Throws where the disk refuses. */
  commit(changes: readonly JournalChange[]): void;
  decisions(query: JournalQuery): readonly Decision[];
  actions(query: JournalQuery): readonly Action[];
  episodes(query: JournalQuery): readonly Episode[];
  /** Orders have no policy: that of the query is ignored. */
  operatorCommands(query: JournalQuery): readonly OperatorCommandRow[];
  /** Forgets what ended or was decided before `before`; bounded work a call. Throws where the disk refuses. */
  prune(before: EpochMs): void;
}

/** A journal as another process than the daemon's may read it: as it was at one moment. All throw where it is broken. */
export interface JournalReader
  extends Pick<Journal, "decisions" | "actions" | "episodes" | "operatorCommands" | "facts"> {
  /** Timers of a node, under every policy. */
  timers(node: NodeId): readonly TimerRow[];
  holds(node: NodeId): readonly NodeHold[];
  close(): void;
}

/** Identifier of the n-th episode or action: `ep-12`, `act-13`. Both count together, from 1. */
export const formatId = (kind: "ep" | "act", number: number): string => `${kind}-${number}`;
