import { parseDuration } from "../../base/duration.ts";
import { nearest } from "../../base/nearest-word.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { parseIsoTime } from "../../model/time.ts";
import type { ExpressionProblem } from "./error-messages.ts";
import { FIELDS, findField } from "./fields.ts";
import { FUNCTIONS, type FunctionRow, findFunction, UNSUPPORTED_SYNTAX } from "./functions.ts";
import {
  ARITHMETIC,
  COMPARISONS,
  isText,
  type LiteralTerm,
  METHODS,
  type Term,
  type TermPair,
  type Value,
} from "./term.ts";

/** A node of CEL's syntax tree. The type of `args` depends on `op`. */
interface SyntaxNode {
  readonly op: string;
  readonly args: unknown;
  /** Index in the text. */
  readonly start: number;
}

/**
 * Converts CEL's syntax tree. Rejects the CEL features that policies don't support, and says what to write instead.
 * Types are not checked here.
 */
export function parseTerm(root: SyntaxNode): Result<Term, ExpressionProblem> {
  const problems: ExpressionProblem[] = [];
  const term = createTermReader((offset, message) => {
    problems.push({ message, offset });
    return null;
  })(root);
  return term === null ? fail(problems[0]!) : ok(term);
}

/** Records a problem. Returns null, which every caller returns up to the root. */
type ReportProblem = (offset: number, message: string) => null;
type TermReader = (node: SyntaxNode) => Term | null;

function createTermReader(reject: ReportProblem): TermReader {
  const read: TermReader = (node) => {
    const { op, args, start: offset } = node;
    if (op === "value") return readLiteral(node, reject);
    if (op === "id" || op === ".") return readField(node, reject);
    if (op === "call") return readCall(node, read, reject);
    if (op === "rcall") return readMethodCall(node, read, reject);
    if (op === "in") return readInList(node, read, reject);
    if (op === "-_") return readNegation(node, read);
    if (op === "!_") {
      const operand = read(args as SyntaxNode);
      return operand === null ? null : { kind: "not", offset, operand };
    }
    if (op === "?:") {
      const [test, yes, no] = (args as readonly SyntaxNode[]).map(read);
      return test && yes && no ? { kind: "choice", offset, test, sides: [yes, no] } : null;
    }
    if (op === "list") return reject(offset, "a list is only allowed after in");
    if (op === "map") return reject(offset, "maps are not supported");
    if (op === "[]") return reject(offset, "fields must be written as node.status, not with [ ]");
    const reason = UNSUPPORTED_SYNTAX.get(op);
    if (reason !== undefined) return reject(offset, `${op} is not supported: ${reason}`);
    return readInfix(node, read, reject);
  };
  return read;
}

function readInfix({ op, args, start: offset }: SyntaxNode, read: TermReader, reject: ReportProblem): Term | null {
  const sides = readPair(args as readonly SyntaxNode[], read);
  if (sides === null) return null;
  if (op === "&&" || op === "||") return { kind: "logic", offset, operator: op, sides };
  const comparison = COMPARISONS.find((operator) => operator === op);
  if (comparison !== undefined) return { kind: "comparison", offset, operator: comparison, sides };
  const arithmetic = ARITHMETIC.find((operator) => operator === op);
  if (arithmetic === undefined) return reject(offset, `${op} is not supported`);
  if (sides.some(isText)) return reject(offset, "strings can't be concatenated");
  return { kind: "arithmetic", offset, operator: arithmetic, sides };
}

function readPair(nodes: readonly SyntaxNode[], read: TermReader): TermPair | null {
  const [left, right] = nodes.map(read);
  return left && right ? [left, right] : null;
}

function readNegation({ args, start: offset }: SyntaxNode, read: TermReader): Term | null {
  const operand = read(args as SyntaxNode);
  if (operand === null) return null;
  if (operand.kind === "literal" && typeof operand.value === "number")
    return { ...operand, offset, value: -operand.value };
  return { kind: "minus", offset, operand };
}

function readLiteral({ args, start: offset }: SyntaxNode, reject: ReportProblem): LiteralTerm | null {
  if (args === null) return reject(offset, `null is not supported: ${UNSUPPORTED_SYNTAX.get("null")}`);
  if (typeof args === "string" || typeof args === "boolean" || typeof args === "number") {
    return { kind: "literal", offset, value: args };
  }
  if (typeof args !== "bigint") return reject(offset, "bytes and unsigned integers are not supported");
  const value = Number(args);
  if (!Number.isSafeInteger(value)) return reject(offset, "integers can be at most 2^53 - 1");
  return { kind: "literal", offset, value };
}

