import { type Document, isScalar, LineCounter, parseDocument, visit, type YAMLError } from "yaml";
import { DOCUMENT_START, type Finding, type Path, quote } from "../diagnostics/problem.ts";
import type { Environment } from "../environment.ts";
import { positionAt, readTree, tooDeepAt, type YamlDocument } from "./tree.ts";

/** A YAML file: its text, its path, and the environment of its variables. */
export interface YamlSource {
  readonly file: string;
  readonly text: string;
  readonly env: Environment;
  /**
   * Whether the file is read as Go's yaml.v2 reads it: with the booleans of YAML 1.1, and as an empty mapping if it has
   * no keys. Absent means false.
   */
  readonly isGoYaml?: boolean;
}

/**
 * Maximum number of characters of a file, and of all policy files together, which is ten times what large installations
 * need. Parsing that many takes up to a second, and compiling their expressions 40 ms.
 */
export const TEXT_LENGTH_MAX = 131_072;

/** Parses one YAML document. */
export function parseYaml(file: YamlSource): YamlDocument {
  const { text, env, isGoYaml = false } = file;
  const broken = (finding: Finding): YamlDocument => ({ value: null, marks: new Map(), findings: [finding] });
  if (text.length > TEXT_LENGTH_MAX) {
    const found = `${text.length} characters`;
    const expected = `must have at most ${TEXT_LENGTH_MAX}`;
    const message = `the file is too large: it has ${found}, and may have at most ${TEXT_LENGTH_MAX}`;
    return broken({ ...DOCUMENT_START, found, expected, message });
  }
  const unprintable = text.search(UNPRINTABLE);
  if (unprintable >= 0) return broken(unprintableAt(text, unprintable));
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
  if (exhausted !== undefined) return broken(tooDeepAt(positionAt(exhausted.pos[0], lines)));
  // Later ones often follow from the first.
  const [first] = faults.toSorted((one, other) => one.pos[0] - other.pos[0]);
  if (first !== undefined) return broken(toFinding(first, document, text, lines));
  const isEmpty = document.contents === null || document.contents.range[0] === document.contents.range[2];
  if (isEmpty && !isGoYaml) {
    const expected = "must hold a mapping of keys and values";
    return broken({ ...DOCUMENT_START, found: "nothing", expected, message: `the file is empty; it ${expected}` });
  }
  const tree = readTree(document.contents, { source: text, lines, env });
  return tree.overflow === null ? tree : broken(tree.overflow);
}

/** Control characters that YAML forbids. A file with one of them is not text, or is in another encoding. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const UNPRINTABLE = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

function unprintableAt(text: string, offset: number): Finding {
  const before = text.slice(0, offset).split("\n");
  const code = text.charCodeAt(offset).toString(16).toUpperCase().padStart(4, "0");
  const found = `the control character U+${code}`;
  return { line: before.length, column: before.at(-1)!.length + 1, path: [], found, expected: "must be text in UTF-8" };
}

/** Tags of YAML's core schema, whose values are plain. */
const TAG_EXPECTED =
  "must have no tag, or one of !!str, !!int, !!float, !!bool, !!null, !!map, !!seq; quote a text that begins with !";

function toFinding(fault: YAMLError, document: Document, text: string, lines: LineCounter): Finding {
  const [offset] = fault.pos;
  const at = { ...positionAt(offset, lines), path: [] };
  const unclosed = /^Missing closing (["'])quote/.exec(fault.message)?.[1];
  if (unclosed !== undefined) {
    const expected = `the quote ${unclosed} is never closed`;
    const start = positionAt(quotedStart(document, offset), lines);
    return { ...start, path: [], found: unclosed, expected, message: `not valid YAML: ${expected}` };
  }
  if (fault.code === "MULTIPLE_DOCS") {
    return { ...at, found: "a second document", expected: "must be the only document of its file" };
  }
  if (fault.code === "TAG_RESOLVE_FAILED") {
    const tag = text.slice(offset, offset + TAG_LENGTH_MAX).split(/[\s,[\]{}]/, 1)[0];
    return { ...at, found: `the tag ${tag}`, expected: TAG_EXPECTED };
  }
  const found = quote(text.charAt(offset));
  if (text.startsWith("${", offset - 1)) {
    const expected = UNQUOTED_VARIABLE;
    return { ...at, found, expected, message: `not valid YAML: a variable here ${expected}` };
  }
  // The parser may end its message with text of the file, which may be a secret.
  const reason = fault.message.replace(/: ".*"$/s, "");
  const hint = SYNTAX_HINTS.find(([pattern]) => pattern.test(reason))?.[1] ?? "";
  const expected = `${reason.charAt(0).toLowerCase()}${reason.slice(1)}${hint}`;
  return { ...at, found, expected, message: `not valid YAML: ${expected}` };
}

/** What to do about errors whose message, which is the parser's, does not say it. */
const SYNTAX_HINTS: readonly (readonly [message: RegExp, hint: string])[] = [
  [/^Nested mappings /, '; quote a value that contains ": ", and indent the keys of a mapping equally'],
  [/^Tabs /, "; use spaces, in every line"],
  [/^Sequence item without /, "; indent the keys of a list item equally"],
  [/^Unexpected \S+ at node end/, "; put the whole value in quotes: ' if it contains \""],
];

const UNQUOTED_VARIABLE = `must be quoted: inside { } or [ ], write "\${NAME}"`;

/** Maximum number of characters of a tag that a message shows. */
const TAG_LENGTH_MAX = 60;

/** Returns where the quoted value begins that ends at an offset, or the offset if there is none. */
function quotedStart(document: Document, end: number): number {
  let start = end;
  visit(document, (_, node) => {
    if (!isScalar(node) || node.range?.[1] !== end) return;
    start = node.range[0];
  });
  return start;
}

/** Returns the value at a path of a document, or undefined if there is none. */
export function valueAt(value: unknown, path: Path): unknown {
  let here = value;
  for (const step of path) here = (here as Record<string | number, unknown> | null | undefined)?.[step];
  return here;
}
