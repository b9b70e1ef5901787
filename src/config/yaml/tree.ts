import { isAlias, isMap, isScalar, isSeq, type LineCounter, type Pair, type Scalar, type YAMLMap } from "yaml";
import { type Environment, substitute } from "../environment.ts";
import { type Mark, type Marks, markKey, type Place } from "./position.ts";
import { sourceOffset } from "./source-offset.ts";
import { clip, type Finding, quote } from "../diagnostics/problem.ts";

/** A document as plain values, and a mark for each of them. */
export interface Tree {
  readonly value: unknown;
  readonly marks: Marks;
  readonly findings: readonly Finding[];
  /** The document is too large: where, and how. The rest of it is not read. Null: it is not. */
  readonly excess: Finding | null;
}

/** Values that a document may hold with all aliases expanded: aliases of aliases grow exponentially. */
const VALUES_MAX = 50_000;
/** Levels of nesting: the deepest file that a schema accepts has about ten. */
const DEPTH_MAX = 32;
const SIZE_FOUND = "the file is too large";

/** How a document that is nested too deeply is described. */
export const DEPTH_FOUND = "the file is nested too deeply";
export const DEPTH_EXPECTED = `at most ${DEPTH_MAX} levels are allowed`;

interface Reader {
  readonly source: string;
  readonly lines: LineCounter;
  readonly env: Environment;
  /** Anchors seen so far: an alias costs one look, and can't name what comes after it. */
  readonly anchors: Map<string, unknown>;
  /** Nodes that are being read: an alias of one of them would have no end. */
  readonly open: Set<unknown>;
  readonly marks: Map<string, Mark>;
  readonly findings: Finding[];
  readonly valuesMax: number;
  values: number;
  excess: Finding | null;
}

/** Where a value is to be read. `place` stands in where the node itself does not know its own. */
type Spot = Pick<Mark, "path" | "key" | "place">;

/** The text that the nodes were parsed from, and what its lines and variables are. */
export interface TreeSource {
  readonly source: string;
  readonly lines: LineCounter;
  readonly env: Environment;
  /** Values that the document may hold with all aliases expanded. Absent: 50,000. */
  readonly valuesMax?: number;
}

/** Turns YAML nodes into values. `${NAME}` is filled in here, in values alone: a variable can't add structure. */
export function readTree(root: unknown, from: TreeSource): Tree {
  const [anchors, open, marks] = [new Map(), new Set(), new Map()];
  const reader: Reader = {
    valuesMax: VALUES_MAX,
    ...from,
    anchors,
    open,
    marks,
    findings: [],
    values: 0,
    excess: null,
  };
  const value = readNode(reader, root, { path: [], key: null, place: { line: 1, column: 1 } });
  return { value, marks, findings: reader.findings, excess: reader.excess };
}

function readNode(reader: Reader, node: unknown, spot: Spot): unknown {
  const here = { ...spot, place: placeOf(reader, node) ?? spot.place };
  const target = enter(reader, node, here);
  if (isScalar(target)) return readScalar(reader, target, here);
  if (!isMap(target) && !isSeq(target)) {
    mark(reader, here, { kind: "scalar", found: "nothing" });
    return null;
  }
  reader.open.add(target);
  const value = isMap(target) ? readMap(reader, target, here) : readList(reader, target.items, here);
  reader.open.delete(target);
  return value;
}

/** The node itself, or what an alias stands for; null, and reported, where it stands for nothing or goes too far. */
function enter(reader: Reader, node: unknown, spot: Spot): unknown {
  reader.values += 1;
  if (reader.values > reader.valuesMax) {
    const expected = `it may have at most ${reader.valuesMax} values, aliases expanded`;
    reader.excess ??= excessAt(spot, SIZE_FOUND, expected);
  }
  if (spot.path.length > DEPTH_MAX) reader.excess ??= excessAt(spot, DEPTH_FOUND, DEPTH_EXPECTED);
  if (reader.excess !== null) return null;
  if (!isAlias(node)) {
    remember(reader, node);
    return node;
  }
  const target = reader.anchors.get(node.source);
  if (target === undefined || reader.open.has(target)) {
    report(reader, spot, quote(`*${node.source}`), "must name an anchor that stands before it and not around it");
    return null;
  }
  return target;
}

const excessAt = ({ place }: Spot, found: string, expected: string): Finding => ({
  ...place,
  path: [],
  found,
  expected,
  message: `${found}: ${expected}`,
});

function readList(reader: Reader, items: readonly unknown[], spot: Spot): unknown[] {
  mark(reader, spot, { kind: "list", found: "a list" });
  const values: unknown[] = [];
  for (const [index, item] of items.entries()) {
    if (reader.excess !== null) break;
    values.push(readNode(reader, item, { path: [...spot.path, index], key: null, place: spot.place }));
  }
  return values;
}

