import type { ASTNode } from "@marcbachmann/cel-js";
import { parseDuration } from "../../base/duration.ts";
import { nearest } from "../../base/nearest-word.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { parseIsoTime } from "../../model/time.ts";
import { DURATION_HINT, type ExpressionProblem } from "./error-messages.ts";
import { FIELDS, findField } from "./fields.ts";
import { FUNCTIONS, type FunctionRow, UNSUPPORTED_SYNTAX } from "./functions.ts";
import { ARITHMETIC, COMPARISONS, isText, type LiteralTerm, METHODS, type Term, type TermPair } from "./term.ts";

/** The first problem of a part of an expression that is not supported. */
export interface RejectedPart {
  readonly part: ASTNode;
  readonly problem: ExpressionProblem;
}

/**
 * Converts CEL's syntax tree. Rejects the CEL features that policies don't support, and says what to write instead.
 * Types are not checked here. The error lists each condition that is rejected: the operands of `&&`, `||`, `!` and
 * `? :`, or the whole expression.
 */
export function parseTerm(root: ASTNode): Result<Term, readonly RejectedPart[]> {
  try {
    return ok(readTerm(root));
  } catch (error) {
    if (!(error instanceof UnsupportedSyntax)) throw error;
    const problem = { message: error.message, offset: error.offset };
    const inOperands = operandsOf(root).flatMap((operand) => {
      const read = parseTerm(operand);
      return read.ok ? [] : read.error;
    });
    return fail(inOperands.length === 0 ? [{ part: root, problem }] : inOperands);
  }
}

/** Returns the operands of a logical operator. Empty for other parts. */
function operandsOf({ op, args }: ASTNode): readonly ASTNode[] {
  if (op === "!_") return [args];
  return op === "&&" || op === "||" || op === "?:" ? args : [];
}

