import { isAlias, isMap, isScalar, isSeq, type LineCounter, type Pair, type Scalar, type YAMLMap } from "yaml";
import { fail, ok, type Result } from "../../base/result.ts";
import { truncate } from "../../base/text.ts";
import { type Finding, quote } from "../diagnostics/problem.ts";
import { type Mark, type Marks, markKey, type Position } from "./position.ts";
import { sourceOffset } from "./source-offset.ts";

/** The content of a YAML file, before it is checked against a schema. */
export interface YamlDocument {
  readonly value: unknown;
  /** Position and text of each key, value and item, or empty if the file could not be parsed. */
  readonly marks: Marks;
  /** Problems such as duplicate keys and unset variables. */
  readonly findings: readonly Finding[];
}

/** A document that has no value because of one problem. */
export const brokenDocument = (finding: Finding): YamlDocument => ({
  value: null,
  marks: new Map(),
  findings: [finding],
});

/** Maximum number of values with all aliases expanded, since aliases of aliases grow exponentially. */
const VALUES_MAX = 50_000;
/** Maximum depth of nesting. The deepest valid file has about ten levels. */
const DEPTH_MAX = 32;

/** Returns the problem of a document that is nested too deeply. */
export const tooDeepAt = (position: Position): Finding =>
  overflowAt(position, "the file is nested too deeply", `at most ${DEPTH_MAX} levels are allowed`);

interface TreeReader extends TreeSource {
  /** Anchors read so far, since an alias can only name an earlier one. */
  readonly anchors: Map<string, unknown>;
  /** Nodes that are being read, since an alias of one of them would never end. */
  readonly open: Set<unknown>;
  readonly marks: Map<string, Mark>;
  readonly findings: Finding[];
  values: number;
  /** Where reading stopped because the document is too large, or null if it is not. */
  overflow: Finding | null;
}

/** Path and position of a value. The position is used if the node has none. */
type ValueLocation = Pick<Mark, "path" | "key" | "position">;

/** The parsed text, with its lines and variables. */
interface TreeSource {
  readonly source: string;
  readonly lines: LineCounter;
  readonly env: NodeJS.ProcessEnv;
}

/** Turns YAML nodes into values. Variables are replaced here, only in values, so that they can't add structure. */
export function readTree(root: unknown, from: TreeSource): YamlDocument {
  const [anchors, open, marks] = [new Map(), new Set(), new Map()];
  const reader: TreeReader = { ...from, anchors, open, marks, findings: [], values: 0, overflow: null };
  const value = readNode(reader, root, { path: [], key: null, position: { line: 1, column: 1 } });
  return reader.overflow === null ? { value, marks, findings: reader.findings } : brokenDocument(reader.overflow);
}

function readNode(reader: TreeReader, node: unknown, location: ValueLocation): unknown {
  const here = { ...location, position: positionOf(reader, node) ?? location.position };
  const target = resolveNode(reader, node, here);
  if (isScalar(target)) return readScalar(reader, target, here);
  if (!isMap(target) && !isSeq(target)) {
    addMark(reader, here, { kind: "scalar", found: "nothing" });
    return null;
  }
  reader.open.add(target);
  const value = isMap(target) ? readMap(reader, target, here) : readList(reader, target.items, here);
  reader.open.delete(target);
  return value;
}

/**
 * Returns the node, or the target of an alias. Reports a problem and returns null if there is none, or if the document
 * is too large.
 */
function resolveNode(reader: TreeReader, node: unknown, location: ValueLocation): unknown {
  reader.values += 1;
  if (reader.values > VALUES_MAX) {
    const expected = `it may have at most ${VALUES_MAX} values with all aliases expanded`;
    reader.overflow ??= overflowAt(location.position, "the file is too large", expected);
  }
  if (location.path.length > DEPTH_MAX) reader.overflow ??= tooDeepAt(location.position);
  if (reader.overflow !== null) return null;
  if (!isAlias(node)) {
    rememberAnchor(reader, node);
    return node;
  }
  const target = reader.anchors.get(node.source);
  if (target === undefined || reader.open.has(target)) {
    const expected = "must name an anchor that comes before it and does not contain it";
    addFinding(reader, location, quote(`*${node.source}`), expected);
    return null;
  }
  return target;
}

const overflowAt = ({ line, column }: Position, found: string, expected: string): Finding => ({
  line,
  column,
  path: [],
  found,
  expected,
  message: `${found}: ${expected}`,
});

function readList(reader: TreeReader, items: readonly unknown[], location: ValueLocation): unknown[] {
  addMark(reader, location, { kind: "list", found: items.length === 0 ? "an empty list" : "a list" });
  const values: unknown[] = [];
  for (const [index, item] of items.entries()) {
    if (reader.overflow !== null) break;
    values.push(readNode(reader, item, { path: [...location.path, index], key: null, position: location.position }));
  }
  return values;
}

/**
 * Prototype of every mapping. Without the usual prototype, a key such as `__proto__` is an ordinary key. Where a list
 * is expected, Zod compares a key `length` of a mapping with the limits of the list, which would throw if the value of
 * that key were a mapping without `Symbol.toPrimitive`.
 */
const MAPPING: object = Object.assign(Object.create(null), { [Symbol.toPrimitive]: () => Number.NaN });

function readMap(reader: TreeReader, map: YAMLMap, location: ValueLocation): Record<string, unknown> {
  addMark(reader, location, { kind: "mapping", found: "a mapping" });
  const result: Record<string, unknown> = Object.create(MAPPING);
  for (const pair of map.items) if (!isMergeKey(pair.key)) readPair(reader, pair, location, result);
  for (const pair of map.items) if (isMergeKey(pair.key)) mergeKeys(reader, pair.value, location, result);
  return result;
}

