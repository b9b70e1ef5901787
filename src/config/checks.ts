import { dirname } from "node:path";
import { nearest } from "../base/nearest-word.ts";
import { fail, type Result } from "../base/result.ts";
import { REASON_PLACEHOLDERS } from "../model/policy/policy.ts";
import { LOCAL_ZONE } from "../model/policy/time-interval.ts";
import type { EpochMs } from "../model/time.ts";
import { type ConfigProblem, DOCUMENT_START, listNames, toProblem } from "./diagnostics/problem.ts";
import { findMatcherProblem, findQueryProblem } from "./regular-expressions.ts";
import type { LoaderCheck } from "./schema/value-types.ts";
import type { ValueCheck, ValueProblem, YamlSource } from "./yaml-reader.ts";

/** What is known of a valid CEL expression. */
export interface ExpressionUse {
  /** The fields that it reads. A usage is known only if `service.usage_scale` is set. */
  readonly fields: readonly { readonly name: string; readonly isUsage: boolean }[];
  /** Returns what is valid, but probably a mistake. */
  warnings(): readonly string[];
}

/** Checks that are passed to the loader. */
export interface ConfigChecks {
  /** Returns what is wrong with a cron expression, or null if it is valid. */
  cron(expression: string): string | null;
  /** The names of all `proxynet_*` metric families. */
  readonly families: readonly string[];
  /** Every reason to hold a node. */
  readonly holdReasons: readonly string[];
  /**
   * Returns what is known of a CEL expression. Fails with everything that is wrong with it, and the index of the
   * character at which it is.
   */
  expression(text: string): Result<ExpressionUse, readonly { readonly message: string; readonly offset: number }[]>;
}

/** A configuration file, and what is needed to check it. */
export interface ConfigSource extends YamlSource {
  readonly readFile: ReadFile;
  /** Returns the files that match a glob relative to `folder`, as paths for `readFile`. */
  listFiles(glob: string, folder: string): readonly string[];
  /** Returns why a glob relative to `folder` can't match any file, or null if the reason is not known. */
  globProblem(glob: string, folder: string): string | null;
  readonly checks: ConfigChecks;
  /** The time at which it is read. */
  readonly now: EpochMs;
}

/** Reads a file that another file names. The error names the file and the reason. */
export type ReadFile = (path: string) => Result<string, string>;

/** Names that policies may refer to. */
export interface DefinedNames {
  /** Null means any. */
  readonly receivers: readonly string[] | null;
  readonly windows: readonly string[];
  readonly prometheus: boolean;
  readonly alertmanager: boolean;
}

/** Reads a file that another file names. The error is a problem at its beginning. */
export function readReferencedFile(file: string, readFile: ReadFile): Result<string, readonly ConfigProblem[]> {
  const text = readFile(file);
  if (text.ok) return text;
  const expected = "must be a file that can be read";
  return fail([toProblem(file, { ...DOCUMENT_START, found: "nothing", expected, message: text.error })]);
}

/**
 * Creates the checks that the schema leaves to the loader. Policies may refer only to `names`, or to any name if that
 * is null. Files that globs match are added to `found`.
 */
export const createChecks =
  (source: ConfigSource, names: DefinedNames | null, found = new Set<string>()): ValueCheck =>
  (check, value) => {
    if (check === "expression") return checkExpression(value, source);
    // A web configuration may be empty. Problems in it are reported at its own lines.
    if (check === "file" || check === "web") return checkFile(value, source.readFile, check === "web");
    const problem = check === "glob" ? checkGlob(value, source, found) : TEXT_CHECKS[check](value, source, names);
    return problem === null ? [] : [problem];
  };

function checkExpression(text: string, { checks }: ConfigSource): readonly ValueProblem[] {
  const compiled = checks.expression(text);
  if (compiled.ok) return [];
  return compiled.error.map(({ message, offset }) => ({ expected: `must be a CEL expression: ${message}`, offset }));
}

type TextCheck = (value: string, source: ConfigSource, names: DefinedNames | null) => ValueProblem | null;

