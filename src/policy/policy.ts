import type { PolicySpec } from "../config/schema/policy.ts";
import type { Safety } from "../config/schema/safety.ts";
import { MODES, type Mode } from "../model/policy/policy.ts";
import { compileExpression, type Expression } from "./cel/expression.ts";
import type { Field } from "./cel/fields.ts";

/** A policy with compiled expressions. */
export type Policy = ReturnType<typeof compilePolicy>;

/** A policy and its current status. */
export interface ActivePolicy {
  readonly policy: Policy;
  /** The lowest of its own mode, `safety.mode`, and dry_run if its efficacy is too low. */
  readonly mode: Mode;
  /**
   * Whether it has fallen back to dry_run because its efficacy is too low. This ends when the policy's text changes, or
   * with reset-breaker.
   */
  readonly hasFallenBack: boolean;
  /** Whether an action under this version of the policy was verified. */
  readonly proven: boolean;
}

/**
 * Returns whether a policy only records actions. Dry runs have separate limits and are never counted with real actions.
 */
export const isDryRun = ({ mode }: ActivePolicy): boolean => mode === "dry_run";

/** Compiles a validated policy. Throws if an expression is invalid. */
export function compilePolicy(spec: PolicySpec) {
  const { mode: _, ...rest } = spec;
  return {
    spec,
    match: spec.match === null ? null : mustCompile(spec.match),
    when: mustCompile(spec.when),
    /** The `expect` of each step. Null means the default of its action. */
    expects: spec.steps.map((step) =>
      step.action === "notify" || step.verify.expect === null ? null : mustCompile(step.verify.expect),
    ),
    /** Canonical text of the policy without its mode. Canary and efficacy start over when it changes. */
    fingerprint: JSON.stringify(rest),
    /** Canonical text of `match` and `when`. Timers start over when it changes. */
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
export const expressionSources = (expressions: readonly (Expression | null)[]): Field["source"][] => [
  ...new Set(expressions.flatMap((expression) => expression?.fields.map(({ source }) => source) ?? [])),
];

/** Returns the collectors that read the fields of a policy. */
export const policySources = ({ match, when }: Pick<Policy, "match" | "when">): Field["source"][] =>
  expressionSources([match, when]);

/** Returns every expression of some policies. */
export const expressionsOf = (policies: readonly PolicySpec[]): (Expression | null)[] =>
  policies.map(compilePolicy).flatMap(({ match, when, expects }) => [match, when, ...expects]);

/** Returns every expression of a configuration: those of its policies, and `safety.protected`. */
export const configuredExpressions = (
  policies: readonly PolicySpec[],
  safety: Pick<Safety, "protected">,
): (Expression | null)[] => [
  ...expressionsOf(policies),
  safety.protected === null ? null : mustCompile(safety.protected),
];

/** Returns the lower of two modes. */
export const lowerMode = (one: Mode, other: Mode): Mode => MODES[Math.min(MODES.indexOf(one), MODES.indexOf(other))]!;

/** Returns the {@link Policy.conditionKey} of a fingerprint. */
export function conditionKeyOf(fingerprint: string): string {
  const { match, when } = JSON.parse(fingerprint) as { match: string | null; when: string };
  return JSON.stringify([match, when]);
}
