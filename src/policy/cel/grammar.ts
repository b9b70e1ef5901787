import { parseDuration } from "../../base/duration.ts";
import { nearest } from "../../base/nearest-word.ts";
import { fail, ok, type Result } from "../../base/result.ts";
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
import type { ExpressionProblem } from "./type-errors.ts";

/** A part of a parsed expression, as CEL gives it: what `args` are depends on `op`. */
export interface SyntaxNode {
  readonly op: string;
  readonly args: unknown;
  /** Where it begins in the text. */
  readonly start: number;
}

/**
 * What of CEL a policy may use: everything else is refused here, by name, with what to write instead. What is taken
 * still has to pass CEL's own type check.
 */
export function parseTerm(root: SyntaxNode): Result<Term, ExpressionProblem> {
  const problems: ExpressionProblem[] = [];
  const term = createTermReader((offset, message) => {
    problems.push({ message, offset });
    return null;
  })(root);
  return term === null ? fail(problems[0]!) : ok(term);
}

/** Notes why something is refused; its null goes up to the root. */
type ReportProblem = (offset: number, message: string) => null;
type TermReader = (node: SyntaxNode) => Term | null;

function createTermReader(refuse: ReportProblem): TermReader {
  const read: TermReader = (node) => {
    const { op, args, start: offset } = node;
    if (op === "value") return readLiteral(node, refuse);
    if (op === "id" || op === ".") return readField(node, refuse);
    if (op === "call") return readCall(node, read, refuse);
    if (op === "rcall") return readMethodCall(node, read, refuse);
    if (op === "in") return readInList(node, read, refuse);
    if (op === "-_") return readNegation(node, read);
    if (op === "!_") {
      const operand = read(args as SyntaxNode);
      return operand === null ? null : { kind: "not", offset, operand };
    }
    if (op === "?:") {
      const [test, yes, no] = (args as readonly SyntaxNode[]).map(read);
      return test && yes && no ? { kind: "choice", offset, test, sides: [yes, no] } : null;
    }
    if (op === "list") return refuse(offset, "a list is only allowed after in");
    if (op === "map") return refuse(offset, "maps are not supported");
    if (op === "[]") return refuse(offset, "fields must be written as node.status, not with [ ]");
    const reason = UNSUPPORTED_SYNTAX.get(op);
    if (reason !== undefined) return refuse(offset, `${op} is refused: ${reason}`);
    return readInfix(node, read, refuse);
  };
  return read;
}

