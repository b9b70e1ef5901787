import type { JournalQueries } from "../model/remediation/journal.ts";
import type { EventLog } from "../web/api/event-log.ts";

/**
 * Number of rows of each kind that are read at once. If there are more between two reads, the rest is missing from the
 * feed, but not from the lists.
 */
const ROWS_READ = 100;

/**
 * Passes the decisions, actions and operator commands that the leader journals to the event log of a standby, for its
 * status page.
 */
export class RowFeed {
  readonly #journal: JournalQueries;
  readonly #eventLog: EventLog;
  /** The rows that were read last, as JSON, or null if none were read yet. */
  #known: ReadonlySet<string> | null = null;

  constructor(journal: JournalQueries, eventLog: EventLog) {
    this.#journal = journal;
    this.#eventLog = eventLog;
  }

  /**
   * Records the rows that are new or have changed. The first call records none, because a page that opens reads the
   * lists.
   */
  async read(): Promise<void> {
    const query = { limit: ROWS_READ };
    const [decisions, actions, orders] = await Promise.all([
      this.#journal.decisions(query),
      this.#journal.actions(query),
      this.#journal.operatorCommands(query),
    ]);
    const rows = [
      ...decisions.toReversed().map((row) => ({ kind: "decision", row }) as const),
      ...actions.toReversed().map((row) => ({ kind: "action", row }) as const),
      ...orders.toReversed().map((row) => ({ kind: "order", row }) as const),
    ];
    const texts = rows.map((row) => JSON.stringify(row));
    const known = this.#known;
    if (known !== null) this.#eventLog.record(rows.filter((_, index) => !known.has(texts[index]!)));
    this.#known = new Set(texts);
  }
}
