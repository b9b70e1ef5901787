import type { Steps } from "../../base/steps.ts";
import type { JournalQuery } from "../../model/remediation/journal.ts";
import type { createStatusView } from "./status-view.ts";

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

/** Selects held nodes. An absent limit means all of them. */
export type HeldNodesQuery = Pick<JournalQuery, "node" | "policy"> & Partial<Pick<JournalQuery, "limit">>;

/** A node that is held. If several policies hold it, this is the longest hold. */
export type HeldNode = ResultOf<ReturnType<RemediationView["heldNodes"]>>[number];
/** Read access to remediation. */
export type RemediationView = ReturnType<typeof createStatusView>;
/** Status of remediation: what holds all actions, and the effective limits. */
export type RemediationStatus = ReturnType<RemediationView["status"]>;
/** Status of one policy. */
export type PolicyStatus = ResultOf<ReturnType<RemediationView["policies"]>>[number];
/** Explains why a node was or was not acted on. */
export type NodeExplanation = ResultOf<ReturnType<RemediationView["explain"]>>;
/** The state of one policy on one node. */
export type PolicyExplanation = NodeExplanation["policies"][number];
/** The latest rows of the journal about a node. */
export type NodeHistory = Awaited<ReturnType<RemediationView["historyOf"]>>;
/** An action that waits for approval, or was approved and is not being sent yet. */
export type Approval = ReturnType<RemediationView["approvals"]>[number];

type ResultOf<View> = View extends Steps<infer Result> ? Result : never;
