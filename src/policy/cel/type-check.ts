import { Environment, ParseError } from "@marcbachmann/cel-js";
import { fail, ok, type Result } from "../../base/result.ts";
import { describeParseError, describeTypeError, type ExpressionProblem, withoutTypeNames } from "./error-messages.ts";
import { FIELDS, type FieldType } from "./fields.ts";
import type { RejectedPart } from "./grammar.ts";

/** An expression that is valid CEL, with types that are not checked yet. */
type ParsedExpression = ReturnType<Environment["parse"]>;

/** Maximum size of the syntax tree. Each part of it takes nanoseconds in each evaluation. */
const AST_NODES_MAX = 1_000;
/** Maximum depth of nested parentheses, calls and selections. */
const DEPTH_MAX = 32;
const LIST_ELEMENTS_MAX = 256;
const CALL_ARGUMENTS_MAX = 8;

/** Parses a CEL expression. */
export function parseCel(text: string): Result<ParsedExpression, ExpressionProblem> {
  try {
    return ok(environment.parse(text));
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    return fail(describeParseError(error, text));
  }
}

/**
 * Checks that operands fit their operators and that the expression is a boolean. Returns every problem, except of the
 * parts that are `rejected` already.
 */
export function checkTypes(
  parsed: ParsedExpression,
  text: string,
  rejected: readonly RejectedPart[],
): readonly ExpressionProblem[] {
  for (const { part } of rejected) acceptAnyType(part);
  const found = new Map<object, ExpressionProblem>();
  for (;;) {
    const { type = "dyn", error } = parsed.check();
    if (error === undefined) {
      if (type === "bool" || found.size > 0 || rejected.length > 0) return [...found.values()];
      const message = `the expression must be true or false, but its type is ${withoutTypeNames(type)}`;
      return [{ message, offset: parsed.ast.start }];
    }
    const { node } = error;
    if (node === undefined || found.has(node)) return [...found.values()];
    found.set(node, describeTypeError(error, text));
    acceptAnyType(node);
  }
}

/**
 * Makes the type checker, which ends at the first problem, accept a part of an expression as a value of any type, so
 * that it checks the rest.
 */
function acceptAnyType(part: object): void {
  (part as { checkedType?: unknown }).checkedType = anyType;
}

const CEL_TYPES: Readonly<Record<FieldType, string>> = {
  string: "string",
  int: "int",
  double: "double",
  timestamp: "google.protobuf.Timestamp",
};

/** Used for parsing and type checks. {@link compileProgram} evaluates. */
const environment = createEnvironment();

/** CEL's type of a value that may have any type. */
const anyType = typeOf("dyn(1)");

function typeOf(text: string): unknown {
  const { ast, check } = environment.parse(text);
  check();
  return (ast as { checkedType?: unknown }).checkedType;
}

function createEnvironment(): Environment {
  const created = new Environment({
    limits: {
      maxAstNodes: AST_NODES_MAX,
      maxDepth: DEPTH_MAX,
      maxListElements: LIST_ELEMENTS_MAX,
      maxMapEntries: 0,
      maxCallArguments: CALL_ARGUMENTS_MAX,
    },
  });
  for (const [name, declared] of Object.entries(fieldDeclarations())) {
    if (typeof declared === "string") created.registerVariable(name, declared);
    else created.registerVariable({ name, schema: declared });
  }
  registerMixedNumbers(created);
  return created;
}

/** Types by the segments of field names: `{ node: { status: "string" }, now: … }`. */
interface Declarations {
  [name: string]: string | Declarations;
}

function fieldDeclarations(): Declarations {
  const roots: Declarations = {};
  for (const { name, type } of FIELDS) {
    const path = name.split(".");
    const last = path.pop()!;
    let section = roots;
    for (const segment of path) {
      section[segment] ??= {};
      section = section[segment] as Declarations;
    }
    section[last] = CEL_TYPES[type];
  }
  return roots;
}

/**
 * Declares operators between ints and doubles. CEL itself only orders them, and adding or equating them is a type
 * error.
 */
function registerMixedNumbers(created: Environment): void {
  const mixed = [
    ["int", "double"],
    ["double", "int"],
  ] as const;
  // This declares double == int as well.
  created.registerOperator("int == double", throwNotExecutable);
  for (const [left, right] of mixed) {
    for (const operator of ["+", "-", "*"])
      created.registerOperator(`${left} ${operator} ${right}: double`, throwNotExecutable);
    created.registerOperator(`${left} in list<${right}>`, throwNotExecutable);
  }
  for (const left of ["int", "double"]) {
    for (const right of ["int", "double"])
      created.registerFunction(`ratio(${left}, ${right}): double`, throwNotExecutable);
  }
}

function throwNotExecutable(): never {
  throw new Error("CEL only checks expressions");
}
