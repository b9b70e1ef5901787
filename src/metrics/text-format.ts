/** The two formats of /metrics: Prometheus text 0.0.4 and OpenMetrics 1.0. Sample lines are the same in both. */
export type Format = "text" | "openmetrics";

/** Kinds of family, as both formats call them. */
export type FamilyType = "gauge" | "counter" | "histogram";

/** What the header lines of a family say. */
export interface FamilyHead {
  /** As text 0.0.4 names it: a counter's ends in `_total`. */
  readonly name: string;
  readonly type: FamilyType;
  readonly help: string;
}

/** Ends the body. Text 0.0.4 has no such mark. */
export const endMarker = (format: Format): string => (format === "openmetrics" ? "# EOF\n" : "");

/** Units that families here have. OpenMetrics says the unit only where the name ends in it. */
const UNITS = ["seconds", "bytes", "ratio"] as const;

/** Unit of a family, as its name ends; null without one. */
export const unitOf = (name: string): (typeof UNITS)[number] | null =>
  UNITS.find((unit) => openMetricsName(name).endsWith(`_${unit}`)) ?? null;

const openMetricsName = (name: string) => name.replace(/_total$/, "");

/** The lines before a family's samples: HELP, TYPE, and in OpenMetrics UNIT. */
export function familyHeader({ name, type, help }: FamilyHead, format: Format): string {
  if (format === "text") return `# HELP ${name} ${escapeLine(help)}\n# TYPE ${name} ${type}\n`;
  const shown = type === "counter" ? openMetricsName(name) : name;
  const unit = unitOf(name);
  const unitLine = unit === null ? "" : `# UNIT ${shown} ${unit}\n`;
  return `# TYPE ${shown} ${type}\n${unitLine}# HELP ${shown} ${escapeLabelValue(help)}\n`;
}

/** `name{a="1",b="2"}`, label values escaped; `name` alone without labels. */
export function seriesText(name: string, labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabelValue(value)}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
}

/** Escapes a label's value: backslash, double quote and line feed, in both formats. */
export const escapeLabelValue = (value: string): string =>
  NEEDS_ESCAPE.test(value) ? value.replace(/["\\\n]/g, (character) => ESCAPES[character]!) : value;

/** HELP of text 0.0.4 leaves double quotes as they are. */
const escapeLine = (text: string) => text.replace(/[\\\n]/g, (character) => ESCAPES[character]!);

const NEEDS_ESCAPE = /["\\\n]/;
const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n" };

/**
 * A sample's value: the shortest text that reads back as the same number; +Inf, -Inf and NaN as Prometheus spells them.
 */
export function valueText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "+Inf" : "-Inf";
}

/** A bucket's bound: a float in OpenMetrics, and the same in text so that both give one series. */
export function boundText(bound: number): string {
  return Number.isInteger(bound) && Math.abs(bound) < 1e15 ? `${bound}.0` : valueText(bound);
}
