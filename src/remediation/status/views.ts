import type { DurationMs } from "../../base/duration.ts";
import type { Steps } from "../../base/steps.ts";
import type { PolicySpec } from "../../config/schema/policy.ts";
import type { NodeId } from "../../model/node.ts";
import type { Mode } from "../../model/policy/policy.ts";
import type { Action, Blocker, Decision, Episode, NodeHold } from "../../model/remediation/episode.ts";
import type { JournalQueries, JournalQuery } from "../../model/remediation/journal.ts";
import type { OperatorCommandRow, Pause } from "../../model/remediation/operator-command.ts";
import type { Location } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import type { HoldReason } from "../../policy/decision.ts";
import type { PolicyEvaluation } from "../../policy/evaluation.ts";
import type { OpenBreaker } from "../../policy/guards/storm-and-breaker.ts";
import type { ActivePolicy } from "../../policy/policy.ts";
import type { PresentedTimer } from "../../policy/timer.ts";

/** Status of remediation: what holds all actions, and the effective limits. */
export interface RemediationStatus {
  /** `safety.mode`, which is the highest mode that any policy may have. */
  readonly mode: Mode;
  readonly paused: Pause | null;
  readonly breaker: OpenBreaker | null;
  /** Why fleet data is not trusted, or empty if it is. */
  readonly trust: readonly Blocker[];
  /** When the storm's cooldown ends, or null if there is no storm. It moves while too many nodes are unhealthy. */
  readonly stormUntil: EpochMs | null;
  /** Why the storm began, or null if there is none. */
  readonly stormCause: string | null;
  /** Why actions can't be recorded, or why a standby can't read the journal, or null if nothing is wrong. */
  readonly journal: string | null;
  /** How the service rejected the API key for the last action, or null if that does not hold actions. */
  readonly credentials: string | null;
  /** Why no node is healed although nothing else holds actions: rounds fail, or one does not end. Null if they succeed. */
  readonly roundFailure: string | null;
  /** Nodes of the largest complete walk, with which the inventory is compared, or 0 if there was none yet. */
  readonly largestWalkNodes: number;
  /**
   * The effective limits for the current fleet, in nodes or actions, by name. Null before the first walk of the nodes
   * has ended and on a standby.
   */
  readonly limits: Readonly<Record<string, number>> | null;
  /** Time after which an approval or a request for one expires. */
  readonly approvalTtlMs: DurationMs;
  /** Number of actions that are sent and not yet verified, without those of dry runs. */
  readonly inFlight: number;
}

/** Status of one policy. */
export interface PolicyStatus extends ActivePolicy {
  /**
   * Number of nodes that `match` selects, out of all nodes, as of the last complete walk. Null before the first and on a
   * standby.
   */
  readonly matched: { readonly nodes: number; readonly of: number } | null;
  readonly pending: number;
  readonly firing: number;
  /** Number of nodes whose condition was unknown when it was last evaluated, or null on a standby. */
  readonly unknown: number | null;
  /** Number of episodes by state: of open ones, and of given-up ones whose node still fires. */
  readonly episodes: Readonly<Record<string, number>>;
}

/** The state of one policy on one node. */
export interface PolicyExplanation
  extends Pick<PolicyEvaluation, "verdict" | "matched">,
    Pick<PolicySpec, "forMs" | "steps"> {
  readonly policy: string;
  readonly mode: Mode;
  /** Why the verdict is unknown, with each field and its problem. */
  readonly unknowns: readonly { readonly field: string; readonly why: string }[];
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  readonly timer: PresentedTimer | null;
  /**
   * When a record last stated a status other than the current one, on the journal's clock. The timer starts no earlier.
   * Null if the policy does not read the status, or if this process has seen no other status.
   */
  readonly otherStatusAt: EpochMs | null;
  readonly episode: Episode | null;
  /** Everything that would hold an action now, even if the policy does not fire. Empty if it does not match the node. */
  readonly blockers: readonly Blocker<HoldReason>[];
}

