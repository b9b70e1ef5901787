import { parseDuration } from "../../base/duration.ts";
import { fail, ok, type Result } from "../../base/result.ts";
import { nearest } from "../../base/nearest-word.ts";
import { FIELDS, fieldNamed } from "./fields.ts";
import { FUNCTIONS, type FunctionRow, functionNamed, REFUSALS } from "./functions.ts";
import type { ExpressionProblem } from "./type-errors.ts";
import {
  ARITHMETIC,
  COMPARISONS,
  isText,
  type LiteralTerm,
  METHODS,
  type Pair,
  type Term,
  type Value,
} from "./term.ts";

/** A part of a parsed expression, as CEL gives it: what `args` are depends on `op`. */
export interface Syntax {
  readonly op: string;
  readonly args: unknown;
  /** Where it begins in the text. */
  readonly start: number;
}

/**
 * What of CEL a policy may use: everything else is refused here, by name, with what to write instead. What is taken
 * still has to pass CEL's own type check.
 */
export function termOf(root: Syntax): Result<Term, ExpressionProblem> {
  const problems: ExpressionProblem[] = [];
  const term = createReader((offset, message) => {
    problems.push({ message, offset });
    return null;
  })(root);
  return term === null ? fail(problems[0]!) : ok(term);
}

/** Notes why something is refused; its null goes up to the root. */
type Refuse = (offset: number, message: string) => null;
type Reader = (node: Syntax) => Term | null;

function createReader(refuse: Refuse): Reader {
  const read: Reader = (node) => {
    const { op, args, start: offset } = node;
    if (op === "value") return literal(node, refuse);
    if (op === "id" || op === ".") return field(node, refuse);
    if (op === "call") return called(node, read, refuse);
    if (op === "rcall") return calledOn(node, read, refuse);
    if (op === "in") return inList(node, read, refuse);
    if (op === "-_") return minus(node, read);
    if (op === "!_") {
      const operand = read(args as Syntax);
      return operand === null ? null : { kind: "not", offset, operand };
    }
    if (op === "?:") {
      const [test, yes, no] = (args as readonly Syntax[]).map(read);
      return test && yes && no ? { kind: "choice", offset, test, sides: [yes, no] } : null;
    }
    if (op === "list") return refuse(offset, "a list is only allowed after in");
    if (op === "map") return refuse(offset, "maps are not supported");
    if (op === "[]") return refuse(offset, "fields must be written as node.status, not with [ ]");
    const reason = REFUSALS.get(op);
    if (reason !== undefined) return refuse(offset, `${op} is refused: ${reason}`);
    return infix(node, read, refuse);
  };
  return read;
}

function infix({ op, args, start: offset }: Syntax, read: Reader, refuse: Refuse): Term | null {
  const sides = pair(args as readonly Syntax[], read);
  if (sides === null) return null;
  if (op === "&&" || op === "||") return { kind: "logic", offset, operator: op, sides };
  const comparison = COMPARISONS.find((operator) => operator === op);
  if (comparison !== undefined) return { kind: "comparison", offset, operator: comparison, sides };
  const arithmetic = ARITHMETIC.find((operator) => operator === op);
  if (arithmetic === undefined) return refuse(offset, `${op} is refused`);
  if (sides.some(isText)) return refuse(offset, "strings can't be concatenated");
  return { kind: "arithmetic", offset, operator: arithmetic, sides };
}

function pair(nodes: readonly Syntax[], read: Reader): Pair | null {
  const [left, right] = nodes.map(read);
  return left && right ? [left, right] : null;
}

function minus({ args, start: offset }: Syntax, read: Reader): Term | null {
  const operand = read(args as Syntax);
  if (operand === null) return null;
  if (operand.kind === "literal" && typeof operand.value === "number")
    return { ...operand, offset, value: -operand.value };
  return { kind: "minus", offset, operand };
}

function literal({ args, start: offset }: Syntax, refuse: Refuse): LiteralTerm | null {
  if (args === null) return refuse(offset, `null is refused: ${REFUSALS.get("null")}`);
  if (typeof args === "string" || typeof args === "boolean" || typeof args === "number") {
    return { kind: "literal", offset, value: args };
  }
  if (typeof args !== "bigint") return refuse(offset, "neither bytes nor unsigned numbers are of use here");
  const value = Number(args);
  if (!Number.isSafeInteger(value)) return refuse(offset, "a whole number is at most 2^53 - 1");
  return { kind: "literal", offset, value };
}