/** Ends the conversion at the first problem. Only {@link parseTerm} catches it. */
class UnsupportedSyntax extends Error {
  readonly offset: number;

  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

function reject(offset: number, message: string): never {
  throw new UnsupportedSyntax(offset, message);
}

function readTerm(node: ASTNode): Term {
  const { start: offset } = node;
  switch (node.op) {
    case "value":
      return readLiteral(node.args, offset);
    case "id":
    case ".":
      return readField(node);
    case "call":
    case "rcall":
      return readCall(node);
    case "in":
      return readInList(node.args, offset);
    case "-_":
      return readNegation(node.args, offset);
    case "!_":
      return { kind: "not", offset, operand: readTerm(node.args) };
    case "?:": {
      const [test, yes, no] = node.args;
      return { kind: "choice", offset, test: readTerm(test), sides: readPair([yes, no]) };
    }
    case "list":
      return reject(offset, "a list is only allowed after in");
    case "map":
      return reject(offset, "maps are not supported");
    case "[]":
    case "[?]":
    case ".?":
      return reject(offset, "fields must be written as node.status, not with [ ]");
    default:
      return readInfix(node.op, node.args, offset);
  }
}

function readInfix(op: string, operands: readonly [ASTNode, ASTNode], offset: number): Term {
  rejectUnsupported(op, offset);
  const sides = readPair(operands);
  if (op === "&&" || op === "||") return { kind: "logic", offset, operator: op, sides };
  const comparison = COMPARISONS.find((operator) => operator === op);
  if (comparison !== undefined) return { kind: "comparison", offset, operator: comparison, sides };
  const arithmetic = ARITHMETIC.find((operator) => operator === op);
  if (arithmetic === undefined) return reject(offset, `${op} is not supported`);
  if (sides.some(isText)) {
    const isDuration = sides.some(
      (side) => side.kind === "literal" && typeof side.value === "string" && parseDuration(side.value).ok,
    );
    return reject(offset, `strings can't be added or subtracted${isDuration ? DURATION_HINT : ""}`);
  }
  return { kind: "arithmetic", offset, operator: arithmetic, sides };
}

const readPair = ([left, right]: readonly [ASTNode, ASTNode]): TermPair => [readTerm(left), readTerm(right)];

function rejectUnsupported(name: string, offset: number): void {
  const reason = UNSUPPORTED_SYNTAX.get(name);
  if (reason !== undefined) reject(offset, `${name} is not supported: ${reason}`);
}

function readNegation(negated: ASTNode, offset: number): Term {
  const operand = readTerm(negated);
  if (operand.kind === "literal" && typeof operand.value === "number")
    return { ...operand, offset, value: -operand.value };
  return { kind: "minus", offset, operand };
}

function readLiteral(written: unknown, offset: number): LiteralTerm {
  if (written === null) rejectUnsupported("null", offset);
  if (typeof written === "string" || typeof written === "boolean" || typeof written === "number") {
    return { kind: "literal", offset, value: written };
  }
  if (typeof written !== "bigint") return reject(offset, "bytes and unsigned integers are not supported");
  const value = Number(written);
  if (!Number.isSafeInteger(value)) return reject(offset, "integers can be at most 2^53 - 1");
  return { kind: "literal", offset, value };
}

function readField(node: ASTNode): Term {
  const { start: offset } = node;
  const path = fieldPathOf(node);
  if (path === null) return reject(offset, "only a field can be selected, as in node.status");
  const field = findField(path);
  if (field !== null) return { kind: "field", offset, field };
  const within = FIELDS.find(({ name }) => name.startsWith(`${path}.`));
  if (within !== undefined) {
    const ofNode = findField(`node.${path}`);
    const hint = ofNode === null ? `name one of its fields, such as ${within.name}` : `did you mean ${ofNode.name}?`;
    return reject(offset, `${path} is not a field; ${hint}`);
  }
  const suggestion = suggestField(path);
  return reject(
    offset,
    `unknown field ${path}; ${suggestion === null ? describeFields(path) : `did you mean ${suggestion}?`}`,
  );
}

/** Returns the names of the fields of an object such as `node`, without the object. */
const fieldsOfObject = (object: string): readonly string[] =>
  FIELDS.flatMap(({ name }) => (name.startsWith(`${object}.`) ? [name.slice(object.length + 1)] : []));

/** Says which fields exist, for a path that resembles none of them. */
function describeFields(path: string): string {
  const [object, ...rest] = path.split(".");
  if (rest.length === 0) return `text is written in quotes, as in "${path}"`;
  const names = fieldsOfObject(object!);
  return names.length === 0
    ? "fields belong to node, sessions, fleet or region"
    : `the fields of ${object} are ${names.join(", ")}`;
}

/** Suggests `fleet.median.cpu_usage` for `fleet.cpu_usage` and `fleet.median.cpu`, and `node.status` for `status`. */
function suggestField(path: string): string | null {
  const names = FIELDS.map(({ name }) => name);
  const [object, ...rest] = path.split(".");
  const within = names.find((name) => name.startsWith(`${object}.`) && name.endsWith(`.${rest.at(-1)}`));
  const longer = names.find((name) => name.startsWith(`${path}_`));
  const found = within ?? longer ?? names.find((name) => name.endsWith(`.${path}`));
  if (found !== undefined) return found;
  const siblings = fieldsOfObject(object!);
  if (siblings.length === 0) return nearest(path, names);
  // A correct object is not compared, because it would make every field look similar.
  const sibling = nearest(rest.join("."), siblings);
  return sibling === null ? null : `${object}.${sibling}`;
}

function fieldPathOf({ op, args }: ASTNode): string | null {
  if (op === "id") return args;
  if (op !== ".") return null;
  const [object, name] = args;
  const path = fieldPathOf(object);
  return path === null ? null : `${path}.${name}`;
}

function readInList([left, right]: readonly [ASTNode, ASTNode], offset: number): Term {
  const member = readTerm(left);
  if (right.op !== "list") return reject(right.start, 'in needs a list, such as ["DE", "FR"]');
  const elements = right.args;
  if (elements.length === 0) return reject(right.start, "an empty list never matches");
  const list = elements.map((element) => {
    const term = readTerm(element);
    return term.kind === "literal" ? term : reject(element.start, "list elements must be constants");
  });
  return { kind: "in", offset, member, list };
}

/** Reads a call of a function, or of a method, whose receiver comes before its arguments. */
function readCall({ op, args, start: offset }: Extract<ASTNode, { op: "call" | "rcall" }>): Term {
  const [name, ...rest] = args;
  const operands = rest.flat();
  const row = findFunction(name, offset);
  const method = METHODS.find((known) => known === name);
  if ((op === "rcall") !== (method !== undefined)) return reject(offset, `write it as ${row.form}`);
  if (row.name === "duration" || row.name === "timestamp") return readConstant(row, operands, offset);
  if (operands.length !== 2) return reject(offset, `write it as ${row.form}`);
  const sides = readPair(operands as [ASTNode, ASTNode]);
  return method === undefined
    ? { kind: "arithmetic", offset, operator: "ratio", sides }
    : { kind: "comparison", offset, operator: method, sides };
}

function findFunction(name: string, offset: number): FunctionRow {
  rejectUnsupported(name, offset);
  const row = FUNCTIONS.find((known) => known.name === name);
  if (row !== undefined) return row;
  const names = FUNCTIONS.map((known) => known.name);
  const suggestion = nearest(name, names);
  const hint = suggestion === null ? `the functions are ${names.join(", ")}` : `did you mean ${suggestion}?`;
  return reject(offset, `unknown function ${name}; ${hint}`);
}

/** Reads `duration("…")` or `timestamp("…")`. */
function readConstant({ name, form }: FunctionRow, operands: readonly ASTNode[], offset: number): LiteralTerm {
  const [operand] = operands;
  if (operands.length !== 1 || operand?.op !== "value" || typeof operand.args !== "string") {
    return reject(offset, `${name} needs a string constant, as in ${form}`);
  }
  const isTimestamp = name === "timestamp";
  const read = isTimestamp ? parseTimestamp(operand.args) : parseDuration(operand.args);
  return read.ok ? { kind: "literal", offset, value: read.value, isTimestamp } : reject(operand.start, read.error);
}

const isoTimestamp = /^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

function parseTimestamp(iso: string): Result<number, string> {
  const at = isoTimestamp.test(iso) ? parseIsoTime(iso) : Number.NaN;
  return Number.isNaN(at)
    ? fail("a timestamp must be ISO 8601 with a time zone, such as 2026-01-31T00:00:00Z")
    : ok(at);
}
