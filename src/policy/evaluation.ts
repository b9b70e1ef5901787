import type { DurationMs } from "../base/duration.ts";
import type { Steps } from "../base/steps.ts";
import { isoAt, type MonotonicMs } from "../model/time.ts";
import type { Expression } from "./cel/expression.ts";
import type { MissingReason, ScopeData } from "./cel/field-readers.ts";
import type { Field } from "./cel/fields.ts";
import type { Value } from "./cel/term.ts";
import type { Policy } from "./policy.ts";

/** The value of a condition. */
export type Verdict = "true" | "false" | "unknown";

/** Why a verdict is unknown. */
export interface UnknownCause {
  /** `the expression` if it is unknown as a whole, because of a division by 0 or an overflow. */
  readonly field: string;
  /**
   * `stale` means older than its max_age; `error` means that all fields are known, but the result of a calculation is
   * not.
   */
  readonly why: MissingReason | "stale" | "error";
}

/** The value of an expression on a node, with its evidence. */
interface ExpressionResult {
  readonly verdict: Verdict;
  /** Unknown fields in the order of the text. Empty if the verdict is known. */
  readonly unknowns: readonly UnknownCause[];
  /**
   * When the oldest of the fresh values was observed or, if the verdict is unknown, the oldest of all values. If there
   * is no value, this is the time of the evaluation.
   */
  readonly at: MonotonicMs;
  /** When the newest value was observed. */
  readonly newest: MonotonicMs;
  /** Computes the values that exist, by field name; timestamps are in ISO 8601. */
  fields(): Readonly<Record<string, Value>>;
}

/** The value of a policy's condition on a node. */
export interface PolicyEvaluation extends ExpressionResult {
  /** Whether `match` selects the node, or null if unknown. */
  readonly matched: boolean | null;
}

/**
 * Returns whether a verdict is unknown only because the service states a status that this version does not know. The node
 * was observed, but not yet to be unhealthy.
 */
export const isStatusUnknown = ({ verdict, unknowns }: ExpressionResult): boolean =>
  verdict === "unknown" && unknowns.every(({ field, why }) => field === "node.status" && why === "missing");

/** Returns how old the data of a collector may be. */
export type MaxAgeOf = (source: Field["source"]) => DurationMs;

/** What an evaluation reads. It should be the same for all nodes that are evaluated together. */
export interface EvaluationInput {
  readonly data: ScopeData;
  readonly maxAgeOf: MaxAgeOf;
  readonly now: MonotonicMs;
}

/** The steps that compute what {@link evaluatePolicy} needs of the whole fleet. */
export function* prepareEvaluation(
  { match, when }: Pick<Policy, "match" | "when">,
  { data, maxAgeOf, now }: EvaluationInput,
): Steps<void> {
  for (const { prepare, source } of [...(match?.fields ?? []), ...when.fields])
    if (prepare !== undefined) yield* prepare(data, now - maxAgeOf(source));
}

/**
 * Evaluates `match && when` of a policy on the node in a slot, with three-valued logic. If `match` is false, `when` is
 * not evaluated.
 */
export function evaluatePolicy(
  policy: Pick<Policy, "match" | "when">,
  slot: number,
  input: EvaluationInput,
): PolicyEvaluation {
  if (policy.match === null) return { ...evaluateExpression(policy.when, slot, input), matched: true };
  const match = evaluateExpression(policy.match, slot, input);
  if (match.verdict === "false") return { ...match, matched: false };
  const when = evaluateExpression(policy.when, slot, input);
  if (match.verdict === "unknown") return { ...(when.verdict === "false" ? when : match), matched: null };
  return {
    verdict: when.verdict,
    unknowns: when.unknowns,
    at: Math.min(match.at, when.at),
    newest: Math.max(match.newest, when.newest),
    fields: () => ({ ...match.fields(), ...when.fields() }),
    matched: true,
  };
}

/**
 * Evaluates an expression on the node in a slot. A field that is missing or older than its max_age is unknown, and so
 * is the expression, unless the other operand of `&&` or `||` determines the result.
 */
export function evaluateExpression(
  expression: Expression,
  slot: number,
  { data, maxAgeOf, now }: EvaluationInput,
): ExpressionResult {
  const values: (Value | null)[] = [];
  const unknowns: UnknownCause[] = [];
  let oldestFresh = Number.POSITIVE_INFINITY;
  let oldest = Number.POSITIVE_INFINITY;
  let newest = Number.NEGATIVE_INFINITY;
  for (const field of expression.fields) {
    const freshFrom = now - maxAgeOf(field.source);
    const datum = field.read(data, slot, freshFrom);
    if (typeof datum === "string") {
      values.push(null);
      unknowns.push({ field: field.name, why: datum });
      continue;
    }
    oldest = Math.min(oldest, datum.at);
    newest = Math.max(newest, datum.at);
    // This is also false if the age is NaN.
    const isFresh = datum.at >= freshFrom;
    values.push(isFresh ? datum.value : null);
    if (isFresh) oldestFresh = Math.min(oldestFresh, datum.at);
    else unknowns.push({ field: field.name, why: "stale" });
  }
  const holds = expression.evaluate(values);
  if (holds === null && unknowns.length === 0) unknowns.push({ field: "the expression", why: "error" });
  // If the verdict is known, the fresh fields determined it.
  const at = holds === null ? oldest : oldestFresh;
  return {
    verdict: holds === null ? "unknown" : holds ? "true" : "false",
    unknowns: holds === null ? unknowns : [],
    at: at === Number.POSITIVE_INFINITY ? now : at,
    newest: newest === Number.NEGATIVE_INFINITY ? now : newest,
    fields() {
      const known = expression.fields.flatMap((field) => {
        const datum = field.read(data, slot, now - maxAgeOf(field.source));
        return typeof datum === "string" ? [] : [[field.name, evidenceValue(field, datum.value)] as const];
      });
      return Object.fromEntries(known);
    },
  };
}

const evidenceValue = ({ type }: Field, value: Value): Value => (type === "timestamp" ? isoAt(Number(value)) : value);