function field(node: Syntax, refuse: Refuse): Term | null {
  const path = pathOf(node);
  if (path === null) return refuse(node.start, "only a field can be selected, as in node.status");
  const found = fieldNamed(path);
  if (found !== null) return { kind: "field", offset: node.start, field: found };
  const within = FIELDS.find(({ name }) => name.startsWith(`${path}.`));
  if (within !== undefined)
    return refuse(node.start, `${path} is no value by itself; name a field of it, such as ${within.name}`);
  const suggestion = suggested(path);
  return refuse(node.start, `unknown field ${path}${suggestion === null ? "" : `; did you mean ${suggestion}?`}`);
}

/** `fleet.cpu_usage` was meant to be `fleet.median.cpu_usage`, and `status` to be `node.status`. */
function suggested(path: string): string | null {
  const names = FIELDS.map(({ name }) => name);
  const segments = path.split(".");
  const within = names.find((name) => name.startsWith(`${segments[0]}.`) && name.endsWith(`.${segments.at(-1)}`));
  return within ?? names.find((name) => name.endsWith(`.${path}`)) ?? nearest(path, names);
}

function pathOf({ op, args }: Syntax): string | null {
  if (op === "id") return args as string;
  if (op !== ".") return null;
  const [object, name] = args as readonly [Syntax, string];
  const path = pathOf(object);
  return path === null ? null : `${path}.${name}`;
}

function inList({ args, start: offset }: Syntax, read: Reader, refuse: Refuse): Term | null {
  const [left, right] = args as readonly [Syntax, Syntax];
  const member = read(left);
  if (right.op !== "list") return refuse(right.start, 'in needs a list, such as ["DE", "FR"]');
  const elements = right.args as readonly Syntax[];
  if (elements.length === 0) return refuse(right.start, "an empty list never matches");
  const list = elements.map((element) => {
    const term = read(element);
    if (term === null || term.kind === "literal") return term;
    return refuse(element.start, "a list holds plain values");
  });
  return member !== null && isWhole(list) ? { kind: "in", offset, member, list } : null;
}

const isWhole = <T>(list: readonly (T | null)[]): list is readonly T[] => !list.includes(null);

function called({ args, start: offset }: Syntax, read: Reader, refuse: Refuse): Term | null {
  const [name, operands] = args as readonly [string, readonly Syntax[]];
  const row = knownFunction(name, offset, refuse);
  if (row === null) return null;
  if (row.isMethod) return refuse(offset, `${name} is written ${row.form}`);
  if (row.name === "duration" || row.name === "timestamp") return constant(row, operands, offset, refuse);
  const sides = pair(operands, read);
  if (operands.length !== 2) return refuse(offset, `${name} is written ${row.form}`);
  return sides === null ? null : { kind: "ratio", offset, sides };
}

function calledOn({ args, start: offset }: Syntax, read: Reader, refuse: Refuse): Term | null {
  const [name, receiver, operands] = args as readonly [string, Syntax, readonly Syntax[]];
  const row = knownFunction(name, offset, refuse);
  if (row === null) return null;
  const method = METHODS.find((known) => known === name);
  if (method === undefined || operands.length !== 1) return refuse(offset, `${name} is written ${row.form}`);
  const sides = pair([receiver, operands[0]!], read);
  return sides === null ? null : { kind: "method", offset, method, sides };
}

function knownFunction(name: string, offset: number, refuse: Refuse): FunctionRow | null {
  const reason = REFUSALS.get(name);
  if (reason !== undefined) return refuse(offset, `${name} is refused: ${reason}`);
  const row = functionNamed(name);
  if (row !== null) return row;
  const names = FUNCTIONS.map((known) => known.name);
  const suggestion = nearest(name, names);
  const hint = suggestion === null ? `there are ${names.join(", ")}` : `did you mean ${suggestion}?`;
  return refuse(offset, `unknown function ${name}; ${hint}`);
}

/** A length of time or an instant that is written out, worked out once. */
function constant(row: FunctionRow, operands: readonly Syntax[], offset: number, refuse: Refuse): LiteralTerm | null {
  const [operand] = operands;
  if (operands.length !== 1 || operand?.op !== "value" || typeof operand.args !== "string") {
    return refuse(offset, `${row.name} takes a text that is written out, as in ${row.form}`);
  }
  const read: Result<Value, string> = row.name === "duration" ? parseDuration(operand.args) : instant(operand.args);
  return read.ok ? { kind: "literal", offset, value: read.value } : refuse(operand.start, read.error);
}

const isoTimestamp = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

function instant(iso: string): Result<number, string> {
  const date = isoTimestamp.exec(iso)?.[1];
  // Date.parse takes the 30th of February for the 2nd of March.
  const midnight = date === undefined ? Number.NaN : Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date!)) {
    return fail("a timestamp is ISO 8601 with a zone, such as 2026-01-31T00:00:00Z");
  }
  return ok(Date.parse(iso));
}
