import { dirname, isAbsolute, join } from "node:path";
import { LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { fail, ok, type Result } from "../base/result.ts";
import { type ConfigProblem, type Finding, quote, toProblems } from "./diagnostics/problem.ts";
import { EMPTY_FILE, syntaxFinding, textProblem } from "./diagnostics/yaml-faults.ts";
import { toFindings } from "./diagnostics/zod-issues.ts";
import { innermost, kindOf, schemaAt, sectionKeys } from "./schema/introspection.ts";
import type { LoaderCheck } from "./schema/value-types.ts";
import { type Mark, type Marks, valueAt } from "./yaml/position.ts";
import { brokenDocument, positionAt, readTree, tooDeepAt, type YamlDocument } from "./yaml/tree.ts";

/** A YAML file: its path, its text, and the environment variables that it may refer to. */
export interface YamlSource {
  readonly file: string;
  readonly text: string;
  readonly env: NodeJS.ProcessEnv;
  /**
   * Whether the file is read as Go's yaml.v2 reads it: with the booleans of YAML 1.1, and as an empty mapping if it has
   * no keys. Absent means false.
   */
  readonly isGoYaml?: boolean;
}

/** What is wrong with a value: what is expected, and a function that finds the nearest valid value. */
export interface ValueProblem extends Pick<Finding, "expected" | "suggest"> {
  /** Index of the wrong character. Absent if the whole value is wrong. */
  readonly offset?: number;
}

/** Runs a check of the loader on a text, or on a path that is resolved. Returns no problem if it is valid. */
export type ValueCheck = (check: LoaderCheck, value: string) => readonly ValueProblem[];

/** A file that was read: its value, and the position of each key and value. */
export interface ReadDocument<T> {
  readonly file: string;
  readonly value: T;
  readonly marks: Marks;
}

/** A file that was compared with a schema. */
interface CheckedDocument<T> extends YamlDocument {
  /**
   * The value as the schema returns it, or null if the schema rejects it. Other checks may have findings in both cases.
   */
  readonly parsed: T | null;
}

/** Parses a YAML file. */
export function parseYaml({ text, env, isGoYaml = false }: YamlSource): YamlDocument {
  const problem = textProblem(text);
  if (problem !== null) return brokenDocument(problem);
  const lines = new LineCounter();
  // Only plain values are allowed, since no schema expects others, such as the bytes of !!binary.
  const document = parseDocument(text, {
    version: isGoYaml ? "1.1" : "1.2",
    lineCounter: lines,
    merge: true,
    prettyErrors: false,
    resolveKnownTags: false,
    uniqueKeys: false,
  });
  const faults = [...document.errors, ...document.warnings];
  const exhausted = faults.find((fault) => fault.code === "RESOURCE_EXHAUSTION");
  if (exhausted !== undefined) return brokenDocument(tooDeepAt(positionAt(exhausted.pos[0], lines)));
  // Later ones often follow from the first.
  const [first] = faults.toSorted((one, other) => one.pos[0] - other.pos[0]);
  if (first !== undefined) return brokenDocument(syntaxFinding(first, document, text, lines));
  const isEmpty = document.contents === null || document.contents.range[0] === document.contents.range[2];
  if (isEmpty && !isGoYaml) return brokenDocument(EMPTY_FILE);
  return readTree(document.contents, { source: text, lines, env });
}

/**
 * Compares a YAML file with a schema, even if the file has problems. Paths in the value are resolved: they are relative
 * to the folder of the file. Runs in linear time.
 */
export function checkYaml<S extends z.ZodType>(
  schema: S,
  source: YamlSource,
  check: ValueCheck,
): CheckedDocument<z.output<S>> {
  const document = parseYaml(source);
  const { marks } = document;
  if (marks.size === 0) return { ...document, parsed: null };
  const raw = source.isGoYaml ? (document.value ?? {}) : document.value;
  const checkFindings: Finding[] = [];
  for (const mark of marks.values()) {
    const here = mark.kind === "scalar" ? schemaAt(schema, mark.path, raw) : null;
    const key = mark.path.at(-1);
    if (here === null || key === undefined) continue;
    const owner = valueAt(raw, mark.path.slice(0, -1)) as Record<string | number, unknown>;
    if (source.isGoYaml) adaptToGo(schema, here, mark, raw);
    const kind = kindOf(here);
    const written = owner[key];
    // The schema rejects blank values, or takes them as absent.
    if (kind === null || typeof written !== "string" || written.trim() === "") continue;
    const isPath = kind.check !== undefined && PATH_CHECKS.has(kind.check);
    const value = isPath ? resolvePath(written, source.file) : written;
    owner[key] = mark.variables.length > 0 ? parseVariable(here, value) : value;
    if (kind.check === undefined) continue;
    checkFindings.push(...check(kind.check, value).map((problem) => toFinding(problem, mark, value)));
  }
  const parsed = schema.safeParse(raw);
  const context = { schema, value: raw, marks };
  const issues = parsed.success ? [] : parsed.error.issues.flatMap((issue) => toFindings(issue, context));
  const findings = [...document.findings, ...checkFindings, ...issues];
  return { value: raw, marks, findings, parsed: parsed.success ? parsed.data : null };
}

/**
 * Reads a YAML file by a schema: returns the value, or a bounded number of problems of the file, ordered by line.
 * If the schema accepts the value, problems that are not relevant are ignored; otherwise they may be the reason.
 */
export function readYaml<S extends z.ZodType>(
  schema: S,
  source: YamlSource,
  check: ValueCheck,
  isRelevant: (finding: Finding) => boolean = () => true,
): Result<ReadDocument<z.output<S>>, readonly ConfigProblem[]> {
  const { parsed, marks, findings } = checkYaml(schema, source, check);
  const relevant = parsed === null ? findings : findings.filter(isRelevant);
  if (parsed !== null && relevant.length === 0) return ok({ file: source.file, value: parsed, marks });
  return fail(toProblems(source.file, relevant));
}

/** Checks whose values are paths of one file or folder. */
const PATH_CHECKS: ReadonlySet<LoaderCheck> = new Set(["file", "path", "web"]);

const resolvePath = (path: string, file: string): string => (isAbsolute(path) ? path : join(dirname(file), path));

function toFinding({ offset, ...problem }: ValueProblem, mark: Mark, value: string): Finding {
  const position = offset === undefined ? mark.position : (mark.positionAt?.(offset) ?? mark.position);
  return { ...position, path: mark.path, found: quoteFrom(mark, value, offset ?? 0), ...problem };
}

/** Quotes a text starting at one of its characters. */
function quoteFrom(mark: Mark, value: string, offset: number): string {
  if (offset === 0) return mark.found;
  return offset >= value.length ? `the end of ${mark.found}` : quote(value.slice(offset));
}

/**
 * Reads a value as Go's yaml.v2 does: a key without a value is absent, and where text is expected, a number or boolean
 * is read as the text in the file.
 */
function adaptToGo(schema: z.core.$ZodType, here: z.core.$ZodType, { path, found }: Mark, raw: unknown): void {
  const [ownerPath, key] = [path.slice(0, -1), path.at(-1)!];
  const owner = valueAt(raw, ownerPath) as Record<string | number, unknown>;
  const value = owner[key];
  if (value === null || (value === "" && kindOf(here)?.mayBeBlank)) {
    // In a mapping from names the key stays, because a user without a hash must not vanish.
    if (sectionKeys(schemaAt(schema, ownerPath, raw) ?? schema) !== null) delete owner[key];
  } else if (typeof value !== "string" && innermost(here)._zod.def.type === "string") {
    owner[key] = found;
  }
}

/** Returns the number or boolean that a variable's text stands for, if the schema expects one. */
function parseVariable(schema: z.core.$ZodType, text: string): unknown {
  const { def } = innermost(schema)._zod;
  const numeric =
    def.type === "number" || (def.type === "literal" && def.values.every((option) => typeof option === "number"));
  if (numeric && /^[-+]?\d+(?:\.\d+)?$/.test(text)) return Number(text);
  if (def.type === "boolean" && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === "true";
  return text;
}
