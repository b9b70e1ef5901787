import type { z } from "zod";
import { alternatives, innermost, kindOf, listItem, meaningOf, sectionKeys } from "../schema/introspection.ts";

/** One key of the reference. */
export interface KeyRow {
  /** Such as `nodes.every`, or `keys[].scopes` for a key of every item. */
  readonly path: string;
  /** Kind of the value and the range it may have. */
  readonly type: string;
  /** As it would be written; null: there is none. */
  readonly preset: string | null;
  readonly required: boolean;
  readonly meaning: string;
}

/** The rows of a key and of all keys below it. `preset` is what a section above sets it to. */
export function rowsOf(path: string, schema: z.core.$ZodType, preset: unknown = presetOf(schema)): KeyRow[] {
  const shown = preset === undefined || isEmptySection(preset) ? null : spell(preset);
  const required = schema._zod.optin === undefined;
  const row = { path, type: typeOf(schema), preset: shown, required, meaning: meaningOf(schema) };
  const below = Object.entries(sectionKeys(schema) ?? {}).flatMap(([key, child]) => {
    const above = (preset as Record<string, unknown> | null | undefined)?.[key];
    return rowsOf(`${path}.${key}`, child, above ?? presetOf(child));
  });
  return [row, ...below, ...partsOf(schema).flatMap(([suffix, part]) => rowsOf(`${path}${suffix}`, part).slice(1))];
}

const isEmptySection = (preset: unknown): boolean =>
  typeof preset === "object" && preset !== null && !Array.isArray(preset) && Object.keys(preset).length === 0;

/** The sections within a list's items or a choice, which have keys of their own. */
function partsOf(schema: z.core.$ZodType): [suffix: string, part: z.core.$ZodType][] {
  const item = listItem(schema);
  if (item !== null) return sectionKeys(item) === null ? [] : [["[]", item]];
  const sections = (alternatives(schema) ?? []).filter((option) => sectionKeys(option) !== null);
  return sections.map((section) => ["", section]);
}

function typeOf(schema: z.core.$ZodType): string {
  const kind = kindOf(schema);
  if (kind !== null) return kind.range === undefined ? kind.name : `${kind.name}, ${kind.range}`;
  const item = listItem(schema);
  if (item !== null) return `list of: ${typeOf(item)}`;
  const options = alternatives(schema);
  if (options !== null) return [...new Set(options.map(typeOf))].join("; or ");
  const { def } = innermost(schema)._zod;
  return def.type === "object" ? "mapping" : def.type;
}

/** What a key is where it is left out, as it would be written; undefined: nothing. */
function presetOf(schema: z.core.$ZodType): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  return def.type === "default" || def.type === "prefault" ? def.defaultValue : undefined;
}

function spell(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spell).join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  return `{${Object.entries(value)
    .map(([key, one]) => `${key}: ${spell(one)}`)
    .join(", ")}}`;
}

/** A Markdown table of keys. */
export function keyTable(rows: readonly KeyRow[]): string {
  const lines = rows.map(({ path, type, preset, required, meaning }) => {
    const shown = preset === null ? (required ? "required" : "–") : `\`${preset}\``;
    return `| \`${path}\` | ${cell(type)} | ${cell(shown)} | ${cell(meaning)} |`;
  });
  return ["| key | type and range | default | meaning |", "| --- | --- | --- | --- |", ...lines].join("\n");
}

/** Text for a cell of a Markdown table. */
export const cell = (text: string): string => text.replaceAll("|", "\\|");
