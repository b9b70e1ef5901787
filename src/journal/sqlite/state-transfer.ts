import type { DatabaseSync } from "node:sqlite";
import { isJournalFact } from "../row-rules.ts";
import type { StateRow } from "../state-rows.ts";
import { notEmptyError, STATE_TABLES, TIMED_TABLES } from "../tables.ts";
import { createChangeWriter } from "./change-writer.ts";
import { createRowReader } from "./rows.ts";
import { runInTransaction } from "./transaction.ts";

/** Yields all rows of a database whose schema is current. */
export async function* exportRows(database: DatabaseSync): AsyncGenerator<StateRow> {
  for (const { day, used } of database.prepare("SELECT day, used FROM calls").iterate())
    yield { kind: "calls", day: String(day), used: Number(used) };
  for (const { key, value } of database.prepare("SELECT key, value FROM facts").iterate())
    yield { kind: "fact", key: String(key), value: String(value) };
  for (const row of createRowReader(database).timers()) yield { kind: "timer", row };
  const holds = { kind: "hold", table: "holds", sequence: "node, policy" };
  for (const { kind, table, sequence } of [...Object.values(TIMED_TABLES), holds]) {
    for (const { body } of database.prepare(`SELECT body FROM ${table} ORDER BY ${sequence}`).iterate())
      yield { kind, row: JSON.parse(String(body)) } as StateRow;
  }
}

/** Writes rows in one transaction. Throws and writes nothing if the database has rows, or if a row is invalid. */
export function importRows(database: DatabaseSync, rows: Iterable<StateRow>): void {
  const write = createChangeWriter(database);
  const addCalls = database.prepare("INSERT INTO calls (day, used) VALUES (?, ?)");
  const addFact = database.prepare("INSERT INTO facts (key, value) VALUES (?, ?)");
  runInTransaction(database, () => {
    const full = STATE_TABLES.find((table) => database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined);
    if (full !== undefined) throw notEmptyError(full);
    for (const row of rows) {
      if (row.kind === "calls") addCalls.run(row.day, row.used);
      else if (row.kind === "fact" && !isJournalFact(row.key)) addFact.run(row.key, row.value);
      else write(row);
    }
  });
}