/** The checks that find at most one problem of a text. */
const TEXT_CHECKS: Readonly<Record<Exclude<LoaderCheck, "expression" | "file" | "web" | "glob">, TextCheck>> = {
  cron(value, { checks }) {
    const problem = checks.cron(value);
    return problem === null ? null : { expected: `must be a cron expression of five or six fields: ${problem}` };
  },
  template: checkTemplate,
  family: (value, { checks }) => checkName("metric family that begins with proxynet_", value, checks.families),
  receiver: (value, _, names) => (names?.receivers ? checkName("receiver", value, names.receivers, "receivers") : null),
  window: (value, _, names) => names && checkName("time interval", value, names.windows, "time_intervals"),
  query: (value, _, names) => requireSection("prometheus", names?.prometheus) ?? invalidRegexp(findQueryProblem(value)),
  matcher: (value, _, names) =>
    requireSection("alertmanager", names?.alertmanager) ?? invalidRegexp(findMatcherProblem(value)),
  timezone: checkTimeZone,
  path: () => null,
};

function checkGlob(glob: string, source: ConfigSource, found: Set<string>): ValueProblem | null {
  const folder = dirname(source.file);
  const files = source.listFiles(glob, folder);
  for (const file of files) found.add(file);
  if (files.length > 0) return null;
  const problem = source.globProblem(glob, folder);
  return { expected: `must match at least one file${problem === null ? "" : `: ${problem}`}` };
}

/** Checks a name. The message lists the known ones if `section`, which defines them, is given. */
function checkName(kind: string, value: string, known: readonly string[], section?: string): ValueProblem | null {
  if (known.includes(value)) return null;
  const list = section === undefined ? "" : `: ${listNames(known)}`;
  if (known.length === 0) return { expected: `must be the name of a ${kind}; the section ${section} has none` };
  return { expected: `must be the name of a ${kind}${list}`, suggest: () => nearest(value, known) };
}

const requireSection = (section: string, isThere: boolean | undefined): ValueProblem | null =>
  isThere === false ? { expected: `needs the section ${section}, with its url` } : null;

const invalidRegexp = (problem: ReturnType<typeof findMatcherProblem>): ValueProblem | null =>
  problem && { expected: `must have a valid regular expression: ${problem.message}`, offset: problem.offset };

function checkTemplate(text: string): ValueProblem | null {
  const known = REASON_PLACEHOLDERS.map((name) => `{{${name}}}`);
  const wrong = [...text.matchAll(/\{\{([^{}]*)(?:\}\})?/g)].find(([found]) => !known.includes(found));
  if (wrong === undefined) return null;
  const suggest = () => {
    const meant = nearest(wrong[1]!.trim(), REASON_PLACEHOLDERS);
    return meant === null ? null : `{{${meant}}}`;
  };
  return { expected: `must have no placeholders except ${known.join(", ")}`, suggest, offset: wrong.index };
}

function checkTimeZone(value: string): ValueProblem | null {
  const expected = "must be the name of an IANA time zone, such as Europe/Paris or UTC";
  if (value === LOCAL_ZONE) return null;
  // Offsets such as +02:00 are not names, and have no daylight saving time.
  if (/^[A-Za-z]/.test(value)) {
    try {
      const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: value }).resolvedOptions();
      // Alertmanager requires the exact spelling, which can't be checked for aliases of a zone.
      if (timeZone === value || timeZone.toLowerCase() !== value.toLowerCase()) return null;
    } catch {
      // Rejected below.
    }
  }
  return { expected, suggest: () => nearest(value, ["UTC", ...Intl.supportedValuesOf("timeZone")]) };
}

/** Checks that a file can be read, and that it is not empty unless it may be. */
export function checkFile(path: string, readFile: ReadFile, mayBeEmpty = false): readonly ValueProblem[] {
  const content = readFile(path);
  if (!content.ok) return [{ expected: `must be a file that can be read: ${content.error}` }];
  return mayBeEmpty || content.value.trim() !== "" ? [] : [{ expected: "must be a file that is not empty" }];
}
