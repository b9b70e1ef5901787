import { fail, ok, type Result } from "../base/result.ts";
import { parseJsonObject } from "../base/text.ts";
import type { NodeId } from "../model/node.ts";
import type { NodeHold, TimerRow } from "../model/remediation/episode.ts";
import type { JournalChange, JournalQueries } from "../model/remediation/journal.ts";
import { TABLES } from "./row-changes.ts";

/** A row of a state, as it is exported and imported. */
export type StateRow =
  | Exclude<JournalChange, { readonly kind: "timer_gone" | "hold_gone" }>
  | { readonly kind: "calls"; readonly day: string; readonly used: number };

/** Read-only access to a whole state, at one point in time. All methods reject if the state is damaged. */
export interface StateReader extends JournalQueries {
  /** Returns the timers of a node under every policy. */
  timers(node: NodeId): Promise<readonly TimerRow[]>;
  holds(node: NodeId): Promise<readonly NodeHold[]>;
  /** Calls by day (UTC). */
  calls(): Promise<ReadonlyMap<string, number>>;
  /** Number of calls made on or after `day` (UTC). */
  callsSince(day: string): Promise<number>;
  /** Yields all rows, kind by kind. Those with a time are in the order in which they were first written. */
  rows(): AsyncIterable<StateRow>;
}

/** All tables of a state. */
export const STATE_TABLES = ["calls", ...Object.keys(TABLES)];

/** Creates the error of an import into a state with rows in `table`. */
export const notEmptyError = (table: string): Error => new Error(`the state is not empty: its table ${table} has rows`);

/** Version of the export's format. Only builds from before the first release wrote version 1. */
const FORMAT_VERSION = 2;
const KINDS: ReadonlySet<string> = new Set<StateRow["kind"]>([
  ...(["timer", "episode", "action", "decision", "hold", "command", "fact", "calls"] as const),
]);

/**
 * Yields an exported state as lines of JSON: a header with the version of the format, a line for each row, and a last
 * line with the number of rows, which shows that nothing is missing.
 */
export async function* exportLines(rows: AsyncIterable<StateRow>): AsyncGenerator<string> {
  yield `${JSON.stringify({ proxywarden_state: FORMAT_VERSION })}\n`;
  let count = 0;
  for await (const row of rows) {
    count++;
    yield `${JSON.stringify(row)}\n`;
  }
  yield `${JSON.stringify({ kind: "end", rows: count })}\n`;
}

/** Reads an exported state. The error says what is wrong with it. */
export function parseExport(text: string): Result<readonly StateRow[], string> {
  const lines = text.trimEnd().split("\n");
  const { proxywarden_state: version } = parseJsonObject(lines[0]!) as Record<string, unknown>;
  if (version === undefined) return fail("line 1 is not the header of an exported state");
  if (version !== FORMAT_VERSION)
    return fail(
      `it has format ${JSON.stringify(version)}, but this version of proxywarden reads only ${FORMAT_VERSION}`,
    );
  const end = parseJsonObject(lines.at(-1)!) as Record<string, unknown>;
  if (end.kind !== "end" || end.rows !== lines.length - 2)
    return fail("its end is missing or does not match: the export is not complete");
  const rows: StateRow[] = [];
  for (const [index, line] of lines.slice(1, -1).entries()) {
    const row = parseJsonObject(line) as Record<string, unknown>;
    if (!isStateRow(row)) return fail(`line ${index + 2} is not a row of a state`);
    rows.push(row);
  }
  return ok(rows);
}

function isStateRow(row: Record<string, unknown>): row is StateRow & Record<string, unknown> {
  if (!KINDS.has(String(row.kind))) return false;
  if (row.kind === "fact") return typeof row.key === "string" && typeof row.value === "string";
  if (row.kind === "calls") return typeof row.day === "string" && Number.isSafeInteger(row.used);
  return typeof row.row === "object" && row.row !== null;
}
