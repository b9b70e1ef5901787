import { describeJson } from "../errors.ts";
import type { RawRecord } from "../json-body.ts";
import type { OnRemark } from "./records.ts";
import { parseTimestamp } from "./timestamp.ts";

/** Maximum length of a text in a record. */
const TEXT_CHARACTERS_MAX = 256;
/** Stands for bytes that are not UTF-8, so two ids that contain it may have been different. */
const REPLACEMENT_CHARACTER = "\ufffd";

type FieldCheck = (value: unknown) => boolean;
/** The check of each field of a record. A field that is absent or null is missing, which all checks accept. */
export type FieldChecks = Readonly<Record<string, FieldCheck>>;

const isMissing = (value: unknown): value is null | undefined => value === undefined || value === null;

/** A text of 1 to 256 characters that can be a path segment and is unique when encoded as UTF-8. */
export const isIdentifier = (value: unknown): value is string =>
  typeof value === "string" &&
  value.length > 0 &&
  value.length <= TEXT_CHARACTERS_MAX &&
  value !== "." &&
  value !== ".." &&
  value.isWellFormed() &&
  !value.includes(REPLACEMENT_CHARACTER);

/** Describes what {@link isIdentifier} accepts. */
export const IDENTIFIER_EXPECTED = `a string of 1 to ${TEXT_CHARACTERS_MAX} characters of valid Unicode`;

/** The identifier of another record, or missing. Some services send an empty text if there is none. */
export const isReference: FieldCheck = (value) => isMissing(value) || value === "" || isIdentifier(value);

/**
 * A text that can be a label value, or missing. Lone surrogates are invalid: encoded as UTF-8, two labels could be
 * equal.
 */
export const isText: FieldCheck = (value) =>
  isMissing(value) || (typeof value === "string" && value.length <= TEXT_CHARACTERS_MAX && value.isWellFormed());

/** A count, size or share that is not negative, or missing. */
export const isQuantity: FieldCheck = (value) =>
  isMissing(value) || (typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER);

/** An ISO 8601 timestamp, or missing. */
export const isTime: FieldCheck = (value) => !Number.isNaN(readTime(value));

/** Returns a timestamp in milliseconds since the Unix epoch, or null if it is missing, or NaN if it is invalid. */
export function readTime(value: unknown): number | null {
  if (isMissing(value)) return null;
  return typeof value === "string" ? parseTimestamp(value) : Number.NaN;
}

/** A list, or missing. */
export const isList: FieldCheck = (value) => isMissing(value) || Array.isArray(value);

/** What each check accepts. */
const EXPECTED = new Map<FieldCheck, string>([
  [isReference, IDENTIFIER_EXPECTED],
  [isText, `a string of at most ${TEXT_CHARACTERS_MAX} characters of valid Unicode`],
  [isQuantity, `a number from 0 to ${Number.MAX_SAFE_INTEGER}`],
  [isTime, "an ISO 8601 timestamp"],
  [isList, "a list"],
]);

/** Removes the invalid fields of a record, with one remark that describes the first of them. */
export function dropInvalidFields(
  raw: RawRecord,
  fields: FieldChecks,
  id: string | null,
  onRemark: OnRemark,
): RawRecord {
  const invalid: string[] = [];
  for (const field in fields) if (!fields[field]!(raw[field])) invalid.push(field);
  const [first] = invalid;
  if (first === undefined) return raw;
  const check = fields[first]!;
  const more = invalid.length === 1 ? "" : `; other invalid fields: ${invalid.length - 1}`;
  const detail = `${first} is ${describeJson(raw[first])}; it must be ${EXPECTED.get(check)}${more}`;
  onRemark({ reason: check === isTime ? "bad_time" : "wrong_type", id, detail });
  return { ...raw, ...Object.fromEntries(invalid.map((field) => [field, null])) };
}

/** Returns a checked text, or null if missing. */
export const textOrNull = (value: unknown): string | null => (value as string | null | undefined) ?? null;

/** Returns a checked reference, or null if missing or empty. */
export const referenceOrNull = (value: unknown): string | null => (value as string | null | undefined) || null;

/** Returns a checked number, or null if missing. */
export const quantityOrNull = (value: unknown): number | null => (value as number | null | undefined) ?? null;
