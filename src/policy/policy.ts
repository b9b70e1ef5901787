import { MODES, type Mode, type PolicyRule } from "../model/policy/policy.ts";
import type { Collector } from "../model/snapshot.ts";
import { compileExpression, type Expression } from "./cel/expression.ts";

/** A policy with compiled expressions. */
export interface Policy {
  readonly rule: PolicyRule;
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
export function compilePolicy(rule: PolicyRule): Policy {
  const { mode: _, ...rest } = rule;
  return {
    rule,
    match: rule.match === null ? null : mustCompile(rule.match),
    when: mustCompile(rule.when),
    expects: rule.steps.map((step) =>
      step.action === "notify" || step.verify.expect === null ? null : mustCompile(step.verify.expect),
    ),
    fingerprint: JSON.stringify(rest),
    conditionKey: JSON.stringify([rule.match, rule.when]),
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
export const expressionsOf = (rules: readonly PolicyRule[]): (Expression | null)[] =>
  rules.map(compilePolicy).flatMap(({ match, when, expects }) => [match, when, ...expects]);

/** Returns the lower of two modes. */
export const lowerMode = (one: Mode, other: Mode): Mode => MODES[Math.min(MODES.indexOf(one), MODES.indexOf(other))]!;

/** Returns the {@link Policy.conditionKey} of a fingerprint. */
export function conditionKeyOf(fingerprint: string): string {
  const { match, when } = JSON.parse(fingerprint) as { match: string | null; when: string };
  return JSON.stringify([match, when]);
}
