import { nearest } from "../base/nearest-word.ts";
import { fail, type Result } from "../base/result.ts";
import { REASON_PLACEHOLDERS } from "../model/policy/policy.ts";
import { LOCAL_ZONE } from "../model/policy/time-interval.ts";
import { type ConfigProblem, toProblem } from "./diagnostics/problem.ts";
import type { Config } from "./schema/config.ts";
import type { LoaderCheck } from "./schema/value-types.ts";
import type { ValueProblem } from "./schema-reader.ts";
import type { YamlSource } from "./yaml/document.ts";

/** A field that an expression reads, as far as warnings need it. */
export interface FieldUse {
  readonly name: string;
  /** The collector that brings it. */
  readonly source: "nodes" | "details" | "sessions";
  /** Known only where `service.usage_scale` is set. */
  readonly isUsage: boolean;
}

/** A cron schedule of which the limits don't carry every run, and a message about it. */
export interface SkippedRuns {
  readonly collector: "nodes" | "sessions" | "stats" | "hourly";
  readonly message: string;
}

/** What the loader can't know by itself. */
export interface ConfigChecks {
  /** Says what is wrong with a cron expression; null: nothing. */
  cron(expression: string): string | null;
  /** The names of all metric families. */
  readonly families: ReadonlySet<string> | readonly string[];
  /** Says what is wrong with a CEL expression, and at which of its characters, counted from 0; null: nothing. */
  expression(text: string): { readonly message: string; readonly offset: number } | null;
  /** The fields that a CEL expression reads, with which nothing is wrong. */
  fields(text: string): readonly FieldUse[];
  /** Cron schedules of which the limits don't carry every run; absent: none are looked for. */
  skippedRuns?(config: Config): readonly SkippedRuns[];
}

/** A configuration file, and all that is needed to judge it. */
export interface ConfigSource extends YamlSource {
  /** Reads a file that the configuration names. Without it, such files are not looked at. */
  readonly readFile?: (path: string) => Result<string, string>;
  /**
   * The files that a glob, relative to `folder`, finds, as paths for `readFile`. Without it, no policy file is looked
   * at, and there are no policies.
   */
  readonly listFiles?: (glob: string, folder: string) => readonly string[];
  readonly checks: ConfigChecks;
}

/** What policies may name. */
export interface DefinedNames {
  readonly receivers: readonly string[];
  readonly windows: readonly string[];
  readonly prometheus: boolean;
  readonly alertmanager: boolean;
}

const DOCUMENT_START = { line: 1, column: 1, path: [] } as const;

/** Reads a file that another one names. */
export function readReferencedFile(
  file: string,
  readFile: ConfigSource["readFile"],
): Result<string, readonly ConfigProblem[]> {
  const text = readFile?.(file) ?? fail(`can't read ${file}: no files are read here`);
  if (text.ok) return text;
  const expected = "must be a file that can be read";
  return fail([toProblem(file, { ...DOCUMENT_START, found: "nothing", expected, message: text.error })]);
}

/** What the checks of one file stand on. */
export interface CheckContext {
  readonly source: ConfigSource;
  resolvePath(path: string): string;
  /** Paths of the files that a glob finds. */
  find(glob: string): readonly string[];
  /** Null: the configuration is wrong, so what it has is not known. */
  readonly names: DefinedNames | null;
}

/** Makes one of the checks that the schema leaves to the loader; null: the value is fine. */
export function checkValue(check: LoaderCheck, value: string, checkContext: CheckContext): ValueProblem | null {
  const { source, names } = checkContext;
  switch (check) {
    case "cron": {
      const why = source.checks.cron(value);
      return why === null ? null : { expected: `must be a cron expression of five or six fields: ${why}` };
    }
    case "expression": {
      const fault = source.checks.expression(value);
      return fault === null ? null : { expected: `must be a CEL expression: ${fault.message}`, offset: fault.offset };
    }
    case "template":
      return checkTemplate(value);
    case "family":
      return checkName("metric family", value, [...source.checks.families]);
    case "receiver":
      return names && checkName("receiver", value, names.receivers, "receivers");
    case "window":
      return names && checkName("time interval", value, names.windows, "time_intervals");
    case "query":
      return requireSection("prometheus", names?.prometheus);
    case "matcher":
      return requireSection("alertmanager", names?.alertmanager);
    case "timezone":
      return checkTimeZone(value);
    case "file":
      return checkFile(value, checkContext);
    case "web":
      // An empty one is fine. Problems within the file are reported at its own lines.
      return checkReadable(value, checkContext);
    case "glob":
      return source.listFiles === undefined || checkContext.find(value).length > 0
        ? null
        : { expected: "must find at least one file" };
    case "path":
      return null;
    default:
      return check satisfies never;
  }
}

/** Names that a message lists; of more, the nearest one is suggested. */
const LISTED_NAMES_MAX = 20;

/** `section`: the section that defines such names. */
function checkName(what: string, value: string, known: readonly string[], section?: string): ValueProblem | null {
  if (known.includes(value)) return null;
  const list = section === undefined || known.length > LISTED_NAMES_MAX ? "" : `: ${known.join(", ")}`;
  if (known.length === 0) return { expected: `must be the name of a ${what}; the section ${section} has none` };
  return { expected: `must be the name of a ${what}${list}`, suggest: () => nearest(value, known) };
}

const requireSection = (section: string, isThere: boolean | undefined): ValueProblem | null =>
  isThere === false ? { expected: `needs the section ${section}, with its url` } : null;

function checkTemplate(text: string): ValueProblem | null {
  for (const { 0: found, 1: name, index } of text.matchAll(/\{\{([^{}]*)(?:\}\})?/g)) {
    if (REASON_PLACEHOLDERS.some((placeholder) => found === `{{${placeholder}}}`)) continue;
    const placeholders = REASON_PLACEHOLDERS.map((placeholder) => `{{${placeholder}}}`);
    const suggest = () => {
      const meant = nearest(String(name).trim(), REASON_PLACEHOLDERS);
      return meant === null ? null : `{{${meant}}}`;
    };
    return {
      expected: `must have no placeholders but ${placeholders.join(", ")}`,
      suggest,
      offset: index,
    };
  }
  return null;
}

function checkTimeZone(value: string): ValueProblem | null {
  const expected = "must be the name of an IANA time zone, such as Europe/Paris or UTC";
  if (value === LOCAL_ZONE) return null;
  // Offsets such as +02:00 are no names, and know no summer time.
  if (/^[A-Za-z]/.test(value)) {
    try {
      const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: value }).resolvedOptions();
      // Alertmanager wants the zone's own spelling. Of another name for a zone it can't be told here.
      if (timeZone === value || timeZone.toLowerCase() !== value.toLowerCase()) return null;
    } catch {
      // It is refused below.
    }
  }
  return { expected, suggest: () => nearest(value, ["UTC", ...Intl.supportedValuesOf("timeZone")]) };
}

function checkReadable(value: string, { source, resolvePath }: CheckContext): ValueProblem | null {
  const content = source.readFile?.(resolvePath(value));
  return content === undefined || content.ok ? null : { expected: `must be a file that can be read: ${content.error}` };
}

function checkFile(value: string, checkContext: CheckContext): ValueProblem | null {
  const content = checkContext.source.readFile?.(checkContext.resolvePath(value));
  if (!content?.ok) return checkReadable(value, checkContext);
  return content.value.trim() === "" ? { expected: "must be a file that is not empty" } : null;
}