function readField(node: SyntaxNode, reject: ReportProblem): Term | null {
  const path = fieldPathOf(node);
  if (path === null) return reject(node.start, "only a field can be selected, as in node.status");
  const found = findField(path);
  if (found !== null) return { kind: "field", offset: node.start, field: found };
  const within = FIELDS.find(({ name }) => name.startsWith(`${path}.`));
  if (within !== undefined)
    return reject(node.start, `${path} is not a field; name one of its fields, such as ${within.name}`);
  const suggestion = suggestField(path);
  return reject(node.start, `unknown field ${path}${suggestion === null ? "" : `; did you mean ${suggestion}?`}`);
}

/** Suggests `fleet.median.cpu_usage` for `fleet.cpu_usage`, and `node.status` for `status`. */
function suggestField(path: string): string | null {
  const names = FIELDS.map(({ name }) => name);
  const segments = path.split(".");
  const within = names.find((name) => name.startsWith(`${segments[0]}.`) && name.endsWith(`.${segments.at(-1)}`));
  return within ?? names.find((name) => name.endsWith(`.${path}`)) ?? nearest(path, names);
}

function fieldPathOf({ op, args }: SyntaxNode): string | null {
  if (op === "id") return args as string;
  if (op !== ".") return null;
  const [object, name] = args as readonly [SyntaxNode, string];
  const path = fieldPathOf(object);
  return path === null ? null : `${path}.${name}`;
}

function readInList({ args, start: offset }: SyntaxNode, read: TermReader, reject: ReportProblem): Term | null {
  const [left, right] = args as readonly [SyntaxNode, SyntaxNode];
  const member = read(left);
  if (right.op !== "list") return reject(right.start, 'in needs a list, such as ["DE", "FR"]');
  const elements = right.args as readonly SyntaxNode[];
  if (elements.length === 0) return reject(right.start, "an empty list never matches");
  const list = elements.map((element) => {
    const term = read(element);
    if (term === null || term.kind === "literal") return term;
    return reject(element.start, "list elements must be constants");
  });
  return member !== null && hasNoNulls(list) ? { kind: "in", offset, member, list } : null;
}

const hasNoNulls = <T>(list: readonly (T | null)[]): list is readonly T[] => !list.includes(null);

function readCall({ args, start: offset }: SyntaxNode, read: TermReader, reject: ReportProblem): Term | null {
  const [name, operands] = args as readonly [string, readonly SyntaxNode[]];
  const row = resolveFunction(name, offset, reject);
  if (row === null) return null;
  if (row.isMethod) return reject(offset, `write it as ${row.form}`);
  if (row.name === "duration" || row.name === "timestamp") return readConstant(row, operands, offset, reject);
  const sides = readPair(operands, read);
  if (operands.length !== 2) return reject(offset, `write it as ${row.form}`);
  return sides === null ? null : { kind: "ratio", offset, sides };
}

function readMethodCall({ args, start: offset }: SyntaxNode, read: TermReader, reject: ReportProblem): Term | null {
  const [name, receiver, operands] = args as readonly [string, SyntaxNode, readonly SyntaxNode[]];
  const row = resolveFunction(name, offset, reject);
  if (row === null) return null;
  const method = METHODS.find((known) => known === name);
  if (method === undefined || operands.length !== 1) return reject(offset, `write it as ${row.form}`);
  const sides = readPair([receiver, operands[0]!], read);
  return sides === null ? null : { kind: "method", offset, method, sides };
}

function resolveFunction(name: string, offset: number, reject: ReportProblem): FunctionRow | null {
  const reason = UNSUPPORTED_SYNTAX.get(name);
  if (reason !== undefined) return reject(offset, `${name} is not supported: ${reason}`);
  const row = findFunction(name);
  if (row !== null) return row;
  const names = FUNCTIONS.map((known) => known.name);
  const suggestion = nearest(name, names);
  const hint = suggestion === null ? `the functions are ${names.join(", ")}` : `did you mean ${suggestion}?`;
  return reject(offset, `unknown function ${name}; ${hint}`);
}

/** Reads `duration("…")` or `timestamp("…")`. */
function readConstant(
  row: FunctionRow,
  operands: readonly SyntaxNode[],
  offset: number,
  reject: ReportProblem,
): LiteralTerm | null {
  const [operand] = operands;
  if (operands.length !== 1 || operand?.op !== "value" || typeof operand.args !== "string") {
    return reject(offset, `${row.name} needs a string constant, as in ${row.form}`);
  }
  const isTimestamp = row.name === "timestamp";
  const read: Result<Value, string> = isTimestamp ? parseTimestamp(operand.args) : parseDuration(operand.args);
  return read.ok ? { kind: "literal", offset, value: read.value, isTimestamp } : reject(operand.start, read.error);
}

const isoTimestamp = /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

function parseTimestamp(iso: string): Result<number, string> {
  const at = isoTimestamp.test(iso) ? parseIsoTime(iso) : Number.NaN;
  return Number.isNaN(at)
    ? fail("a timestamp must be ISO 8601 with a time zone, such as 2026-01-31T00:00:00Z")
    : ok(at);
}
