import type { DurationMs } from "../../base/duration.ts";
import type { Steps } from "../../base/steps.ts";
import type { NodeId } from "../../model/node.ts";
import type { Mode, PolicySpec } from "../../model/policy/policy.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import type { JournalQuery } from "../../model/remediation/journal.ts";
import type { CommandReply, OperatorCommand } from "../../model/remediation/operator-command.ts";
import type { Location } from "../../model/snapshot.ts";
import type { EpochMs } from "../../model/time.ts";
import type { HoldReason } from "../../policy/decision.ts";
import type { PolicyEvaluation } from "../../policy/evaluation.ts";
import type { PresentedTimer } from "../../policy/timer.ts";
import type { createStatusView } from "./status-view.ts";

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

/** Operator commands. */
export interface OperatorCommands {
  /** Executes a command. If it succeeds, it is journaled with the operator's name. */
  execute(command: OperatorCommand): Promise<CommandReply>;
  /**
   * Journals the result of a reload by an operator, or null if none is known. Without problems the new configuration is
   * active. `origin` is a prefix of the row's text.
   */
  noteReload(problems: readonly string[], operator: string | null, origin: string): void;
}

/**
 * The remediation state of a node, from the least to the most important:
 * - `pending`: a policy's `for` or `clear_for` runs.
 * - `dry_run`: a policy in dry run fires.
 * - `firing`: a policy fires, and its guards hold the node.
 * - `episode`: a step was taken, and its effect is observed or our quarantine lasts.
 * - `acting`: a step is under way.
 * - `in_flight`, `canary`: the next step waits only until other actions are verified.
 * - `given_up`: no step healed the node.
 * - `held`: an operator or a veto holds the node.
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

/** A node that is held. If several policies hold it, this is the longest hold. */
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
  /** When the hold of the node itself ends automatically, or null if it does not or there is none. */
  readonly until: EpochMs | null;
}

/** Selects held nodes. An absent limit means all of them. */
export type HeldNodesQuery = Pick<JournalQuery, "node" | "policy"> & Partial<Pick<JournalQuery, "limit">>;

/** Read access to remediation. */
export type RemediationView = ReturnType<typeof createStatusView>;
/** Status of remediation: what holds all actions, and the effective limits. */
export type RemediationStatus = ReturnType<RemediationView["status"]>;
/** Status of one policy. */
export type PolicyStatus = ResultOf<ReturnType<RemediationView["policies"]>>[number];
/** Explains why a node was or was not acted on. */
export type NodeExplanation = ResultOf<ReturnType<RemediationView["explain"]>>;
/** The latest rows of the journal about a node. */
export type NodeHistory = Awaited<ReturnType<RemediationView["historyOf"]>>;
/** An action that waits for approval, or was approved and is not being sent yet. */
export type Approval = ReturnType<RemediationView["approvals"]>[number];

type ResultOf<View> = View extends Steps<infer Result> ? Result : never;
