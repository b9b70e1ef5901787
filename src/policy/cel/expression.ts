import { type ASTNode, Environment, ParseError, type TypeError as TypeFault } from "@marcbachmann/cel-js";
import { fail, ok, type Result } from "../../base/result.ts";
import { compileProgram } from "./evaluation.ts";
import { FIELDS, type Field, type FieldType } from "./fields.ts";
import { parseTerm } from "./grammar.ts";
import { findImplausible } from "./plausibility.ts";
import type { Term, Value } from "./term.ts";
import { type ExpressionProblem, parseProblem, typeProblem, withoutTypeNames } from "./type-errors.ts";

/** A condition of a policy, checked and ready. It reads nothing but the fields it names. */
export interface Expression {
  /** As it was written. */
  readonly text: string;
  /** Every field that it names, whatever the evaluation would skip. At least one. */
  readonly fields: readonly Field[];
  /** Its parts, for those who ask what it reads and how. */
  readonly condition: Term;
  /**
   * The value over values, one a field in the order of {@link fields}, null where a field is unknown; timestamps in
   * milliseconds since the Unix epoch. Null: unknown, as {@link compileProgram} says.
   */
  evaluate(values: readonly (Value | null)[]): boolean | null;
}

/** Longest text of an expression, in characters: two hundred node ids in a list fit. */
const TEXT_CHARACTERS_MAX = 8_192;
/** Parts of an expression: each costs some nanoseconds a node and look. */
const EXPRESSION_NODES_MAX = 1_000;
/** How deep parentheses, calls and selections nest. */
const DEPTH_MAX = 32;
const LIST_ELEMENTS_MAX = 256;
const CALL_ARGUMENTS_MAX = 8;

/**
 * Reads a condition in CEL, and refuses what could never be meant: unknown fields, wrong types, what is no condition,
 * and conditions that would hold always or never. The same text gives the same expression.
 */
export function compileExpression(text: string): Result<Expression, ExpressionProblem> {
  if (text.trim() === "") return fail({ message: "the expression is empty", offset: 0 });
  if (text.length > TEXT_CHARACTERS_MAX) {
    const message = `the expression has ${text.length} characters, of ${TEXT_CHARACTERS_MAX} at most`;
    return fail({ message, offset: TEXT_CHARACTERS_MAX });
  }
  const parsed = parse(text);
  if (!parsed.ok) return parsed;
  const term = parseTerm(parsed.value.ast);
  if (!term.ok) return term;
  const checked = parsed.value.check();
  if (checked.error !== undefined) return fail(typeProblem(checked.error, text));
  if (checked.type !== "bool") {
    const message = `the expression must be true or false, and is of the type ${withoutTypeNames(checked.type ?? "dyn")}`;
    return fail({ message, offset: parsed.value.ast.start });
  }
  const implausible = findImplausible(term.value);
  if (implausible !== null) return fail(implausible);
  const { fields, run } = compileProgram(term.value);
  return ok({ text, fields, condition: term.value, evaluate: run });
}

interface Parsed {
  readonly ast: ASTNode;
  check(): { readonly type?: string; readonly error?: ParseError | TypeFault };
}

function parse(text: string): Result<Parsed, ExpressionProblem> {
  try {
    return ok(environment.parse(text));
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    return fail(parseProblem(error, text));
  }
}

const CEL_TYPES: Readonly<Record<FieldType, string>> = {
  string: "string",
  int: "int",
  double: "double",
  timestamp: "google.protobuf.Timestamp",
};

/** Declarations by segments of the fields' names: `{ node: { status: "string" }, now: … }`. */
interface Declarations {
  [name: string]: string | Declarations;
}

/** What expressions are checked against. It runs none of them: see {@link compileProgram}. */
const environment = createEnvironment();

function createEnvironment(): Environment {
  const created = new Environment({
    limits: {
      maxAstNodes: EXPRESSION_NODES_MAX,
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
 * Numbers of any kind go together. CEL orders an int and a double as they come, but to it their equality and their sum
 * are type errors.
 */
function registerMixedNumbers(created: Environment): void {
  const mixed = [
    ["int", "double"],
    ["double", "int"],
  ] as const;
  // Declared this way round, equality is declared the other way round as well.
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
