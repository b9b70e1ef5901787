import { type Document, isScalar, type LineCounter, visit, type YAMLError } from "yaml";
import { positionAt } from "../yaml/tree.ts";
import { DOCUMENT_START, type Finding, quote } from "./problem.ts";

/**
 * Maximum number of characters of a file, and of all policy files together, which is ten times what large installations
 * need. Parsing that many takes up to a second, and compiling their expressions 40 ms.
 */
export const TEXT_LENGTH_MAX = 131_072;

/** Control characters that YAML forbids. A file with one of them is not text, or is in another encoding. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const UNPRINTABLE = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

/** Returns why a text can't be parsed (it is too long, or contains a control character), or null if it can. */
export function textProblem(text: string): Finding | null {
  if (text.length > TEXT_LENGTH_MAX) {
    const found = `${text.length} characters`;
    const expected = `must have at most ${TEXT_LENGTH_MAX}`;
    const message = `the file is too large: it has ${found}, and may have at most ${TEXT_LENGTH_MAX}`;
    return { ...DOCUMENT_START, found, expected, message };
  }
  const offset = text.search(UNPRINTABLE);
  if (offset < 0) return null;
  const before = text.slice(0, offset).split("\n");
  const code = text.charCodeAt(offset).toString(16).toUpperCase().padStart(4, "0");
  const found = `the control character U+${code}`;
  return { line: before.length, column: before.at(-1)!.length + 1, path: [], found, expected: "must be text in UTF-8" };
}

const MAPPING_EXPECTED = "must hold a mapping of keys and values";

/** The problem of a file without keys. */
export const EMPTY_FILE: Finding = {
  ...DOCUMENT_START,
  found: "nothing",
  expected: MAPPING_EXPECTED,
  message: `the file is empty; it ${MAPPING_EXPECTED}`,
};

/** Tags of YAML's core schema, whose values are plain. */
const TAG_EXPECTED =
  "must have no tag, or one of !!str, !!int, !!float, !!bool, !!null, !!map, !!seq; quote a text that begins with !";

/** Returns the finding for an error of the YAML parser. */
export function syntaxFinding(fault: YAMLError, document: Document, text: string, lines: LineCounter): Finding {
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

/** Advice for errors of the parser, whose messages contain none. */
const SYNTAX_HINTS: readonly (readonly [message: RegExp, hint: string])[] = [
  [/^Nested mappings /, '; quote a value that contains ": ", and indent the keys of a mapping equally'],
  [/^Tabs /, "; use spaces, in every line"],
  [/^Sequence item without /, "; indent the keys of a list item equally"],
  [/^Unexpected \S+ at node end/, "; put the whole value in quotes: ' if it contains \""],
];

const UNQUOTED_VARIABLE = `must be quoted: inside { } or [ ], write "\${NAME}"`;

/** Maximum number of characters of a tag that a message shows. */
const TAG_LENGTH_MAX = 60;

/** Returns the start of the quoted value that ends at `end`, or `end` if there is none. */
function quotedStart(document: Document, end: number): number {
  let start = end;
  visit(document, (_, node) => {
    if (!isScalar(node) || node.range?.[1] !== end) return;
    start = node.range[0];
  });
  return start;
}
