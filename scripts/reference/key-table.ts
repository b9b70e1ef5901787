import { z } from "zod";
import { alternatives, innermost, kindOf, sectionKeys } from "../../src/config/schema/introspection.ts";

/** One key of the reference. */
export interface KeyRow {
  /** Such as `nodes.every`, or `keys[].scopes` for a key of every item. */
  readonly path: string;
  /** Type and range of the value. */
  readonly type: string;
  /** The default as written in YAML, or null if there is none. */
  readonly defaultText: string | null;
  readonly required: boolean;
  readonly meaning: string;
}

/** Returns the schema of a list's items, or null if the schema is not a list. */
export function listItem(schema: z.core.$ZodType): z.core.$ZodType | null {
  const { def } = innermost(schema)._zod;
  return def.type === "array" ? def.element : null;
}

/** Returns the description of a key or section. */
export const meaningOf = (schema: z.core.$ZodType): string => z.globalRegistry.get(schema)?.description ?? "";

/** Returns the rows of a key and of all keys below it. */
export function keyRows(path: string, schema: z.core.$ZodType, defaultValue: unknown = defaultOf(schema)): KeyRow[] {
  const shown = defaultValue === undefined || isEmptySection(defaultValue) ? null : spellValue(defaultValue);
  const required = schema._zod.optin === undefined;
  const row = { path, type: typeText(schema), defaultText: shown, required, meaning: meaningOf(schema) };
  const below = Object.entries(sectionKeys(schema) ?? {}).flatMap(([key, child]) => {
    const above = (defaultValue as Record<string, unknown> | null | undefined)?.[key];
    return keyRows(`${path}.${key}`, child, above ?? defaultOf(child));
  });
  return [
    row,
    ...below,
    ...nestedSections(schema).flatMap(([suffix, part]) => keyRows(`${path}${suffix}`, part).slice(1)),
  ];
}

const isEmptySection = (defaultValue: unknown): boolean =>
  typeof defaultValue === "object" &&
  defaultValue !== null &&
  !Array.isArray(defaultValue) &&
  Object.keys(defaultValue).length === 0;

/** Returns the sections within list items or alternatives, which have keys of their own. */
function nestedSections(schema: z.core.$ZodType): [suffix: string, part: z.core.$ZodType][] {
  const item = listItem(schema);
  if (item !== null) return sectionKeys(item) === null ? [] : [["[]", item]];
  const sections = (alternatives(schema) ?? []).filter((option) => sectionKeys(option) !== null);
  return sections.map((section) => ["", section]);
}

function typeText(schema: z.core.$ZodType): string {
  const kind = kindOf(schema);
  if (kind !== null) return kind.range === undefined ? kind.name : `${kind.name}, ${kind.range}`;
  const item = listItem(schema);
  if (item !== null) return `list${boundText(itemsMax(schema), item)}: ${typeText(item)}`;
  const options = alternatives(schema);
  if (options !== null) return [...new Set(options.map(typeText))].join("; or ");
  const { def } = innermost(schema)._zod;
  return def.type === "object" ? "mapping" : def.type;
}

/** Returns the maximum number of items of a list, or Infinity if it is unlimited. */
export function itemsMax(schema: z.core.$ZodType): number {
  const bounds = (innermost(schema)._zod.def.checks ?? []).map(({ _zod }) => _zod.def);
  return Math.min(...bounds.map((bound) => ("maximum" in bound ? Number(bound.maximum) : Number.POSITIVE_INFINITY)));
}

/** The maximum length of a list is not stated if it equals the number of values that an item may have. */
const boundText = (max: number, item: z.core.$ZodType): string =>
  innermost(item)._zod.values?.size === max ? " of" : ` of at most ${max}`;

/** Returns the default of a key as written in YAML, or undefined if there is none. */
function defaultOf(schema: z.core.$ZodType): unknown {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  return def.type === "default" || def.type === "prefault" ? def.defaultValue : undefined;
}

function spellValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spellValue).join(", ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  return `{${Object.entries(value)
    .map(([key, one]) => `${key}: ${spellValue(one)}`)
    .join(", ")}}`;
}

/** Formats keys as a Markdown table. */
export function keyTable(rows: readonly KeyRow[]): string {
  const lines = rows.map(({ path, type, defaultText: defaultValue, required, meaning }) => {
    const shown = defaultValue === null ? (required ? "required" : "–") : `\`${defaultValue}\``;
    return `| \`${path}\` | ${tableCell(type)} | ${tableCell(shown)} | ${tableCell(meaning)} |`;
  });
  return ["| key | type and range | default | meaning |", "| --- | --- | --- | --- |", ...lines].join("\n");
}

/** Escapes text for a cell of a Markdown table. */
export const tableCell = (text: string): string => text.replaceAll("|", "\\|");
