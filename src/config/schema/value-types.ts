import { z } from "zod";
import { type DurationMs, parseDuration } from "../../base/duration.ts";
import { parsePercent, type Share } from "../../base/percent.ts";
import { fail, ok, type Result } from "../../base/result.ts";

/** Checks that the loader runs, because they need more than the schema. */
export type LoaderCheck =
  | "cron"
  | "expression"
  | "family"
  | "file"
  | "glob"
  | "matcher"
  | "path"
  | "query"
  | "receiver"
  | "template"
  | "timezone"
  | "web"
  | "window";

/** Properties of a value for the reference, the loader and error messages, in addition to its zod schema. */
export interface ValueKind {
  /** Its name in the reference, such as `duration`. */
  readonly name: string;
  /** The allowed values, in words. Absent means any of the kind. */
  readonly range?: string;
  readonly check?: LoaderCheck;
  /** Description of a secret, such as `the API key`. Absent if it is not a secret, so messages may show it. */
  readonly secret?: string;
  /** Whether an empty string counts as absent in a file that follows Go's rules. Absent means false. */
  readonly mayBeBlank?: boolean;
}

/** The kind of each key, by its innermost zod schema, which parses the written value. */
export const valueKinds = z.registry<ValueKind>();

const DURATION_PATTERN = "(?:0|(?=\\d)(?:\\d+y)?(?:\\d+w)?(?:\\d+d)?(?:\\d+h)?(?:\\d+m)?(?:\\d+s)?(?:\\d+ms)?)";
const DURATION_EXPECTED = "a duration is a number with a unit, largest unit first, such as 30s, 5m, 1h30m or 7d";

/**
 * A text that `parse` converts; its error says what is expected. `expected` is the error for a value that is not a
 * text, and `pattern` is for the JSON Schema.
 */
export function parsedText<T>(
  kind: ValueKind,
  expected: string,
  pattern: string,
  parse: (text: string) => Result<T, string>,
) {
  const written = z.string({ error: expected }).meta({ pattern }).register(valueKinds, kind);
  return written.transform((value, context): T => {
    const read = parse(value);
    return read.ok ? read.value : rejectValue(context, value, read.error);
  });
}

/** A duration from `min` to `max` in Prometheus' format, converted to milliseconds. */
export function duration(min: string, max: string) {
  const range = `${min} to ${max}`;
  return parsedText({ name: "duration", range }, DURATION_EXPECTED, `^${DURATION_PATTERN}$`, (text) => {
    const read = parseDuration(text);
    const fits = !read.ok || (read.value >= durationBound(min) && read.value <= durationBound(max));
    return fits ? read : fail(`must be a duration from ${range}`);
  });
}

/** A duration that is not 0, or `never`, which becomes Infinity. */
export function durationOrNever() {
  const expected = "must be a duration such as 30d, or never";
  return parsedText({ name: "duration or never" }, expected, `^(?:never|${DURATION_PATTERN})$`, (text) => {
    const read = text === "never" ? ok(Number.POSITIVE_INFINITY) : parseDuration(text);
    return read.ok && read.value > 0 ? read : fail(expected);
  });
}

/** A duration that may be negative, such as `-90s`. */
export function signedDuration() {
  const expected = "must be a duration such as 90s or -90s";
  return parsedText({ name: "duration, may be negative" }, expected, `^-?${DURATION_PATTERN}$`, (text) => {
    const read = parseDuration(text.replace(/^-/, ""));
    if (!read.ok) return fail(expected);
    return ok(text.startsWith("-") ? -read.value : read.value);
  });
}

function durationBound(text: string): DurationMs {
  const read = parseDuration(text);
  if (!read.ok) throw new Error(`invalid duration in the schema: ${text}`);
  return read.value;
}

