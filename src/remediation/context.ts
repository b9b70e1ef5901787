import type { ApiClient } from "../api-client/client.ts";
import type { Random } from "../base/random.ts";
import type { Safety } from "../config/schema/safety.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { NodeId } from "../model/node.ts";
import type { Mode, PolicyRule } from "../model/policy/policy.ts";
import type { TimeInterval } from "../model/policy/time-interval.ts";
import type { Clock, ExternalBlockers, Log } from "../model/ports.ts";
import type { HoldReason } from "../model/remediation/decision.ts";
import type { Collector, Snapshot } from "../model/snapshot.ts";
import type { Notifier } from "../notify/notifier.ts";
import type { Expression } from "../policy/cel/expression.ts";
import { slotsById } from "../policy/cel/field-values.ts";
import type { ActivePolicy } from "../policy/facts.ts";
import { compilePolicy, lowerMode, mustCompile, type Policy } from "../policy/policy.ts";
import type { Plan } from "../scheduling/planner.ts";
import type { RemediationState } from "./state/journaled-state.ts";

/** What a configuration asks of the warden. */
export interface RemediationRules {
  readonly policies: readonly PolicyRule[];
  readonly safety: Safety;
  readonly intervals: readonly TimeInterval[];
}

/** What the warden stands on. */
export interface RemediationContextDeps {
  readonly rules: RemediationRules;
  /** `service.base_url`: which service the nodes are of. */
  readonly serviceUrl: string;
  readonly remediationState: RemediationState;
  readonly client: ApiClient;
  readonly inventory: Inventory;
  readonly notifier: Notifier;
  readonly externalBlockers: ExternalBlockers;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: DaemonMetrics;
  readonly log: Log;
  /** Told when a read of ours brought something: a snapshot is wanted soon. */
  readonly onRead: () => void;
}

/** What the last decision about a node under a policy said. */
export interface ToldDecision {
  readonly policy: string;
  readonly node: NodeId;
  readonly shadow: boolean;
  /** Mode, verdict and reasons: a decision with another text is a change. */
  readonly text: string;
  /** Why the node is held; none: it is acted on. */
  readonly reasons: readonly HoldReason[];
}

/** The warden's own: what all of its rooms share. */
export interface RemediationContext extends RemediationContextDeps {
  readonly policies: readonly Policy[];
  readonly protected: Expression | null;
  readonly intervals: ReadonlyMap<string, TimeInterval>;
  /** What was seen last, and the plan by which it was; null before the first. */
  view: { readonly snapshot: Snapshot; readonly plan: Plan } | null;
  /** Why the service refuses our actions, and until when (monotonic) they are held for it. */
  keyRejection: { readonly message: string; readonly until: number } | null;
  /** What decisions said last, by policy and node: only changes are told. */
  readonly notifiedEpisodes: Map<string, ToldDecision>;
  /** Policies that are no more, by fingerprint, as far as something that was begun under them is still judged. */
  readonly earlierPolicies: Map<string, Policy | null>;
}

/** A ward that has seen nothing. */
export function createRemediationContext(parts: RemediationContextDeps): RemediationContext {
  const { policies, safety, intervals } = parts.rules;
  return {
    ...parts,
    policies: policies.map(compilePolicy),
    protected: safety.protected === null ? null : mustCompile(safety.protected),
    intervals: new Map(intervals.map((interval) => [interval.name, interval])),
    view: null,
    keyRejection: null,
    notifiedEpisodes: new Map(),
    earlierPolicies: new Map(),
  };
}

/** Keys of the facts about one policy. */
export const canaryFactKey = (policy: string): string => `warden.proven.${policy}`;
/** The policy's text under which it healed too little. */
export const fallbackFactKey = (policy: string): string => `warden.fallen.${policy}`;
/** Since when the policy's efficacy is measured, where an operator has reset it. */
export const efficacySinceFactKey = (policy: string): string => `warden.efficacy_since.${policy}`;
/** What the policy was about when its timers ran last. */
export const policySubjectFactKey = (policy: string): string => `warden.about.${policy}`;

/** A policy as it is in force at this moment. */
export function activePolicy({ remediationState, rules }: RemediationContext, policy: Policy): ActivePolicy {
  const { name, mode } = policy.rule;
  const hasFallenBack = remediationState.records.fact(fallbackFactKey(name)) === policy.fingerprint;
  const allowedMode: Mode = hasFallenBack ? "dry_run" : lowerMode(mode, rules.safety.mode);
  return {
    policy,
    mode: allowedMode,
    hasFallenBack,
    proven: remediationState.records.fact(canaryFactKey(name)) === policy.fingerprint,
  };
}

/** All policies as they are in force. */
export const activePolicies = (context: RemediationContext): readonly ActivePolicy[] =>
  context.policies.map((policy) => activePolicy(context, policy));

/** The policy of that name in the configuration; null: there is none. */
export const findPolicy = ({ policies }: RemediationContext, name: string): Policy | null =>
  policies.find(({ rule }) => rule.name === name) ?? null;

/**
 * The policy as it was when it had that fingerprint: what was begun under it is judged by it, whatever became of it
 * since. Null: this version does not understand it any more.
 */
export function policyByFingerprint(
  { policies, earlierPolicies: past }: RemediationContext,
  fingerprint: string,
): Policy | null {
  const present = policies.find((policy) => policy.fingerprint === fingerprint);
  if (present !== undefined) return present;
  let policy = past.get(fingerprint);
  if (policy === undefined) {
    policy = revivePolicy(fingerprint);
    past.set(fingerprint, policy);
  }
  return policy;
}

function revivePolicy(fingerprint: string): Policy | null {
  try {
    return compilePolicy({ ...(JSON.parse(fingerprint) as Omit<PolicyRule, "mode">), mode: "enforce" });
  } catch {
    return null;
  }
}

/** The oldest that a policy reads of a source; where it names no age, as long as the plan takes the data for fresh. */
export function maxAgeFor({ view }: RemediationContext, rule: PolicyRule | null): (source: Collector) => number {
  return (source) => rule?.maxAgeMs ?? view?.plan[source]?.freshMs ?? 0;
}

/** The slot of a node in the fleet as it was seen last; null: it is not there. */
export const slotOfNode = ({ view }: RemediationContext, node: NodeId): number | null =>
  view === null ? null : (slotsById(view.snapshot.fleet.ids).get(node) ?? null);
