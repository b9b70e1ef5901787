import { styleText } from "node:util";
import { type DurationMs, SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import { formatTime as formatEpoch } from "../../model/time.ts";
import { formatDuration } from "../../web/ui/page/format.ts";

/** A stream that a command prints to. */
export interface Output {
  write(text: string): void;
  readonly isTTY?: boolean;
}

/** Formats an ISO 8601 time to the second, in UTC. */
export const formatTime = (iso: string): string => formatEpoch(Date.parse(iso));

/** Formats a duration in its two largest units, as the status page does. */
export const formatLength = (ms: DurationMs): string => formatDuration(ms / SECOND_MS);

/** Replaces control characters, because text from the daemon or the service must not control the terminal. */
export const stripControlCharacters = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");

/** Returns the name of a node with its id, or only the id if it has no name. */
export const nodeLabel = (id: NodeId, name: string | null): string => (name === null ? id : `${name} (${id})`);

/** Pads columns. The first `textColumns` are aligned left; the others hold numbers and are aligned right. */
export function alignColumns(rows: readonly (readonly string[])[], textColumns: number): string[] {
  // Math.max(...widths) would fail with more than about 125,000 rows.
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

/** Meaning of a color. */
export type Tone = "good" | "bad" | "warning" | "title";

/** Colors a text, or returns it unchanged if the stream has no colors. */
export type Paint = (tone: Tone, text: string) => string;

/** True for --color, false for --no-color, undefined if neither is given. */
export type ColorOption = boolean | undefined;

const TONE_FORMATS = { good: "green", bad: "red", warning: "yellow", title: "bold" } as const;

/**
 * Returns whether a stream gets colors: never if NO_COLOR is set and not empty (no-color.org), or if FORCE_COLOR is `0`
 * or `false`; always if FORCE_COLOR has any other value; and otherwise if it is a terminal with colors.
 */
export function supportsColor({ isTTY }: Output, { NO_COLOR, FORCE_COLOR, TERM }: NodeJS.ProcessEnv): boolean {
  if (NO_COLOR !== undefined && NO_COLOR !== "") return false;
  if (FORCE_COLOR !== undefined) return FORCE_COLOR !== "0" && FORCE_COLOR !== "false";
  return isTTY === true && TERM !== "dumb";
}

/** Returns a function that colors text for one stream. */
export function createPaint(stream: Output, env: NodeJS.ProcessEnv): Paint {
  if (!supportsColor(stream, env)) return (_tone, text) => text;
  return (tone, text) => styleText(TONE_FORMATS[tone], text, { validateStream: false });
}

/** Returns the environment with --color or --no-color applied, which override it. */
export function withColorOption(env: NodeJS.ProcessEnv, colorOption: ColorOption): NodeJS.ProcessEnv {
  if (colorOption === undefined) return env;
  return colorOption ? { ...env, NO_COLOR: undefined, FORCE_COLOR: "1" } : { ...env, NO_COLOR: "1" };
}
