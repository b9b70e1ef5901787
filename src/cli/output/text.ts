import { type DurationMs, formatDuration, SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Paint } from "./color.ts";

/** Formats a number of things, such as `1 node` or `3 nodes`. */
export const countNoun = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Formats an ISO 8601 time to the second, in UTC. */
export const formatTime = (iso: string): string => `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;

/** Formats a duration, rounded to the second. */
export const formatWholeSeconds = (ms: DurationMs): string => formatDuration(Math.round(ms / SECOND_MS) * SECOND_MS);

/** Replaces control characters: text from the daemon or the service must not control the terminal. */
export const stripControlCharacters = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");

/** Returns the name of a node with its id; without a name the id alone. */
export const nodeLabel = (id: NodeId, name: string | null): string => (name === null ? id : `${name} (${id})`);

/** Pads columns: the first `textColumns` to the left, the others, which are numbers, to the right. */
export function alignColumns(rows: readonly (readonly string[])[], textColumns: number): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column < textColumns ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join("  ")
      .trimEnd(),
  );
}

/** Formats a table of text columns with titles. Control characters in the cells are replaced. */
export function formatTable(titles: readonly string[], cells: readonly (readonly string[])[], paint: Paint): string {
  const rows = cells.map((row) => row.map(stripControlCharacters));
  const [head, ...lines] = alignColumns([titles, ...rows], titles.length);
  return `${[paint("title", head!), ...lines].join("\n")}\n`;
}
