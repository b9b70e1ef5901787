import { instantOf } from "./instant.ts";

/** Longest text that is taken from a record: what names, labels and identifiers need, with room. */
const TEXT_CHARACTERS_MAX = 256;

type Check = (value: unknown) => boolean;
/** What the fields of a record must be where they are there; absent and null mean missing. */
export type Fields = Readonly<Record<string, Check>>;

const isMissing = (value: unknown): value is null | undefined => value === undefined || value === null;

/** A text of 1 to 256 characters that can stand as one segment of a path. */
export const isIdentifier = (value: unknown): value is string =>
  typeof value === "string" &&
  value.length > 0 &&
  value.length <= TEXT_CHARACTERS_MAX &&
  value !== "." &&
  value !== ".." &&
  value.isWellFormed();

/** A text that a label can carry, or missing. */
export const isText: Check = (value) =>
  isMissing(value) || (typeof value === "string" && value.length <= TEXT_CHARACTERS_MAX);

/** A count, a size or a share: never negative. */
export const isQuantity: Check = (value) =>
  isMissing(value) || (typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER);

/** An ISO 8601 timestamp, or missing. */
export const isTime: Check = (value) =>
  isMissing(value) || (typeof value === "string" && !Number.isNaN(instantOf(value)));

/** The first field that isn't what it must be, and what would be right; null where all are. */
export function findWrong(
  raw: Readonly<Record<string, unknown>>,
  fields: Fields,
): { field: string; reason: "wrong_type" | "bad_time"; right: string } | null {
  for (const field in fields) {
    const check = fields[field]!;
    if (check(raw[field])) continue;
    if (check === isTime) return { field, reason: "bad_time", right: "it is an ISO 8601 timestamp" };
    const right =
      check === isText ? `it is a text of at most ${TEXT_CHARACTERS_MAX} characters` : "it is a number from 0";
    return { field, reason: "wrong_type", right };
  }
  return null;
}

/** A checked text; null where it is missing. */
export const text = (value: unknown): string | null => (value as string | null | undefined) ?? null;

/** A checked number; null where it is missing. */
export const quantity = (value: unknown): number | null => (value as number | null | undefined) ?? null;

/** A checked timestamp as milliseconds since the Unix epoch; null where it is missing. */
export const time = (value: unknown): number | null => (isMissing(value) ? null : instantOf(value as string));
