import { parse, stringify } from "yaml";
import { readText } from "./generated-files.ts";
import { tableCell } from "./reference/key-table.ts";

/** The folder of the Helm chart. */
export const CHART = "deploy/helm/proxywarden";
const VALUES_BEGIN = "<!-- values -->";
const VALUES_END = "<!-- end of values -->";
/** Longer defaults are not shown in the table. */
const SHOWN_DEFAULT_MAX_CHARACTERS = 60;

interface ValueSchema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, ValueSchema>>;
}

/** Returns the chart's README with the table of all values between its two marks. */
export function chartReadme(): string {
  const text = readText(`${CHART}/README.md`) ?? "";
  const [before, , after] = text.split(new RegExp(`(?<=${VALUES_BEGIN}\n)([\\s\\S]*)(?=${VALUES_END})`));
  const schema = JSON.parse(readText(`${CHART}/values.schema.json`) ?? "{}") as ValueSchema;
  const rows = valueRows("", schema, parse(readText(`${CHART}/values.yaml`) ?? ""));
  return `${before}${["| value | default | meaning |", "| --- | --- | --- |", ...rows].join("\n")}\n${after}`;
}

/** Returns a row for the value at `path` if it has a description, or for each described value below it. */
function valueRows(path: string, { description, properties = {} }: ValueSchema, value: unknown): readonly string[] {
  if (description === undefined) {
    return Object.entries(properties).flatMap(([key, schema]) =>
      valueRows(path === "" ? key : `${path}.${key}`, schema, (value as Record<string, unknown>)[key]),
    );
  }
  if (value === undefined) return []; // reserved by Helm
  const text = stringify(value, { collectionStyle: "flow", lineWidth: 0 }).trim();
  const shown = text.length > SHOWN_DEFAULT_MAX_CHARACTERS ? "see values.yaml" : `\`${text}\``;
  return [`| \`${path}\` | ${tableCell(shown)} | ${tableCell(description)} |`];
}
