import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import { formatTime as formatEpoch } from "../../model/time.ts";
import { formatDuration } from "../../web/ui/page/format.ts";
import type { Paint } from "./color.ts";

/** Formats an ISO 8601 time to the second, in UTC. */
export const formatTime = (iso: string): string => formatEpoch(Date.parse(iso));

/** Formats a duration in its two largest units, as the status page does. */
export const formatLength = (ms: DurationMs): string => formatDuration(ms / SECOND_MS);

/** Replaces control characters, because text from the daemon or the service must not control the terminal. */
export const stripControlCharacters = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");

/** Returns the name of a node with its id, or only the id if it has no name. */
export const nodeLabel = (id: NodeId, name: string | null): string => (name === null ? id : `${name} (${id})`);

/** Pads columns. The first `textColumns` are aligned left; the others are numbers and aligned right. */
export function alignColumns(rows: readonly (readonly string[])[], textColumns: number): string[] {
  // Not by Math.max(...widths), which fails with more than about 125,000 rows.
  const widths = rows[0]!.map((_, column) => rows.reduce((width, row) => Math.max(width, row[column]!.length), 0));
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
