import { truncate } from "../../base/text.ts";
import type { Position } from "../yaml/position.ts";
import type { ReadDocument } from "../yaml-reader.ts";

/** Path of a key or value in a document: names of keys, and indexes of list items. */
export type Path = readonly (string | number)[];

/** An error or warning at a position in a file. */
export interface ConfigProblem extends Position {
  readonly file: string;
  /** The key, such as `collect.nodes.every`, or empty for the document as a whole. */
  readonly path: string;
  /** The value that was found, quoted; `nothing` if something is missing. Secrets are never shown. */
  readonly found: string;
  /** What is expected, as a clause: `must be a whole number from 1 to 10000`. */
  readonly expected: string;
  /** What is wrong; by default `found` and `expected` in one sentence. */
  readonly message: string;
  /** The nearest valid value, if there is one. */
  readonly suggestion?: string;
  /** Number of problems that are left out; only in the last problem of a long list. */
  readonly omitted?: number;
}

/** A problem that is found only when a value is used, such as a secret that can't be read. */
export interface KeyProblem {
  /** The key, as in {@link ConfigProblem}. */
  readonly key: string;
  readonly message: string;
}

/** The position of each key of a file. Can be passed between threads. */
export interface KeyPositions {
  readonly file: string;
  /** By the path of the key, as in {@link ConfigProblem}. */
  readonly positions: ReadonlyMap<string, Position>;
}

/**
 * A problem that {@link toProblem} completes with its file and message. A file can have one for each value, most of
 * which are never completed.
 */
export interface Finding extends Position {
  readonly path: Path;
  readonly found: string;
  readonly expected: string;
  /** Absent means `found FOUND; EXPECTED`. A function is called with the result of {@link suggest}. */
  readonly message?: string | ((suggestion: string | null) => string);
  /** Returns the nearest valid value, or null if none is near. This is slow. */
  readonly suggest?: () => string | null;
}

/** The position of a problem with a file as a whole. */
export const DOCUMENT_START = { line: 1, column: 1, path: [] } as const;

/** Largest number of problems listed. Later ones are often caused by earlier ones. */
export const PROBLEMS_MAX = 50;

/** Maximum number of characters of a value that a message quotes. */
const QUOTE_LENGTH_MAX = 60;
/** Maximum number of characters of each part of a problem, since a parser's own message may quote the file. */
const PART_LENGTH_MAX = 1_000;
/** Maximum number of names that a message lists. */
const LISTED_NAMES_MAX = 20;

/** Completes a finding. */
export function toProblem(file: string, finding: Finding): ConfigProblem {
  const { line, column } = finding;
  const [found, expected] = [truncate(finding.found, PART_LENGTH_MAX), truncate(finding.expected, PART_LENGTH_MAX)];
  const suggestion = finding.suggest?.() ?? null;
  const text = typeof finding.message === "function" ? finding.message(suggestion) : finding.message;
  const message = truncate(text ?? `found ${found}; ${expected}`, PART_LENGTH_MAX);
  const problem = { file, line, column, path: formatPath(finding.path), found, expected, message };
  return suggestion === null ? problem : { ...problem, suggestion };
}

/**
 * Completes the findings of one file, ordered by position and at most {@link PROBLEMS_MAX}. Only the first finding of
 * each position and key is kept, because the others repeat it.
 */
export function toProblems(file: string, findings: readonly Finding[]): readonly ConfigProblem[] {
  const first = new Map<string, Finding>();
  for (const finding of findings) {
    const key = JSON.stringify([finding.line, finding.column, ...finding.path]);
    if (!first.has(key)) first.set(key, finding);
  }
  const inOrder = [...first.values()].toSorted(byPosition);
  const shown = inOrder.slice(0, PROBLEMS_MAX).map((finding) => toProblem(file, finding));
  const next = inOrder[PROBLEMS_MAX];
  return next === undefined ? shown : [...shown, omittedProblem({ file, ...next }, inOrder.length - shown.length)];
}

/** Returns the position of each key of a file that was read. */
export const keyPositionsOf = ({ file, marks }: ReadDocument<unknown>): KeyPositions => ({
  file,
  positions: new Map(
    [...marks.values()].map(({ path, kind, key, position: { line, column } }) => [
      formatPath(path),
      kind === "mapping" && key !== null ? key : { line, column },
    ]),
  ),
});

/** Completes a problem with the position of its key, or of the document if the file does not have the key. */
export function locateProblem({ file, positions }: KeyPositions, { key, message }: KeyProblem): ConfigProblem {
  const { line, column } = positions.get(key) ?? DOCUMENT_START;
  return { file, line, column, path: key, found: "a value that can't be used", expected: "must be usable", message };
}

/** Joins the problems of several files, at most {@link PROBLEMS_MAX}. */
export function mergeProblems(lists: readonly (readonly ConfigProblem[])[]): readonly ConfigProblem[] {
  const all = lists.flat();
  const count = all.reduce((sum, { omitted }) => sum + (omitted ?? 1), 0);
  const shown = all.filter(({ omitted }) => omitted === undefined).slice(0, PROBLEMS_MAX);
  const next = all.find((problem, index) => problem !== shown[index]);
  return next === undefined ? shown : [...shown, omittedProblem(next, count - shown.length)];
}

function omittedProblem({ file, line, column }: Position & Pick<ConfigProblem, "file">, omitted: number) {
  const found = `${omitted} more ${omitted === 1 ? "problem" : "problems"}`;
  const expected = "must be corrected as well";
  return { file, line, column, path: "", found, expected, message: `and ${found}`, omitted };
}

/**
 * Replaces the credentials of URLs in a text: what is between the first `//` and the last `@` of a line. A password may
 * contain `@` and spaces.
 */
export const withoutCredentials = (text: string): string =>
  text.replace(/\/\/(.*@)?(.*)/g, (found, credentials, rest) => (credentials === undefined ? found : `//***@${rest}`));

/** Lists names for a message, at most {@link LISTED_NAMES_MAX}. */
export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, LISTED_NAMES_MAX).map((name) => truncate(name, QUOTE_LENGTH_MAX));
  const omitted = names.length - shown.length;
  return omitted === 0 ? shown.join(", ") : `${shown.join(", ")} and ${omitted} more`;
}

/** Returns "the key a" or "the keys a, b". Long lists are shortened. */
export const keysText = (keys: readonly string[]): string =>
  `the ${keys.length === 1 ? "key" : "keys"} ${listNames(keys)}`;

/** Formats a problem as compilers do: `file:line:column: key: message; did you mean "suggestion"?`. */
export function formatProblem(problem: ConfigProblem): string {
  const { file, line, column, path, message, suggestion } = problem;
  const hint = suggestion === undefined ? "" : `; did you mean ${quote(suggestion)}?`;
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}${hint}`;
}

/** Orders problems by position. */
export const byPosition = (one: Position, other: Position): number =>
  one.line - other.line || one.column - other.column;

/** Quotes a text for a message: escaped, truncated, and without the credentials of a URL. */
export function quote(text: string): string {
  return JSON.stringify(truncate(withoutCredentials(text), QUOTE_LENGTH_MAX));
}

/** Formats a path as `collect.nodes.every` or `faults[2].kind`; other keys are quoted. */
export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "string" && step.length <= QUOTE_LENGTH_MAX && /^[\w-]+$/.test(step))
      text += text === "" ? step : `.${step}`;
    else text += `[${typeof step === "number" ? step : quote(step)}]`;
  }
  return text;
}
