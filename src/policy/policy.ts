import { MODES, type Mode, type PolicyRule } from "../model/policy/policy.ts";
import type { Collector } from "../model/snapshot.ts";
import { compileExpression, type Expression } from "./cel/expression.ts";

/** A policy whose expressions are compiled. */
export interface Policy {
  readonly rule: PolicyRule;
  readonly match: Expression | null;
  readonly when: Expression;
  /** By step, its `expect`; null: the default of its action. */
  readonly expects: readonly (Expression | null)[];
  /** Canonical text of everything except the mode. Canary and efficacy start over when it changes. */
  readonly fingerprint: string;
  /** Canonical text of `match` and `when`: timers continue while it is the same. */
  readonly conditionKey: string;
}

/** Compiles a policy that was validated; throws if an expression is invalid. */
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

/** Compiles an expression that was validated; throws if it is invalid. */
export function mustCompile(text: string): Expression {
  const expression = compileExpression(text);
  if (!expression.ok) throw new Error(`${JSON.stringify(text)}: ${expression.error.message}`);
  return expression.value;
}

/** The collectors that bring what some expressions read. */
export const expressionSources = (expressions: readonly (Expression | null)[]): Collector[] => [
  ...new Set(expressions.flatMap((each) => each?.fields.map(({ source }) => source) ?? [])),
];

/** The collectors that bring what a policy reads. */
export const policySources = ({ match, when }: Pick<Policy, "match" | "when">): Collector[] =>
  expressionSources([match, when]);

/** The lesser of two modes. */
export const lowerMode = (one: Mode, other: Mode): Mode => MODES[Math.min(MODES.indexOf(one), MODES.indexOf(other))]!;

/** Returns the {@link Policy.conditionKey} of a fingerprint. */
export function conditionKeyOf(fingerprint: string): string {
  const { match, when } = JSON.parse(fingerprint) as { match: string | null; when: string };
  return JSON.stringify([match, when]);
}
