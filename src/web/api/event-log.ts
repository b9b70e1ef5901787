import type { JournalChange } from "../../model/remediation/journal.ts";

/** A change that the status page shows as it happens. */
type FeedEvent = Extract<JournalChange, { kind: "decision" | "action" | "command" }>;

/** An event and its number, counted from 1. */
export interface EventRow {
  readonly number: number;
  readonly event: FeedEvent;
}

/** The latest decisions, actions and operator commands, in order. */
export type EventLog = ReturnType<typeof createEventLog>;

/** Number of events kept, for clients that were disconnected for some minutes. An event takes about 1 KB. */
export const EVENT_ROWS_MAX = 1_000;

/** Creates an empty event log. */
export function createEventLog() {
  const kept: EventRow[] = [];
  let last = 0;
  return {
    /**
     * Records the decisions, actions and operator commands among `changes`. It must be fast, because remediation waits
     * for it.
     */
    record(changes: readonly JournalChange[]): void {
      for (const change of changes) {
        if (change.kind !== "decision" && change.kind !== "action" && change.kind !== "command") continue;
        kept.push({ number: ++last, event: change });
        if (kept.length > EVENT_ROWS_MAX) kept.shift();
      }
    },
    /** Returns the number of the latest event, or 0 if there is none yet. */
    lastNumber: () => last,
    /**
     * Returns the latest events after a number, oldest first and at most `limit`. `missed` is how many were left out.
     */
    after(number: number, limit: number): { readonly rows: readonly EventRow[]; readonly missed: number } {
      const due = Math.max(0, last - number);
      const count = Math.min(due, limit, kept.length);
      return { rows: kept.slice(kept.length - count), missed: due - count };
    },
  };
}