function readInfix({ op, args, start: offset }: SyntaxNode, read: TermReader, refuse: ReportProblem): Term | null {
  const sides = readPair(args as readonly SyntaxNode[], read);
  if (sides === null) return null;
  if (op === "&&" || op === "||") return { kind: "logic", offset, operator: op, sides };
  const comparison = COMPARISONS.find((operator) => operator === op);
  if (comparison !== undefined) return { kind: "comparison", offset, operator: comparison, sides };
  const arithmetic = ARITHMETIC.find((operator) => operator === op);
  if (arithmetic === undefined) return refuse(offset, `${op} is refused`);
  if (sides.some(isText)) return refuse(offset, "strings can't be concatenated");
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

function readLiteral({ args, start: offset }: SyntaxNode, refuse: ReportProblem): LiteralTerm | null {
  if (args === null) return refuse(offset, `null is refused: ${UNSUPPORTED_SYNTAX.get("null")}`);
  if (typeof args === "string" || typeof args === "boolean" || typeof args === "number") {
    return { kind: "literal", offset, value: args };
  }
  if (typeof args !== "bigint") return refuse(offset, "neither bytes nor unsigned numbers are of use here");
  const value = Number(args);
  if (!Number.isSafeInteger(value)) return refuse(offset, "a whole number is at most 2^53 - 1");
  return { kind: "literal", offset, value };
}

function readField(node: SyntaxNode, refuse: ReportProblem): Term | null {
  const path = fieldPathOf(node);
  if (path === null) return refuse(node.start, "only a field can be selected, as in node.status");
  const found = findField(path);
  if (found !== null) return { kind: "field", offset: node.start, field: found };
  const within = FIELDS.find(({ name }) => name.startsWith(`${path}.`));
  if (within !== undefined)
    return refuse(node.start, `${path} is no value by itself; name a field of it, such as ${within.name}`);
  const suggestion = suggestField(path);
  return refuse(node.start, `unknown field ${path}${suggestion === null ? "" : `; did you mean ${suggestion}?`}`);
}

/** `fleet.cpu_usage` was meant to be `fleet.median.cpu_usage`, and `status` to be `node.status`. */
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

function readInList({ args, start: offset }: SyntaxNode, read: TermReader, refuse: ReportProblem): Term | null {
  const [left, right] = args as readonly [SyntaxNode, SyntaxNode];
  const member = read(left);
  if (right.op !== "list") return refuse(right.start, 'in needs a list, such as ["DE", "FR"]');
  const elements = right.args as readonly SyntaxNode[];
  if (elements.length === 0) return refuse(right.start, "an empty list never matches");
  const list = elements.map((element) => {
    const term = read(element);
    if (term === null || term.kind === "literal") return term;
    return refuse(element.start, "a list holds plain values");
  });
  return member !== null && hasNoNulls(list) ? { kind: "in", offset, member, list } : null;
}

const hasNoNulls = <T>(list: readonly (T | null)[]): list is readonly T[] => !list.includes(null);

function readCall({ args, start: offset }: SyntaxNode, read: TermReader, refuse: ReportProblem): Term | null {
  const [name, operands] = args as readonly [string, readonly SyntaxNode[]];
  const row = resolveFunction(name, offset, refuse);
  if (row === null) return null;
  if (row.isMethod) return refuse(offset, `${name} is written ${row.form}`);
  if (row.name === "duration" || row.name === "timestamp") return readConstant(row, operands, offset, refuse);
  const sides = readPair(operands, read);
  if (operands.length !== 2) return refuse(offset, `${name} is written ${row.form}`);
  return sides === null ? null : { kind: "ratio", offset, sides };
}

function readMethodCall({ args, start: offset }: SyntaxNode, read: TermReader, refuse: ReportProblem): Term | null {
  const [name, receiver, operands] = args as readonly [string, SyntaxNode, readonly SyntaxNode[]];
  const row = resolveFunction(name, offset, refuse);
  if (row === null) return null;
  const method = METHODS.find((known) => known === name);
  if (method === undefined || operands.length !== 1) return refuse(offset, `${name} is written ${row.form}`);
  const sides = readPair([receiver, operands[0]!], read);
  return sides === null ? null : { kind: "method", offset, method, sides };
}

function resolveFunction(name: string, offset: number, refuse: ReportProblem): FunctionRow | null {
  const reason = UNSUPPORTED_SYNTAX.get(name);
  if (reason !== undefined) return refuse(offset, `${name} is refused: ${reason}`);
  const row = findFunction(name);
  if (row !== null) return row;
  const names = FUNCTIONS.map((known) => known.name);
  const suggestion = nearest(name, names);
  const hint = suggestion === null ? `there are ${names.join(", ")}` : `did you mean ${suggestion}?`;
  return refuse(offset, `unknown function ${name}; ${hint}`);
}

/** A length of time or an instant that is written out, worked out once. */
function readConstant(
  row: FunctionRow,
  operands: readonly SyntaxNode[],
  offset: number,
  refuse: ReportProblem,
): LiteralTerm | null {
  const [operand] = operands;
  if (operands.length !== 1 || operand?.op !== "value" || typeof operand.args !== "string") {
    return refuse(offset, `${row.name} takes a text that is written out, as in ${row.form}`);
  }
  const read: Result<Value, string> =
    row.name === "duration" ? parseDuration(operand.args) : parseInstant(operand.args);
  return read.ok ? { kind: "literal", offset, value: read.value } : refuse(operand.start, read.error);
}

const isoTimestamp = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

function parseInstant(iso: string): Result<number, string> {
  const date = isoTimestamp.exec(iso)?.[1];
  // Date.parse takes the 30th of February for the 2nd of March.
  const midnight = date === undefined ? Number.NaN : Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date!)) {
    return fail("a timestamp is ISO 8601 with a zone, such as 2026-01-31T00:00:00Z");
  }
  return ok(Date.parse(iso));
}
