import { LineCounter, parseDocument, type YAMLError } from "yaml";
import type { Environment } from "./environment.ts";
import type { Marks } from "./mark.ts";
import { type ConfigProblem, type Finding, problemOf, quote } from "./problem.ts";
import { readTree } from "./tree.ts";

/** A YAML file: its text, its name for messages and for relative paths, and the environment that fills `${NAME}`. */
export interface Source {
  readonly file: string;
  readonly text: string;
  readonly env: Environment;
  /**
   * Whether the file is read as Go's yaml.v2 reads it: booleans of YAML 1.1, and a file without keys is an empty mapping.
   * Absent: no.
   */
  readonly isGoYaml?: boolean;
}

/** What a file says, before any schema looked at it. */
export interface YamlDocument {
  readonly value: unknown;
  /** Where each key, value and item stands, and how it reads there. */
  readonly marks: Marks;
  /** What is wrong so far, without making the rest unreadable: double keys, unset variables and the like. */
  readonly problems: readonly ConfigProblem[];
}

/** Files of people's hands are a tenth of it at most, and a larger one could keep the parser busy for seconds. */
const TEXT_LENGTH_MAX = 262_144;

/** Syntax errors listed: the first ones are the cause, what follows them is mostly echo. */
const FAULTS_MAX = 20;

const WHOLE = { line: 1, column: 1, path: [] } as const;

/** Parses one YAML document. Null as `value` with problems: it could not be read at all. */
export function parseYaml(source: Source): YamlDocument {
  const { file, text, isGoYaml = false } = source;
  const broken = (...findings: Finding[]): YamlDocument => ({
    value: null,
    marks: new Map(),
    problems: findings.map((finding) => problemOf(file, finding)),
  });
  if (text.length > TEXT_LENGTH_MAX) {
    const expected = `must be at most ${TEXT_LENGTH_MAX} characters long`;
    return broken({ ...WHOLE, found: `${text.length} characters`, expected });
  }
  const lines = new LineCounter();
  const version = isGoYaml ? "1.1" : "1.2";
  const options = { version, lineCounter: lines, merge: true, prettyErrors: false, uniqueKeys: false } as const;
  const document = parseDocument(text, options);
  const faults = [...document.errors, ...document.warnings];
  if (faults.some((fault) => fault.code === "RESOURCE_EXHAUSTION")) {
    return broken({ ...WHOLE, found: "a document nested beyond all bounds", expected: "must be flatter" });
  }
  if (faults.length > 0) return broken(...firstOfLines(faults.map((fault) => findingOf(fault, text, lines))));
  const isEmpty = document.contents === null || document.contents.range?.[0] === document.contents.range?.[2];
  if (isEmpty && !isGoYaml) {
    const expected = "must hold a mapping of keys and values";
    return broken({ ...WHOLE, found: "nothing", expected, message: `the file is empty; it ${expected}` });
  }
  const tree = readTree(document.contents, { source: text, lines, env: source.env });
  return { ...tree, problems: tree.findings.map((finding) => problemOf(file, finding)) };
}

function findingOf(fault: YAMLError, text: string, lines: LineCounter): Finding {
  const [offset] = fault.pos;
  const { line, col } = lines.linePos(offset);
  const at = { line: Math.max(1, line), column: Math.max(1, col), path: [] };
  if (fault.code === "MULTIPLE_DOCS") {
    return { ...at, found: "a second document", expected: "must be the only document of its file" };
  }
  const found = quote(text.charAt(offset));
  if (text.startsWith("${", offset - 1)) {
    const expected = `must be quoted: inside { } or [ ], write "\${NAME}"`;
    return { ...at, found, expected, message: `not valid YAML: a variable here ${expected}` };
  }
  // The parser may end its message with the text it stands at, and that may be a secret.
  const reason = fault.message.replace(/: ".*"$/s, "");
  const expected = `${reason.charAt(0).toLowerCase()}${reason.slice(1)}`;
  return { ...at, found, expected, message: `not valid YAML: ${expected}` };
}

/** The first error of each line: those after it are its echo. */
function firstOfLines(findings: readonly Finding[]): Finding[] {
  const lines = new Map<number, Finding>();
  for (const finding of findings.toSorted((one, other) => one.line - other.line || one.column - other.column)) {
    if (!lines.has(finding.line)) lines.set(finding.line, finding);
  }
  return [...lines.values()].slice(0, FAULTS_MAX);
}