/** Explains why a node was or was not acted on. */
export interface NodeExplanation {
  readonly node: NodeId;
  /** Whether the node is listed now. */
  readonly known: boolean;
  readonly at: EpochMs;
  readonly policies: readonly PolicyExplanation[];
  readonly holds: readonly NodeHold[];
}

/** The latest rows of the journal about a node. */
export interface NodeHistory {
  readonly episodes: readonly Episode[];
  readonly actions: readonly Action[];
  readonly decisions: readonly Decision[];
  readonly operatorCommands: readonly OperatorCommandRow[];
}

/**
 * The remediation state of a node, from the least to the most important:
 * - `pending`: a policy's `for` or `clear_for` runs, or an episode is suspended.
 * - `dry_run`: a policy in dry run fires.
 * - `firing`: a policy fires, and its guards hold the node.
 * - `episode`: a step was taken, and its effect is observed or our quarantine lasts.
 * - `acting`: a step is under way.
 * - `in_flight`, `canary`: the next step waits only until other actions are verified.
 * - `given_up`: no step healed the node.
 * - `held`: a hold of the node is in force: by an operator, after a lifted quarantine, or because others acted on it.
 * - `awaiting`: an action waits for approval.
 */
export const NODE_MARKS = [
  "none",
  "pending",
  "dry_run",
  "firing",
  "episode",
  "acting",
  "in_flight",
  "canary",
  "given_up",
  "held",
  "awaiting",
] as const;
export type NodeMark = (typeof NODE_MARKS)[number];

/** A node that is held. If several policies hold it, these are the reasons of the one that has held it longest. */
export interface HeldNode extends Location {
  readonly node: NodeId;
  /** Its id if it has none or is not listed. */
  readonly name: string;
  /** Empty if it has none or is not listed. */
  readonly ipAddress: string;
  /** The policy that would act, or null if no policy fires. */
  readonly policy: string | null;
  readonly heldMs: DurationMs;
  /** Every reason. */
  readonly reasons: readonly HoldReason[];
  /** When the last hold of the node that applies to the policy ends automatically, or null if it does not or none applies. */
  readonly until: EpochMs | null;
}

/** Selects held nodes. An absent limit means all of them. */
export type HeldNodesQuery = Pick<JournalQuery, "node" | "policy"> & Partial<Pick<JournalQuery, "limit">>;

/**
 * An action that waits for approval, or was approved and is not being sent yet, and when the approval, or the request
 * for it, expires unless the daemon goes down before that.
 */
export type Approval = Action & { readonly expiresAt: EpochMs };

/**
 * Read access to remediation. Methods that return promises read rows of the journal, and reject if it can't be read.
 * Everything else is in memory. What takes long in a mass event is done in steps of less than a millisecond.
 */
export interface RemediationView extends Pick<JournalQueries, "decisions" | "actions" | "operatorCommands"> {
  status(): RemediationStatus;
  /** The names of the policies, in order of evaluation. */
  policyNames(): readonly string[];
  policies(): Steps<readonly PolicyStatus[]>;
  explain(node: NodeId): Steps<NodeExplanation>;
  /** Returns the latest rows about a node, up to the time `until` if it is given. */
  historyOf(node: NodeId, until?: EpochMs): Promise<NodeHistory>;
  /** Returns the actions that wait for approval, or those that were approved and are not being sent yet. */
  approvals(state?: "awaiting" | "approved"): readonly Approval[];
  /**
   * Nodes that are held and match the query. Those that an acting policy would treat come before the others, and in
   * each group the longest hold comes first.
   */
  heldNodes(query: HeldNodesQuery): Steps<readonly HeldNode[]>;
  /** Returns the number of nodes in {@link heldNodes} without a query, in less time. */
  heldNodeCount(): Steps<number>;
  /** Calls `mark` with every mark of every node that has one. Only the most important one of a node counts. */
  nodeMarks(mark: (node: NodeId, mark: NodeMark) => void): Steps<void>;
}
