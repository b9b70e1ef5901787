import type { PolicySpec } from "../config/schema/policy.ts";
import type { Mode } from "../model/policy/policy.ts";
import type { Action } from "../model/remediation/episode.ts";
import type { Expression } from "../policy/cel/expression.ts";
import { type ActivePolicy, compilePolicy, lowerMode, mustCompile, type Policy } from "../policy/policy.ts";
import type { RemediationRecords } from "../policy/remediation-records.ts";
import type { RemediationConfig } from "./context.ts";

/** Key of the fact that holds the fingerprint that the policy had when an action under it was last verified. */
export const canaryFactKey = (policy: string): string => `remediation.canary.${policy}`;
/**
 * Key of the fact that holds the fingerprint that the policy had when it fell back to `dry_run` because it healed too few
 * nodes.
 */
export const fallbackFactKey = (policy: string): string => `remediation.fallback.${policy}`;
/**
 * Key of the fact that holds the time from which the policy's efficacy is measured. Absent if no operator has reset it.
 */
export const efficacySinceFactKey = (policy: string): string => `remediation.efficacy_since.${policy}`;
/** Key of the fact that holds the {@link Policy.conditionKey} under which the policy's timers last ran. */
export const conditionFactKey = (policy: string): string => `remediation.condition.${policy}`;
/** Key of the fact that holds the `for` of the policy, in milliseconds, under which its timers last ran. */
export const forFactKey = (policy: string): string => `remediation.for.${policy}`;

/** The policy under which an action was sent, and how its step is verified. */
export type SentUnder = NonNullable<ReturnType<PolicySet["sentUnder"]>>;

/**
 * The policies of the configuration, the modes that are in force, and earlier versions that episodes still refer to.
 */
export class PolicySet {
  readonly all: readonly Policy[];
  /** The expression in `safety.protected`, or null if no node is protected. */
  readonly protectedNodes: Expression | null;
  readonly #ceiling: Mode;
  readonly #records: RemediationRecords;
  readonly #earlier = new Map<string, Policy | null>();

  constructor({ policies, safety }: RemediationConfig, records: RemediationRecords) {
    this.all = policies.map(compilePolicy);
    this.protectedNodes = safety.protected === null ? null : mustCompile(safety.protected);
    this.#ceiling = safety.mode;
    this.#records = records;
  }

  /** Returns the policy of that name, or null if the configuration has none. */
  find(name: string): Policy | null {
    return this.all.find(({ spec }) => spec.name === name) ?? null;
  }

  /** Returns the policy of that name with the mode that is in force, or null if the configuration has none. */
  findActive(name: string): ActivePolicy | null {
    const policy = this.find(name);
    return policy === null ? null : this.activate(policy);
  }

  /** Returns a policy with the mode that is in force. */
  activate(policy: Policy): ActivePolicy {
    const { name, mode } = policy.spec;
    const hasFallenBack = this.#records.fact(fallbackFactKey(name)) === policy.fingerprint;
    return {
      policy,
      mode: hasFallenBack ? "dry_run" : lowerMode(mode, this.#ceiling),
      hasFallenBack,
      proven: this.#records.fact(canaryFactKey(name)) === policy.fingerprint,
    };
  }

  /** Returns all policies with the modes that are in force. */
  active(): readonly ActivePolicy[] {
    return this.all.map((policy) => this.activate(policy));
  }

  /**
   * Returns the policy under which an action was sent, with the `verify` of the action's step and its `expect`, which is
   * null if it has none. Returns null if this version of the daemon can't read the policy.
   */
  sentUnder({ fingerprint, step: index }: Action) {
    const policy = this.withFingerprint(fingerprint);
    const step = policy?.spec.steps[index];
    if (policy === null || step === undefined || step.action === "notify") return null;
    return { policy, verify: step.verify, expect: policy.expects[index] ?? null };
  }

  /** Returns the policy that has or had that fingerprint, or null if this version of the daemon can't read it. */
  withFingerprint(fingerprint: string): Policy | null {
    const current = this.all.find((policy) => policy.fingerprint === fingerprint);
    if (current !== undefined) return current;
    if (!this.#earlier.has(fingerprint)) this.#earlier.set(fingerprint, parseFingerprint(fingerprint));
    return this.#earlier.get(fingerprint)!;
  }
}

function parseFingerprint(fingerprint: string): Policy | null {
  try {
    return compilePolicy({ ...(JSON.parse(fingerprint) as Omit<PolicySpec, "mode">), mode: "enforce" });
  } catch {
    return null;
  }
}
