import { type DurationMs, HOUR_MS, MINUTE_MS } from "../../../src/base/duration.ts";

/** Formats named figures as a Markdown table with one column. */
export const figuresTable = (title: string, figures: Readonly<Record<string, string>>): string =>
  [["", title], ["---", "---:"], ...Object.entries(figures)].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

/** Formats counts and percentages by name, the most frequent first. */
export function shares<T>(all: readonly T[], nameOf: (one: T) => string): string {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(nameOf(one), (counts.get(nameOf(one)) ?? 0) + 1);
  const sorted = [...counts].sort((one, other) => other[1] - one[1]);
  return sorted.map(([name, count]) => `${name} ${count} (${((100 * count) / all.length).toFixed(1)}%)`).join(", ");
}

/** Formats the median and the 95th percentile. */
export function quantiles(durations: readonly DurationMs[]): string {
  if (durations.length === 0) return "-";
  const sorted = durations.toSorted((one, other) => one - other);
  const at = (share: number) => formatTime(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!);
  return `${at(0.5)} / ${at(0.95)} (n ${sorted.length})`;
}

const formatTime = (ms: DurationMs): string =>
  ms < HOUR_MS ? `${(ms / MINUTE_MS).toFixed(1)} min` : `${(ms / HOUR_MS).toFixed(1)} h`;
