/** Where a key or value stands in a document: names of keys, and indexes of list items. */
export type Path = readonly (string | number)[];

/** Something wrong, or worth a warning, at one place of a file. */
export interface ConfigProblem {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in characters. */
  readonly column: number;
  /** The key, such as `collect.nodes.every`; empty for the document as a whole. */
  readonly path: string;
  /** What stands there, quoted; `nothing` where something is missing. Secrets are never shown. */
  readonly found: string;
  /** What would be right, as a clause: `must be a whole number from 1 to 10000`. */
  readonly expected: string;
  /** Both in one sentence. */
  readonly message: string;
  /** The nearest thing that would have been right, if something is near. */
  readonly suggestion?: string;
}

/** A problem before it has a file and a message. */
export interface Finding {
  readonly line: number;
  readonly column: number;
  readonly path: Path;
  readonly found: string;
  readonly expected: string;
  /** Instead of `found …; expected …`. */
  readonly message?: string;
  readonly suggestion?: string | null;
}

/** Characters of a value that a message quotes. */
const QUOTE_LENGTH_MAX = 60;

/** Completes a finding. */
export function problemOf(file: string, finding: Finding): ConfigProblem {
  const { line, column, found, expected, suggestion } = finding;
  const message = finding.message ?? `found ${found}; ${expected}`;
  const problem = { file, line, column, path: formatPath(finding.path), found, expected, message };
  return typeof suggestion === "string" ? { ...problem, suggestion } : problem;
}

/** One line in the manner of compilers: `file:line:column: key: message; did you mean "suggestion"?`. */
export function formatProblem(problem: ConfigProblem): string {
  const { file, line, column, path, message, suggestion } = problem;
  const hint = suggestion === undefined ? "" : `; did you mean ${quote(suggestion)}?`;
  return `${file}:${line}:${column}: ${path === "" ? "" : `${path}: `}${message}${hint}`;
}

/** Orders problems as they stand in the file. */
export const byPlace = (one: ConfigProblem, other: ConfigProblem): number =>
  one.line - other.line || one.column - other.column;

/** Quotes a text for a message: escaped, clipped, and without the credentials of a URL. */
export function quote(text: string): string {
  const bare = text.replace(/\/\/[^@\s]*@/g, "//***@");
  return JSON.stringify(bare.length > QUOTE_LENGTH_MAX ? `${bare.slice(0, QUOTE_LENGTH_MAX)}…` : bare);
}

/** Writes a path as `collect.nodes.every` or `faults[2].kind`; keys that are no plain words are quoted. */
export function formatPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "string" && /^[\w-]+$/.test(step)) text += text === "" ? step : `.${step}`;
    else text += `[${typeof step === "number" ? step : quote(step)}]`;
  }
  return text;
}