function readPair(reader: TreeReader, pair: Pair, location: ValueLocation, result: Record<string, unknown>): void {
  if (reader.overflow !== null) return;
  const key = positionOf(reader, pair.key) ?? location.position;
  if (!isScalar(pair.key)) {
    addFinding(reader, { ...location, position: key }, "a key that is a list, a mapping or an alias", "must be a word");
    return;
  }
  rememberAnchor(reader, pair.key);
  const name = keyName(pair.key);
  const path = [...location.path, name];
  if (Object.hasOwn(result, name)) {
    const first = reader.marks.get(markKey(path))?.key ?? location.position;
    const expected = `it is already given on line ${first.line}`;
    addFinding(reader, { path, key, position: key }, `the key ${quote(name)} again`, expected);
    return;
  }
  result[name] = readNode(reader, pair.value, { path, key, position: key });
}

/** `<<: *base` or `<<: [*one, *other]`: adds the keys that the mapping lacks; the first mapping that has a key wins. */
function mergeKeys(reader: TreeReader, node: unknown, location: ValueLocation, result: Record<string, unknown>): void {
  const here = { ...location, position: positionOf(reader, node) ?? location.position };
  const target = resolveNode(reader, node, here);
  if (target === null) return;
  if (isSeq(target) && target === node) {
    for (const item of target.items) mergeKeys(reader, item, location, result);
    return;
  }
  if (!isMap(target)) {
    addFinding(reader, here, "a merge key << without a mapping", "must name the anchor of a mapping, as in <<: *base");
    return;
  }
  reader.open.add(target);
  for (const pair of target.items) {
    if (isMergeKey(pair.key)) mergeKeys(reader, pair.value, location, result);
    else if (!isScalar(pair.key) || !Object.hasOwn(result, keyName(pair.key))) readPair(reader, pair, location, result);
  }
  reader.open.delete(target);
}

/** Returns a key as written, so that `007` and `on` are names, not a number and a boolean. */
const keyName = (key: Scalar): string => key.source ?? String(key.value ?? "");

/**
 * Returns whether a key is `<<`. If quoted, it is an ordinary key. The parser returns a merge key as text or a symbol.
 */
const isMergeKey = (key: unknown): boolean =>
  isScalar(key) && (key.type ?? "PLAIN") === "PLAIN" && (key.value === "<<" || typeof key.value === "symbol");

/** Maximum number of characters of a number that a message shows. */
const NUMBER_LENGTH_MAX = 40;

function readScalar(reader: TreeReader, node: Scalar, location: ValueLocation): unknown {
  const { value, source } = node;
  if (typeof value !== "string") {
    const found = value === null ? "nothing" : truncate(source ?? String(value), NUMBER_LENGTH_MAX);
    addMark(reader, location, { kind: "scalar", found });
    return value;
  }
  const filled = substitute(value, reader.env);
  if (!filled.ok) {
    addMark(reader, location, { kind: "scalar", found: quote(value) });
    addFinding(reader, location, quote(filled.error.found), filled.error.expected);
    return value;
  }
  const { text, variables } = filled.value;
  const origin = variables.length === 0 ? "" : ` from ${variables.map((name) => `\${${name}}`).join(", ")}`;
  const positionOf = (index: number) => positionAt(sourceOffset(node, reader.source, index), reader.lines);
  const found = quote(text) + origin;
  addMark(reader, location, { kind: "scalar", found, variables, ...(text === value && { positionAt: positionOf }) });
  return text;
}

const NAME_EXPECTED = `must name an environment variable, as in \${NAME}; for a literal \${ write $\${`;

/**
 * Returns a text with its variables replaced, and their names: `${NAME}` by the variable's value, which is not expanded
 * again; `$${` stands for a literal `${`. The error says what was found and what is expected, and never contains a
 * variable's value.
 */
function substitute(
  text: string,
  env: NodeJS.ProcessEnv,
): Result<{ readonly text: string; readonly variables: readonly string[] }, { found: string; expected: string }> {
  const variables: string[] = [];
  let result = "";
  let done = 0;
  for (const match of text.matchAll(/\$\$\{|\$\{([^}]*)(\}?)/g)) {
    result += text.slice(done, match.index);
    done = match.index + match[0].length;
    const [found, name, end] = match;
    if (name === undefined) {
      result += "${";
      continue;
    }
    // The text after an open brace may be a secret.
    if (end === "") return fail({ found: "${", expected: NAME_EXPECTED });
    if (!/^[A-Za-z_]\w*$/.test(name)) return fail({ found, expected: NAME_EXPECTED });
    const value = env[name];
    if (value === undefined) return fail({ found, expected: `the environment variable ${name} must be set` });
    result += value;
    variables.push(name);
  }
  return ok({ text: result + text.slice(done), variables });
}

function addMark(
  reader: TreeReader,
  location: ValueLocation,
  facts: Pick<Mark, "kind" | "found"> & Partial<Mark>,
): void {
  reader.marks.set(markKey(location.path), { variables: [], ...location, ...facts });
}

function addFinding(reader: TreeReader, location: ValueLocation, found: string, expected: string): void {
  reader.findings.push({ ...location.position, path: location.path, found, expected });
}

function rememberAnchor(reader: TreeReader, node: unknown): void {
  const anchor = (node as { anchor?: unknown } | null)?.anchor;
  if (typeof anchor === "string") reader.anchors.set(anchor, node);
}

function positionOf(reader: TreeReader, node: unknown): Position | null {
  const offset = (node as { range?: readonly number[] } | null)?.range?.[0];
  return offset === undefined ? null : positionAt(offset, reader.lines);
}

/** Returns the position of a character of the file. The parser counts from 0 before it has read the first line. */
export function positionAt(offset: number, lines: LineCounter): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}
