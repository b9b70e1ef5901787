import type { z } from "zod";
import { nearest } from "../../base/nearest-word.ts";
import { kindOf, schemaAt, sectionKeys } from "../schema/introspection.ts";
import { type Mark, type Marks, markKey, valueAt } from "../yaml/position.ts";
import { DOCUMENT_START, type Finding, keysText, type Path, quote } from "./problem.ts";

/** What is needed to locate an issue and to describe the expected value. */
interface IssueContext {
  readonly schema: z.core.$ZodType;
  readonly value: unknown;
  readonly marks: Marks;
}

/** Stands for a secret in messages. */
export const SECRET_FOUND = "a secret that is not shown";

/** Returns the findings of a zod issue, one for each wrong value or key. Its path is relative to `base`. */
export function toFindings(issue: z.core.$ZodIssue, context: IssueContext, base: Path = []): Finding[] {
  const path = [...base, ...issue.path.filter((step) => typeof step !== "symbol")];
  if (issue.code === "unrecognized_keys") return unknownKeys(path, issue.keys, context);
  // The intended alternative of a choice is the one that does not reject the value as a whole.
  const alternatives = issue.code === "invalid_union" ? issue.errors : [];
  const meant = alternatives.find(
    (errors) => !errors.some((error) => error.path.length === 0 && error.code !== "unrecognized_keys"),
  );
  return meant?.flatMap((error) => toFindings(error, context, path)) ?? [invalidValue(path, issue, context)];
}

function unknownKeys(path: Path, keys: readonly string[], { schema, value, marks }: IssueContext): Finding[] {
  const known = Object.keys(sectionKeys(schemaAt(schema, path, value) ?? schema) ?? {});
  const expected = `must be one of ${known.join(", ")}`;
  const message = (suggestion: string | null) => (suggestion === null ? `unknown key; ${expected}` : "unknown key");
  return keys.map((key): Finding => {
    const full = [...path, key];
    const position = marks.get(markKey(full))?.key ?? DOCUMENT_START;
    return {
      ...position,
      path: full,
      found: `the key ${quote(key)}`,
      expected,
      message,
      suggest: () => nearest(key, known) ?? longerOrShorter(key, known) ?? only(pathsOf(key, schema)),
    };
  });
}

const only = (words: readonly string[]): string | null => (words.length === 1 ? words[0]! : null);

/**
 * Returns the only key that begins with the words of `key`, or the other way round, such as `listen` for
 * `listen_address`.
 */
const longerOrShorter = (key: string, known: readonly string[]): string | null =>
  only(known.filter((each) => key.startsWith(`${each}_`) || each.startsWith(`${key}_`)));

/** Returns the paths of the keys with this name in the sections of a file. */
function pathsOf(key: string, schema: z.core.$ZodType): readonly string[] {
  return Object.entries(sectionKeys(schema) ?? {}).flatMap(([name, inner]) => [
    ...(name === key ? [name] : []),
    ...pathsOf(key, inner).map((path) => `${name}.${path}`),
  ]);
}

function invalidValue(path: Path, issue: z.core.$ZodIssue, context: IssueContext): Finding {
  const mark = context.marks.get(markKey(path));
  const expected = expectedText(issue);
  if (mark === undefined) {
    // The key is missing: use the position of its section.
    const parent = context.marks.get(markKey(path.slice(0, -1)));
    const position = parent?.key ?? parent?.position ?? DOCUMENT_START;
    return { ...position, path, found: "nothing", expected, message: `missing; ${expected}` };
  }
  const position = mark.kind === "mapping" ? (mark.key ?? mark.position) : mark.position;
  const here = schemaAt(context.schema, path, context.value);
  const written = valueAt(context.value, path);
  const found = foundText(mark, issue, here, written);
  const hint = written === null && here?._zod.optin !== undefined ? "; it may be left out" : "";
  const suggest = () => (typeof written === "string" ? nearest(written, allowedWords(issue)) : null);
  return { ...position, path, found, expected: expected + hint, suggest };
}

function expectedText(issue: z.core.$ZodIssue): string {
  const unmatched = issue.code === "invalid_union" && issue.errors.length === 0;
  return unmatched ? `must be one of ${allowedWords(issue).join(", ")}` : issue.message;
}

/** Returns the allowed words, if they are a closed list. */
function allowedWords(issue: z.core.$ZodIssue): readonly string[] {
  if (issue.code === "invalid_value") return issue.values.filter((value) => typeof value === "string");
  if (issue.code !== "invalid_union") return [];
  const words = "options" in issue ? (issue.options ?? []) : [];
  return [...words.filter((value) => typeof value === "string"), ...issue.errors.flat().flatMap(allowedWords)];
}

function foundText(mark: Mark, issue: z.core.$ZodIssue, here: z.core.$ZodType | null, written: unknown): string {
  if (here !== null && kindOf(here)?.secret && mark.kind === "scalar" && written !== "") return SECRET_FOUND;
  if (issue.code === "too_big" && Array.isArray(written)) return `a list of ${written.length}`;
  if (mark.kind !== "mapping" || issue.code === "invalid_type") return mark.found;
  const keys = Object.keys(written ?? {});
  // The keys of which exactly one is required.
  const choice = issue.code === "custom" ? ((issue.params?.exactlyOneOf ?? []) as readonly string[]) : [];
  const chosen = keys.filter((key) => choice.includes(key));
  return keys.length === 0 ? "no keys" : keysText(chosen.length > 1 ? chosen : keys);
}
