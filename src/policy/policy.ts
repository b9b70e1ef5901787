import type { DurationMs } from "../base/duration.ts";
import type { Steps } from "../base/steps.ts";
import { MODES, type Mode, type PolicySpec } from "../model/policy/policy.ts";
import type { Collector } from "../model/snapshot.ts";
import type { MonotonicMs } from "../model/time.ts";
import { compileExpression, type Expression } from "./cel/expression.ts";
import type { MissingReason, ScopeData } from "./cel/field-readers.ts";
import type { Field } from "./cel/fields.ts";
import type { Value } from "./cel/term.ts";

/** A policy with compiled expressions. */
export interface Policy {
  readonly spec: PolicySpec;
  readonly match: Expression | null;
  readonly when: Expression;
  /** The `expect` of each step. Null means the default of its action. */
  readonly expects: readonly (Expression | null)[];
  /** Canonical text of the policy without its mode. Canary and efficacy start over when it changes. */
  readonly fingerprint: string;
  /** Canonical text of `match` and `when`. Timers start over when it changes. */
  readonly conditionKey: string;
}

/** Compiles a validated policy. Throws if an expression is invalid. */
export function compilePolicy(spec: PolicySpec): Policy {
  const { mode: _, ...rest } = spec;
  return {
    spec,
    match: spec.match === null ? null : mustCompile(spec.match),
    when: mustCompile(spec.when),
    expects: spec.steps.map((step) =>
      step.action === "notify" || step.verify.expect === null ? null : mustCompile(step.verify.expect),
    ),
    fingerprint: JSON.stringify(rest),
    conditionKey: JSON.stringify([spec.match, spec.when]),
  };
}

/** Compiles a validated expression. Throws if it is invalid. */
export function mustCompile(text: string): Expression {
  const expression = compileExpression(text);
  if (!expression.ok) throw new Error(`${JSON.stringify(text)}: ${expression.error[0]?.message}`);
  return expression.value;
}

/** Returns the collectors that read the fields of some expressions. */
export const expressionSources = (expressions: readonly (Expression | null)[]): Collector[] => [
  ...new Set(expressions.flatMap((expression) => expression?.fields.map(({ source }) => source) ?? [])),
];

/** Returns the collectors that read the fields of a policy. */
export const policySources = ({ match, when }: Pick<Policy, "match" | "when">): Collector[] =>
  expressionSources([match, when]);

/** Returns every expression of some policies. */
export const expressionsOf = (policies: readonly PolicySpec[]): (Expression | null)[] =>
  policies.map(compilePolicy).flatMap(({ match, when, expects }) => [match, when, ...expects]);

/** Returns the lower of two modes. */
export const lowerMode = (one: Mode, other: Mode): Mode => MODES[Math.min(MODES.indexOf(one), MODES.indexOf(other))]!;

/** Returns the {@link Policy.conditionKey} of a fingerprint. */
export function conditionKeyOf(fingerprint: string): string {
  const { match, when } = JSON.parse(fingerprint) as { match: string | null; when: string };
  return JSON.stringify([match, when]);
}

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
export interface ExpressionResult {
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

/** The steps that compute what {@link evaluatePolicy} needs of the whole fleet. */
export function* prepareEvaluation(
  policy: { readonly match: Expression | null; readonly when: Expression },
  scope: ScopeData,
  maxAgeOf: MaxAgeOf,
  now: MonotonicMs,
): Steps<void> {
  for (const { prepare, source } of [...(policy.match?.fields ?? []), ...policy.when.fields])
    if (prepare !== undefined) yield* prepare(scope, now - maxAgeOf(source));
}

/**
 * Evaluates `match && when` of a policy on the node in a slot, with three-valued logic. If `match` is false, `when` is
 * not evaluated. `now` should be the same for all nodes that are evaluated together.
 */
export function evaluatePolicy(
  policy: { readonly match: Expression | null; readonly when: Expression },
  scope: ScopeData,
  slot: number,
  maxAgeOf: MaxAgeOf,
  now: MonotonicMs,
): PolicyEvaluation {
  if (policy.match === null) return { ...evaluateExpression(policy.when, scope, slot, maxAgeOf, now), matched: true };
  const match = evaluateExpression(policy.match, scope, slot, maxAgeOf, now);
  if (match.verdict === "false") return { ...match, matched: false };
  const when = evaluateExpression(policy.when, scope, slot, maxAgeOf, now);
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
  scope: ScopeData,
  slot: number,
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
    const datum = field.read(scope, slot, freshFrom);
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
        const datum = field.read(scope, slot, now - maxAgeOf(field.source));
        return typeof datum === "string" ? [] : [[field.name, evidenceValue(field, datum.value)] as const];
      });
      return Object.fromEntries(known);
    },
  };
}

const evidenceValue = ({ type }: Field, value: Value): Value =>
  type === "timestamp" ? new Date(Number(value)).toISOString() : value;
