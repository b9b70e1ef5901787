import type { SqliteStateStore } from "../../../src/journal/sqlite/store.ts";
import type { Action, Decision, Episode } from "../../../src/model/remediation/episode.ts";
import type { OperatorCommandRow } from "../../../src/model/remediation/operator-command.ts";

interface Rows {
  readonly actions: Action;
  readonly decisions: Decision;
  readonly episodes: Episode;
  readonly operator_commands: OperatorCommandRow;
}

const TIME_COLUMNS = {
  actions: "created_at",
  decisions: "at",
  episodes: "opened_at",
  operator_commands: "at",
} as const;

/** Returns the rows of a table of the journal, oldest first, without waiting. */
export const journalRows = <Table extends keyof Rows>(
  { database }: SqliteStateStore,
  table: Table,
): readonly Rows[Table][] =>
  database
    .prepare(`SELECT body FROM ${table} ORDER BY ${TIME_COLUMNS[table]}, rowid`)
    .all()
    .map(({ body }) => JSON.parse(String(body)) as Rows[Table]);
