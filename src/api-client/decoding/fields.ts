import { parseTimestamp } from "./timestamp.ts";

/** Longest text that is taken from a record: what names, labels and identifiers need, with room. */
const TEXT_CHARACTERS_MAX = 256;
/** What a decoder puts in place of bytes that are no UTF-8: two ids that hold it may have been different. */
const REPLACEMENT_CHARACTER = "\ufffd";

type FieldCheck = (value: unknown) => boolean;
/** What the fields of a record must be where they are there; absent and null mean missing. */
export type FieldChecks = Readonly<Record<string, FieldCheck>>;

/** A record before its fields are checked. */
export type RawRecord = Readonly<Record<string, unknown>>;

/** A value as a record; one without fields where it is no object. */
export const asRawRecord = (json: unknown): RawRecord =>
  (typeof json === "object" && json !== null ? json : {}) as RawRecord;

/** A field that is not what it must be. */
export interface InvalidField {
  readonly field: string;
  readonly reason: "wrong_type" | "bad_time";
  /** What would be right, as a clause. */
  readonly expected: string;
}

const isMissing = (value: unknown): value is null | undefined => value === undefined || value === null;

/** A text of 1 to 256 characters that can stand as one segment of a path and is unlike any other in UTF-8. */
export const isIdentifier = (value: unknown): value is string =>
  typeof value === "string" &&
  value.length > 0 &&
  value.length <= TEXT_CHARACTERS_MAX &&
  value !== "." &&
  value !== ".." &&
  value.isWellFormed() &&
  !value.includes(REPLACEMENT_CHARACTER);

/** What {@link isIdentifier} takes, in words. */
export const IDENTIFIER_EXPECTED = `a text of 1 to ${TEXT_CHARACTERS_MAX} characters of valid Unicode`;

/** The identifier of another record, or missing; some services write an empty text for none. */
export const isReference: FieldCheck = (value) => isMissing(value) || value === "" || isIdentifier(value);

/** A text that a label can carry, or missing. A lone surrogate has no UTF-8, so two labels could become the same. */
export const isText: FieldCheck = (value) =>
  isMissing(value) || (typeof value === "string" && value.length <= TEXT_CHARACTERS_MAX && value.isWellFormed());

/** A count, a size or a share: never negative. */
export const isQuantity: FieldCheck = (value) =>
  isMissing(value) || (typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER);

/** An ISO 8601 timestamp, or missing. */
export const isTime: FieldCheck = (value) =>
  isMissing(value) || (typeof value === "string" && !Number.isNaN(parseTimestamp(value)));

/** A list, or missing. */
export const isList: FieldCheck = (value) => isMissing(value) || Array.isArray(value);

const expectations = new Map<FieldCheck, Pick<InvalidField, "reason" | "expected">>([
  [isReference, { reason: "wrong_type", expected: `it is ${IDENTIFIER_EXPECTED}` }],
  [
    isText,
    { reason: "wrong_type", expected: `it is a text of at most ${TEXT_CHARACTERS_MAX} characters of valid Unicode` },
  ],
  [isQuantity, { reason: "wrong_type", expected: `it is a number from 0 to ${Number.MAX_SAFE_INTEGER}` }],
  [isTime, { reason: "bad_time", expected: "it is an ISO 8601 timestamp" }],
  [isList, { reason: "wrong_type", expected: "it is a list" }],
]);

/** The fields that are not what they must be, in the order of `fields`; null where all are. */
export function findInvalidFields(
  raw: RawRecord,
  fields: FieldChecks,
): readonly [InvalidField, ...InvalidField[]] | null {
  let wrong: [InvalidField, ...InvalidField[]] | null = null;
  for (const field in fields) {
    const check = fields[field]!;
    if (check(raw[field])) continue;
    const found = { field, ...expectations.get(check)! };
    if (wrong === null) wrong = [found];
    else wrong.push(found);
  }
  return wrong;
}

/** The record with these fields missing. */
export const withoutFields = (raw: RawRecord, wrong: readonly InvalidField[]): RawRecord => ({
  ...raw,
  ...Object.fromEntries(wrong.map(({ field }) => [field, null])),
});

/** A checked text; null where it is missing. */
export const textOrNull = (value: unknown): string | null => (value as string | null | undefined) ?? null;

/** A checked reference; null where it is missing or empty. */
export const referenceOrNull = (value: unknown): string | null => (value as string | null | undefined) || null;

/** A checked number; null where it is missing. */
export const quantityOrNull = (value: unknown): number | null => (value as number | null | undefined) ?? null;

/** A checked timestamp as milliseconds since the Unix epoch; null where it is missing. */
export const timeOrNull = (value: unknown): number | null =>
  isMissing(value) ? null : parseTimestamp(value as string);
