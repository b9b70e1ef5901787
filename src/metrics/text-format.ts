/** The two formats of /metrics: Prometheus text 0.0.4 and OpenMetrics 1.0. Sample lines are the same in both. */
export type Format = "text" | "openmetrics";

/** Types of families, as both formats name them. */
export type FamilyType = "gauge" | "counter" | "histogram";

/** The header of a family. */
export interface FamilyHead {
  /** The name in text 0.0.4, in which the name of a counter ends in `_total`. */
  readonly name: string;
  readonly type: FamilyType;
  readonly help: string;
}

/** Returns the end of the body; text 0.0.4 has none. */
export const endMarker = (format: Format): string => (format === "openmetrics" ? "# EOF\n" : "");

/** Units of families. OpenMetrics allows a UNIT line only if the name ends in the unit. */
const UNITS = ["seconds", "bytes", "ratio"] as const;

/** Returns the unit that the name of a family ends with, or null if there is none. */
export const unitOf = (name: string): (typeof UNITS)[number] | null =>
  UNITS.find((unit) => openMetricsName(name).endsWith(`_${unit}`)) ?? null;

const openMetricsName = (name: string) => name.replace(/_total$/, "");

/** Returns the header lines of a family: HELP, TYPE, and in OpenMetrics UNIT. */
export function familyHeader({ name, type, help }: FamilyHead, format: Format): string {
  if (format === "text") return `# HELP ${name} ${escapeLine(help)}\n# TYPE ${name} ${type}\n`;
  const shown = type === "counter" ? openMetricsName(name) : name;
  const unit = unitOf(name);
  const unitLine = unit === null ? "" : `# UNIT ${shown} ${unit}\n`;
  return `# TYPE ${shown} ${type}\n${unitLine}# HELP ${shown} ${escapeLabelValue(help)}\n`;
}

/** Returns `name{a="1",b="2"}` with escaped label values, or `name` without labels. */
export function seriesText(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabelValue(value)}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
}

/** Escapes a label value for both formats: backslash, double quote and line feed. */
export const escapeLabelValue = (value: string): string =>
  NEEDS_ESCAPE.test(value) ? value.replace(/["\\\n]/g, (character) => ESCAPES[character]!) : value;

/** Escapes the help text for text 0.0.4, in which double quotes are not escaped. */
const escapeLine = (text: string) => text.replace(/[\\\n]/g, (character) => ESCAPES[character]!);

const NEEDS_ESCAPE = /["\\\n]/;
const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n" };

/** Values of at least this magnitude are not written with a fixed number of decimals; a double has too few digits. */
export const FIXED_MAX = 1e11;

/**
 * Returns the shortest text that parses to the value of a sample; with `decimals` (1 to 4), the text with that many
 * decimals if it also parses to the value. +Inf, -Inf and NaN are spelled as in Prometheus.
 */
export function valueText(value: number, decimals = 0): string {
  if (decimals > 0 && Math.abs(value) < FIXED_MAX) {
    const fixed = value.toFixed(decimals);
    if (Number(fixed) === value) return fixed;
  }
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "+Inf" : "-Inf";
}

/**
 * Returns the text of a bucket's bound. It is a float in both formats, as OpenMetrics requires, so that both show the
 * same series.
 */
export function boundText(bound: number): string {
  return Number.isInteger(bound) && Math.abs(bound) < 1e15 ? `${bound}.0` : valueText(bound);
}