/** A percentage from 0 to `max` percent, converted to a share from 0 to 1. */
export function share(max: number) {
  const range = `0% to ${max}%`;
  const expected = `must be a percentage from ${range}, such as ${Math.min(20, max)}%`;
  return parsedText({ name: "percentage", range }, expected, "^\\d+(?:\\.\\d+)?%$", (text): Result<Share, string> => {
    const read = parsePercent(text);
    return read.ok && read.value <= max / 100 ? read : fail(expected);
  });
}

/** A whole number from `min` to `max`. */
export function wholeNumber(min: number, max: number) {
  const expected = `must be a whole number from ${min} to ${max}`;
  return z
    .int({ error: expected })
    .min(min, expected)
    .max(max, expected)
    .register(valueKinds, { name: "integer", range: `${min} to ${max}` });
}

/** One of a closed list of words or numbers. */
export function oneOf<const T extends string | number>(values: readonly T[]) {
  const schema = z.literal(values, { error: `must be one of ${values.join(", ")}` });
  valueKinds.add(schema, { name: values.join(", ") });
  return schema;
}

/**
 * A text that is not empty and matches a pattern; by default, it must not be blank. `noun` describes the expected value
 * in the error message, and `hint` returns what to do about a value that is not a text.
 */
export function text(noun: string, kind: ValueKind = { name: "string" }, pattern = /\S/, hint = quotesHint) {
  const expected = `must be ${noun}`;
  return z
    .string({ error: ({ input }) => expected + hint(input) })
    .min(1, expected)
    .regex(pattern, expected)
    .register(valueKinds, kind);
}

/** `true` or `false`. */
export const booleanFlag = () =>
  z.boolean({ error: "must be true or false" }).register(valueKinds, { name: "boolean" });

/** Globs of policy files, at most 20. The loader checks that each matches a file. */
export const policyGlobs = () =>
  list(
    text("a glob of policy files", { name: "glob", check: "glob" }, undefined, globHint),
    "globs of policy files",
    20,
  );

const globHint = (read: unknown): string =>
  typeof read === "object" && read !== null && "when" in read
    ? ", such as policies/*.yaml; policies belong in such a file"
    : quotesHint(read);

/** A CEL expression. The loader checks its syntax, its types and the fields that it reads. */
export const expression = () => text("a CEL expression", { name: "CEL expression", check: "expression" });

/** Returns what to do about a text that YAML read as something else, or an empty text if the value is missing. */
function quotesHint(read: unknown): string {
  if (read === null || read === undefined) return "";
  const kind = Array.isArray(read) ? "list" : typeof read === "object" ? "mapping" : typeof read;
  return `; quote it, or YAML reads it as a ${kind}`;
}

/** Path of a file that must exist. A relative path is relative to the folder of the file that names it. */
export const filePath = () => text("the path of a file", { name: "file", check: "file" });

/** Path of a web configuration file, which is checked together with the file that names it. */
export const webFilePath = () => text("the path of a file", { name: "file", check: "web" });

/** Longest URL that browsers and proxies accept, in characters. */
const URL_LENGTH_MAX = 2_048;

/** An http or https URL. `refusal` returns a further requirement that is not met, or null. */
export function httpUrl(noun: string, refusal: (url: URL) => string | null, kind: ValueKind = { name: "URL" }) {
  const expected = `must be ${noun}`;
  return parsedText(kind, expected, "^[hH][tT][tT][pP][sS]?://", (text) => {
    if (text.length > URL_LENGTH_MAX) return fail(`must be at most ${URL_LENGTH_MAX} characters long`);
    const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
    if (url === null) return fail(expected);
    const other = refusal(url);
    return other === null ? ok(url.href) : fail(`must be ${other}`);
  });
}

/**
 * An http or https URL to which paths are appended, without its trailing slashes. `refusal` is as in {@link httpUrl}.
 */
export const baseUrl = (noun: string, refusal: (url: URL) => string | null) =>
  httpUrl(noun, refusal).transform((url) => url.replace(/\/+$/, ""));

