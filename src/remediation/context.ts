import type { Random } from "../base/random.ts";
import type { Plan } from "../scheduling/planner.ts";
import type { WardenMetrics } from "../metrics/daemon-metrics.ts";
import type { HoldReason } from "../model/remediation/decision.ts";
import type { NodeId } from "../model/node.ts";
import type { Mode, PolicyRule } from "../model/policy/policy.ts";
import type { Clock, Log, Obstacles } from "../model/ports.ts";
import type { Safety } from "../model/policy/safety.ts";
import type { Collector, Snapshot } from "../model/snapshot.ts";
import type { TimeInterval } from "../model/policy/time-interval.ts";
import type { Expression } from "../policy/cel/expression.ts";
import type { ActivePolicy } from "../policy/facts.ts";
import { compiled, compilePolicy, lesser, type Policy } from "../policy/policy.ts";
import { slotsOf } from "../policy/cel/field-values.ts";
import type { ServiceClient } from "../api-client/client.ts";
import type { Books } from "./state/journaled-state.ts";
import type { Inventory } from "../inventory/inventory.ts";
import type { Notifier } from "../notify/notifier.ts";

/** What a configuration asks of the warden. */
export interface Rules {
  readonly policies: readonly PolicyRule[];
  readonly safety: Safety;
  readonly intervals: readonly TimeInterval[];
}

/** What the warden stands on. */
export interface WardParts {
  readonly rules: Rules;
  /** `service.base_url`: which service the nodes are of. */
  readonly serviceUrl: string;
  readonly books: Books;
  readonly client: ServiceClient;
  readonly inventory: Inventory;
  readonly notifier: Notifier;
  readonly obstacles: Obstacles;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: WardenMetrics;
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
export interface Ward extends WardParts {
  readonly policies: readonly Policy[];
  readonly protected: Expression | null;
  readonly intervals: ReadonlyMap<string, TimeInterval>;
  /** What was seen last, and the plan by which it was; null before the first. */
  view: { readonly snapshot: Snapshot; readonly plan: Plan } | null;
  /** Why the service refuses our actions, and until when (monotonic) they are held for it. */
  credentials: { readonly message: string; readonly until: number } | null;
  /** What decisions said last, by policy and node: only changes are told. */
  readonly told: Map<string, ToldDecision>;
  /** Policies that are no more, by fingerprint, as far as something that was begun under them is still judged. */
  readonly past: Map<string, Policy | null>;
}

/** A ward that has seen nothing. */
export function createWard(parts: WardParts): Ward {
  const { policies, safety, intervals } = parts.rules;
  return {
    ...parts,
    policies: policies.map(compilePolicy),
    protected: safety.protected === null ? null : compiled(safety.protected),
    intervals: new Map(intervals.map((interval) => [interval.name, interval])),
    view: null,
    credentials: null,
    told: new Map(),
    past: new Map(),
  };
}

/** Keys of the facts about one policy. */
export const provenFact = (policy: string): string => `warden.proven.${policy}`;
/** The policy's text under which it healed too little. */
export const fallenFact = (policy: string): string => `warden.fallen.${policy}`;
/** Since when the policy's efficacy is measured, where an operator has reset it. */
export const efficacySinceFact = (policy: string): string => `warden.efficacy_since.${policy}`;
/** What the policy was about when its timers ran last. */
export const aboutFact = (policy: string): string => `warden.about.${policy}`;

/** A policy as it is in force at this moment. */
export function active({ books, rules }: Ward, policy: Policy): ActivePolicy {
  const { name, mode } = policy.rule;
  const fallen = books.casebook.fact(fallenFact(name)) === policy.fingerprint;
  const granted: Mode = fallen ? "dry_run" : lesser(mode, rules.safety.mode);
  return { policy, mode: granted, fallen, proven: books.casebook.fact(provenFact(name)) === policy.fingerprint };
}

/** All policies as they are in force. */
export const activePolicies = (ward: Ward): readonly ActivePolicy[] =>
  ward.policies.map((policy) => active(ward, policy));

/** The policy of that name in the configuration; null: there is none. */
export const policyNamed = ({ policies }: Ward, name: string): Policy | null =>
  policies.find(({ rule }) => rule.name === name) ?? null;

/**
 * The policy as it was when it had that fingerprint: what was begun under it is judged by it, whatever became of it
 * since. Null: this version does not understand it any more.
 */
export function policyAsOf({ policies, past }: Ward, fingerprint: string): Policy | null {
  const present = policies.find((policy) => policy.fingerprint === fingerprint);
  if (present !== undefined) return present;
  let policy = past.get(fingerprint);
  if (policy === undefined) {
    policy = revived(fingerprint);
    past.set(fingerprint, policy);
  }
  return policy;
}

function revived(fingerprint: string): Policy | null {
  try {
    return compilePolicy({ ...(JSON.parse(fingerprint) as Omit<PolicyRule, "mode">), mode: "enforce" });
  } catch {
    return null;
  }
}

/** The oldest that a policy reads of a source; where it names no age, as long as the plan takes the data for fresh. */
export function maxAgeOf({ view }: Ward, rule: PolicyRule | null): (source: Collector) => number {
  return (source) => rule?.maxAgeMs ?? view?.plan[source]?.freshMs ?? 0;
}

/** The slot of a node in the fleet as it was seen last; null: it is not there. */
export const slotOf = ({ view }: Ward, node: NodeId): number | null =>
  view === null ? null : (slotsOf(view.snapshot.fleet.ids).get(node) ?? null);
