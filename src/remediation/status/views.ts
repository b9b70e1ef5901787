import type { Result } from "../../base/result.ts";
import type { NodeId } from "../../model/node.ts";
import type { Mode, PolicyRule } from "../../model/policy/policy.ts";
import type { Blocker, Decision } from "../../model/remediation/decision.ts";
import type { Action, Episode, NodeHold } from "../../model/remediation/episode.ts";
import type { JournalQuery } from "../../model/remediation/journal.ts";
import type { OperatorCommandRow } from "../../model/remediation/operator-command.ts";
import type { EpochMs } from "../../model/time.ts";
import type { PresentedTimer } from "../../policy/timers/timer.ts";

/** How the warden stands: what holds everything, and what each limit comes to. */
export interface RemediationStatus {
  /** The ceiling over every policy's mode. */
  readonly mode: Mode;
  readonly paused: { readonly at: EpochMs; readonly reason: string; readonly operator?: string } | null;
  readonly breaker: { readonly openedAt: EpochMs; readonly nodes: number } | null;
  /** Why our sight is not trusted; none: it is. */
  readonly trust: readonly Blocker[];
  readonly stormUntil: EpochMs | null;
  /** Why nothing can be written down; null: it can. */
  readonly journal: string | null;
  /** The largest complete walk that the inventory is measured by; 0: none yet. */
  readonly largestWalkNodes: number;
  /** Nodes, by name of the limit: what each comes to for the fleet as it is. */
  readonly limits: Readonly<Record<string, number>>;
  readonly inFlight: number;
}

/** One policy, as it runs. */
export interface PolicyStatus {
  readonly rule: PolicyRule;
  /** In force: the least of its own, the ceiling, and what its efficacy leaves it. */
  readonly mode: Mode;
  /** Fallen back to dry_run for healing too little, until its text changes. */
  readonly hasFallenBack: boolean;
  /** Whether an action under this text was verified. */
  readonly isProven: boolean;
  readonly pending: number;
  readonly firing: number;
  /** Open episodes by state, and those given up whose node still fires. */
  readonly episodes: Readonly<Record<string, number>>;
}

/** What one policy makes of one node at this moment. */
export interface PolicyExplanation {
  readonly policy: string;
  readonly mode: Mode;
  readonly verdict: "true" | "false" | "unknown";
  /** Whether the policy is about the node; null: unknown. */
  readonly matched: boolean | null;
  /** Why the verdict is unknown: field, and what is the matter with it. */
  readonly unknowns: readonly { readonly field: string; readonly why: string }[];
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  readonly timer: PresentedTimer | null;
  readonly forMs: number;
  readonly episode: Episode | null;
  /** Everything that would hold an action on the node now, whether or not the policy fires. */
  readonly blockers: readonly Blocker[];
}

/** Why a node was, or was not, acted on. */
export interface NodeExplanation {
  readonly node: NodeId;
  /** Whether the node is in the fleet now. */
  readonly known: boolean;
  readonly at: EpochMs;
  readonly policies: readonly PolicyExplanation[];
  readonly holds: readonly NodeHold[];
  readonly episodes: readonly Episode[];
  readonly actions: readonly Action[];
  readonly decisions: readonly Decision[];
  readonly operatorCommands: readonly OperatorCommandRow[];
}

/**
 * Why an order of a person was not carried out. `not_found`: there is nothing of that name; `conflict`: it stands
 * otherwise, such as an action that is not waiting; `journal`: it could not be written down.
 */
export interface CommandRejection {
  readonly kind: "not_found" | "conflict" | "journal";
  readonly message: string;
}

/**
 * What an operator may order. The text says what is so now. Every order that is carried out is journalled, with the name
 * of the operator where `of` has said it.
 */
export interface OperatorCommands {
  /** The same orders, given by the operator of that name. */
  as(operator: string): OperatorCommands;
  pause(reason: string): Result<string, CommandRejection>;
  resume(): Result<string, CommandRejection>;
  approve(action: string): Result<string, CommandRejection>;
  reject(action: string, reason: string): Result<string, CommandRejection>;
  hold(node: NodeId, reason: string): Result<string, CommandRejection>;
  release(node: NodeId): Result<string, CommandRejection>;
  resetBreaker(): Result<string, CommandRejection>;
  acceptInventory(): Result<string, CommandRejection>;
  /** Journals a reload that was tried, with its problems; none: it is in force. `origin`: what precedes that in the row. */
  noteReload(problems: readonly string[], origin?: string): void;
}

/**
 * What the warden has to do with a node, from the least to the weightiest. `pending`: a policy's `for` runs; `firing`: a
 * policy fires, and nothing is under way: it is held, or was given up; `shadow`: an episode of a dry run; `episode`: a real
 * one; `acting`: a step of it is under way; `held`: a person holds the node, or a veto does; `awaiting`: an action waits for
 * a person.
 */
export const NODE_MARKS = ["none", "pending", "firing", "shadow", "episode", "acting", "held", "awaiting"] as const;
export type NodeMark = (typeof NODE_MARKS)[number];

/** What the warden shows. All of it from memory, but for the rows, which the journal has. */
export interface RemediationView {
  status(): RemediationStatus;
  policies(): readonly PolicyStatus[];
  explain(node: NodeId): NodeExplanation;
  decisions(query: JournalQuery): readonly Decision[];
  actions(query: JournalQuery): readonly Action[];
  operatorCommands(query: JournalQuery): readonly OperatorCommandRow[];
  /** Actions that wait for a person. */
  approvals(): readonly Action[];
  /** The nodes that it has anything to do with: of each, what weighs most. */
  nodeMarks(): ReadonlyMap<NodeId, NodeMark>;
}