/** A mapping that may have only these keys. */
export function section<const Shape extends z.core.$ZodShape>(shape: Shape) {
  const expected = `must be a mapping (keys: ${Object.keys(shape).join(", ")})`;
  return z.strictObject(shape, { error: (issue) => (issue.code === "invalid_type" ? expected : undefined) });
}

/** A list of `item`s, at most `max` of them. */
export function list<Item extends z.core.$ZodType>(item: Item, noun: string, max: number) {
  const expected = `must be a list of ${noun}, at most ${max}`;
  return z.array(item, { error: expected }).max(max, expected);
}

/** Rejects a value inside a transform, or the value at a path in it. `expected` is a clause such as `must be unique`. */
export function rejectValue(
  context: z.core.$RefinementCtx,
  input: unknown,
  expected: string,
  path: (string | number)[] = [],
): never {
  context.issues.push({ code: "custom", message: expected, input, path });
  return z.NEVER;
}

/**
 * Returns whether exactly one of some keys is given. A wrong value counts as given, since it is reported separately.
 */
export const hasExactlyOne = (value: object, ...keys: readonly string[]): boolean =>
  keys.filter((key) => key in value).length === 1;

/** A check that two keys of a section are not both given. */
export const notBoth = (one: string, other: string) =>
  z.refine<object>((value) => !(one in value && other in value), {
    ...RUN_ALWAYS,
    error: `must have ${one} or ${other}, not both`,
  });

/** A section in which at least one of `keys` is required. */
export const atLeastOneOf = <const Shape extends z.core.$ZodShape>(
  keys: readonly (keyof Shape & string)[],
  error: string,
  shape: Shape,
) =>
  section(shape)
    .refine((value) => keys.some((key) => key in value), { ...RUN_ALWAYS, error })
    .meta({ anyOf: keys.map((key) => ({ required: [key] })) });

/** A section in which exactly one of `keys` is required. */
export function exactlyOneOf<const Shape extends z.core.$ZodShape>(
  keys: readonly (keyof Shape & string)[],
  shape: Shape,
) {
  const error =
    keys.length === 2 ? `must have either ${keys.join(" or ")}` : `must have exactly one of ${keys.join(", ")}`;
  return section(shape)
    .refine((value) => hasExactlyOne(value, ...keys), { ...RUN_ALWAYS, error, params: { exactlyOneOf: keys } })
    .meta({ oneOf: keys.map((key) => ({ required: [key] })) });
}

/** Option of checks of several keys of a section, which run even if one of the keys is invalid. */
export const RUN_ALWAYS = { when: ({ value }: { value: unknown }) => typeof value === "object" && value !== null };

type CamelCase<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Text;

/** The keys of a section, or of any of several alternatives. */
type KeysOf<Section> = Section extends unknown ? keyof Section : never;

/** A section with camelCase keys; the keys of `Durations` end in `Ms`. */
type CamelKeys<Section, Durations extends KeysOf<Section> = never> = {
  [Key in keyof Section as Key extends string
    ? `${CamelCase<Key>}${Key extends Durations ? "Ms" : ""}`
    : never]: Section[Key];
};

/** Renames the keys of a section to camelCase, in the same order; those of `durations` get the suffix `Ms`. */
export function camelKeys<Section extends object, Durations extends KeysOf<Section> = never>(
  section: Section,
  ...durations: readonly Durations[]
): CamelKeys<Section, Durations> {
  const entries = Object.entries(section).map(([key, value]) => {
    const name = key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return [durations.some((duration) => duration === key) ? `${name}Ms` : name, value];
  });
  return Object.fromEntries(entries) as CamelKeys<Section, Durations>;
}

/** Reports every entry of a list that has the same name as an earlier one. */
export function rejectDuplicateNames(entries: readonly { readonly name: string }[], context: z.core.$RefinementCtx) {
  for (const [index, { name }] of entries.entries()) {
    if (entries.findIndex((entry) => entry.name === name) === index) continue;
    rejectValue(context, name, "must be unique, but an earlier entry has the same name", [index, "name"]);
  }
}
