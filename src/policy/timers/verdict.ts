import type { DurationMs } from "../../base/duration.ts";
import type { Collector } from "../../model/snapshot.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { Expression } from "../cel/expression.ts";
import type { MissingReason } from "../cel/field-readers.ts";
import type { EvaluatedNode } from "../cel/field-values.ts";
import type { Field, FieldName } from "../cel/fields.ts";
import type { Value } from "../cel/term.ts";

/** Three values: what is not known for sure is neither true nor false. */
export type Verdict = "true" | "false" | "unknown";

/** Something that keeps a verdict from being known. */
export interface UnknownCause {
  /** Null: the expression itself: a ratio by 0, or a number that is too large. */
  readonly field: FieldName | null;
  /** `stale`: older than its max_age; `error`: all fields are known, and what is computed from them is not. */
  readonly why: MissingReason | "stale" | "error";
}

/** The result of an expression on a node, with its evidence. */
export interface ExpressionResult {
  readonly verdict: Verdict;
  /** In the order of the text; empty: the verdict is known. */
  readonly unknowns: readonly UnknownCause[];
  /**
   * When the oldest datum that was read was observed: of those that are fresh, or, of an unknown verdict, of all. Where
   * there was none, the moment of asking.
   */
  readonly at: MonotonicMs;
  /** The same of the youngest. */
  readonly newest: MonotonicMs;
  /** Everything that was read and is there, by field; timestamps in ISO 8601. Worked out when it is called. */
  fields(): Readonly<Record<string, Value>>;
}

/** The result of a policy on a node. */
export interface PolicyEvaluation extends ExpressionResult {
  /** Whether `match` selects the node; null: unknown. */
  readonly matched: boolean | null;
}

/** Returns how old the data of a collector may be. */
export type MaxAgeOf = (source: Collector) => DurationMs;

/**
 * Evaluates a policy on a node: `match && when`, of three values. A node that `match` rules out is `false`, and `when` is not
 * read.
 *
 * `now` should be the same for all nodes that are evaluated together.
 */
export function evaluatePolicy(
  policy: { readonly match: Expression | null; readonly when: Expression },
  subject: EvaluatedNode,
  maxAgeOf: MaxAgeOf,
  now: MonotonicMs,
): PolicyEvaluation {
  if (policy.match === null) return { ...evaluateExpression(policy.when, subject, maxAgeOf, now), matched: true };
  const match = evaluateExpression(policy.match, subject, maxAgeOf, now);
  if (match.verdict === "false") return { ...match, matched: false };
  const when = evaluateExpression(policy.when, subject, maxAgeOf, now);
  const matched = match.verdict === "true" ? true : null;
  if (matched === null) return { ...(when.verdict === "false" ? when : match), matched };
  return {
    verdict: when.verdict,
    unknowns: when.unknowns,
    at: Math.min(match.at, when.at),
    newest: Math.max(match.newest, when.newest),
    fields: () => ({ ...match.fields(), ...when.fields() }),
    matched,
  };
}

/**
 * Whether an expression holds of a node. A field that is missing or older than its max_age is unknown, and so is the
 * expression, unless the other operand of `&&` or `||` settles it.
 */
export function evaluateExpression(
  expression: Expression,
  subject: EvaluatedNode,
  maxAgeOf: MaxAgeOf,
  now: MonotonicMs,
): ExpressionResult {
  const values: (Value | null)[] = [];
  const unknowns: UnknownCause[] = [];
  let oldestFresh = Number.POSITIVE_INFINITY;
  let oldest = Number.POSITIVE_INFINITY;
  let newest = Number.NEGATIVE_INFINITY;
  for (const field of expression.fields) {
    const freshFrom = now - maxAgeOf(field.source);
    const datum = subject.read(field, freshFrom);
    if (typeof datum === "string") {
      values.push(null);
      unknowns.push({ field: field.name, why: datum });
      continue;
    }
    oldest = Math.min(oldest, datum.at);
    newest = Math.max(newest, datum.at);
    // Written this way round, an age that is not a number is stale as well.
    const isFresh = datum.at >= freshFrom;
    values.push(isFresh ? datum.value : null);
    if (isFresh) oldestFresh = Math.min(oldestFresh, datum.at);
    else unknowns.push({ field: field.name, why: "stale" });
  }
  const known = expression.evaluate(values);
  if (known === null && unknowns.length === 0) unknowns.push({ field: null, why: "error" });
  // A stale field says nothing of a verdict that is known: the fresh ones settle it.
  const at = known === null ? oldest : oldestFresh;
  return {
    verdict: known === null ? "unknown" : known ? "true" : "false",
    unknowns: known === null ? unknowns : [],
    at: at === Number.POSITIVE_INFINITY ? now : at,
    newest: newest === Number.NEGATIVE_INFINITY ? now : newest,
    fields: () => evidenceFields(expression.fields, subject, maxAgeOf, now),
  };
}

function evidenceFields(fields: readonly Field[], subject: EvaluatedNode, maxAgeOf: MaxAgeOf, now: MonotonicMs) {
  const read: Record<string, Value> = {};
  for (const field of fields) {
    const datum = subject.read(field, now - maxAgeOf(field.source));
    if (typeof datum === "string") continue;
    read[field.name] = field.type === "timestamp" ? new Date(Number(datum.value)).toISOString() : datum.value;
  }
  return read;
}