/**
 * What every mapping inherits. Without the usual prototype a key such as `__proto__` is a key like any other. Zod compares
 * the `length` of a value that is no list with the limits of lists: a mapping there is no number, and must not throw.
 */
const MAPPING: object = Object.assign(Object.create(null), { [Symbol.toPrimitive]: () => Number.NaN });

function readMap(reader: Reader, map: YAMLMap, spot: Spot): Record<string, unknown> {
  mark(reader, spot, { kind: "mapping", found: "a mapping" });
  const result: Record<string, unknown> = Object.create(MAPPING);
  for (const pair of map.items) if (!isMergeKey(pair.key)) readPair(reader, pair, spot, result);
  for (const pair of map.items) if (isMergeKey(pair.key)) merge(reader, pair.value, spot, result);
  return result;
}

function readPair(reader: Reader, pair: Pair, spot: Spot, result: Record<string, unknown>): void {
  if (reader.excess !== null) return;
  const key = placeOf(reader, pair.key) ?? spot.place;
  if (!isScalar(pair.key)) {
    report(reader, { ...spot, place: key }, "a key that is a list, a mapping or an alias", "must be a word");
    return;
  }
  remember(reader, pair.key);
  const name = keyName(pair.key);
  const path = [...spot.path, name];
  if (Object.hasOwn(result, name)) {
    const first = reader.marks.get(markKey(path))?.key ?? spot.place;
    const expected = `it is already given on line ${first.line}`;
    report(reader, { path, key, place: key }, `the key ${quote(name)} again`, expected);
    return;
  }
  result[name] = readNode(reader, pair.value, { path, key, place: key });
}

/** `<<: *base` or `<<: [*one, *other]`: adds the keys that the mapping has not; the first that has one wins. */
function merge(reader: Reader, node: unknown, spot: Spot, result: Record<string, unknown>): void {
  const here = { ...spot, place: placeOf(reader, node) ?? spot.place };
  const target = enter(reader, node, here);
  if (target === null) return;
  if (isSeq(target) && target === node) {
    for (const item of target.items) merge(reader, item, spot, result);
    return;
  }
  if (!isMap(target)) {
    report(reader, here, "a merge key << of no mapping", "must name the anchor of a mapping, as in <<: *base");
    return;
  }
  reader.open.add(target);
  for (const pair of target.items) {
    if (isMergeKey(pair.key)) merge(reader, pair.value, spot, result);
    else if (!isScalar(pair.key) || !Object.hasOwn(result, keyName(pair.key))) readPair(reader, pair, spot, result);
  }
  reader.open.delete(target);
}

/** A key as it is written: `007` and `on` are names, not a number and a boolean. */
const keyName = (key: Scalar): string => key.source ?? String(key.value ?? "");

/** A quoted "<<" is a key like any other. The parser gives a merge key as text or as a symbol. */
const isMergeKey = (key: unknown): boolean =>
  isScalar(key) && (key.type ?? "PLAIN") === "PLAIN" && (key.value === "<<" || typeof key.value === "symbol");

/** Characters of a number that a message shows. */
const NUMBER_LENGTH_MAX = 40;

function readScalar(reader: Reader, node: Scalar, spot: Spot): unknown {
  const { value, source } = node;
  if (typeof value !== "string") {
    mark(reader, spot, {
      kind: "scalar",
      found: value === null ? "nothing" : clip(source ?? String(value), NUMBER_LENGTH_MAX),
    });
    return value;
  }
  const filled = substitute(value, reader.env);
  if (!filled.ok) {
    mark(reader, spot, { kind: "scalar", found: quote(value) });
    report(reader, spot, quote(filled.error.found), filled.error.expected);
    return value;
  }
  const { text, variables, writtenIndex } = filled.value;
  const origin = variables.length === 0 ? "" : ` from ${variables.map((name) => `\${${name}}`).join(", ")}`;
  const placeAt = (index: number) => placeOfOffset(reader, sourceOffset(node, reader.source, writtenIndex(index)));
  mark(reader, spot, { kind: "scalar", found: quote(text) + origin, variables, placeAt });
  return text;
}

function mark(reader: Reader, spot: Spot, facts: Pick<Mark, "kind" | "found"> & Partial<Mark>): void {
  reader.marks.set(markKey(spot.path), { variables: [], ...spot, ...facts });
}

function report(reader: Reader, spot: Spot, found: string, expected: string): void {
  reader.findings.push({ ...spot.place, path: spot.path, found, expected });
}

function remember(reader: Reader, node: unknown): void {
  const anchor = (node as { anchor?: unknown } | null)?.anchor;
  if (typeof anchor === "string") reader.anchors.set(anchor, node);
}

function placeOf(reader: Reader, node: unknown): Place | null {
  const offset = (node as { range?: readonly number[] } | null)?.range?.[0];
  return offset === undefined ? null : placeOfOffset(reader, offset);
}

function placeOfOffset({ lines }: Reader, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}
