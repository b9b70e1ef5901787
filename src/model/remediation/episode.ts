import type { DurationMs } from "../../base/duration.ts";
import type { NodeId, NodeStatus } from "../node.ts";
import type { EpochMs } from "../time.ts";
import type { Evidence } from "./decision.ts";

/** A timer of one policy over one node, as the journal keeps it. A pair without one is inactive. */
export interface TimerRow {
  readonly policy: string;
  readonly node: NodeId;
  /** `lapsed`: it fired, and was unseen for so long that `for` has to be proven again. */
  readonly state: "pending" | "firing" | "lapsed";
  /** Time for which `when` was observed to be true: drives `for`. */
  readonly trueMs: DurationMs;
  /** Of a firing or lapsed one: time for which it was observed to be false again: drives `clear_for`. */
  readonly clearMs: DurationMs;
  /** When this run of it began, on the journal's clock. */
  readonly since: EpochMs;
  /** The node's `created_at`, on the service's clock; absent: not known. Another one is another node under the same id. */
  readonly nodeCreatedAt?: EpochMs;
}

/**
 * The state of an episode. Open ones: `firing`: its next step waits until nothing holds it; `acting`: a step is under way;
 * `recovering`: a step has healed it, and `clear_for` runs; `quarantined`: our quarantine lasts; `probation`: it ended, and
 * `clear_for` runs; `suspended`: the node left the list, or its verdict was unknown for too long: it has the node no more.
 * Closed ones: `healed`; `cleared`: it passed without a step of ours that healed it; `given_up`: refused, or no step was
 * left; `freed`: an operator lifted our quarantine; `withdrawn`: it was suspended for too long, another node has the id, or
 * its policy is gone or is about something else.
 */
export const OPEN_STATES = ["firing", "acting", "recovering", "quarantined", "probation", "suspended"] as const;
export const CLOSED_STATES = ["healed", "cleared", "given_up", "freed", "withdrawn"] as const;
export type EpisodeState = (typeof OPEN_STATES)[number] | (typeof CLOSED_STATES)[number];

/** One failure of one node under one policy, from firing until it is over. */
export interface Episode {
  readonly id: string;
  readonly policy: string;
  readonly node: NodeId;
  /** Of a policy in dry_run: nothing is sent, and its limits are its own. */
  readonly shadow: boolean;
  /** The policy as it was when it began: its canonical text. */
  readonly fingerprint: string;
  readonly country: string;
  readonly region: string;
  readonly state: EpisodeState;
  /** When the state was entered. */
  readonly stateAt: EpochMs;
  readonly openedAt: EpochMs;
  readonly closedAt: EpochMs | null;
  /** Index of the step that is next, or under way. */
  readonly step: number;
  /** Steps that were sent, or would have been. */
  readonly acted: number;
  /** Sends of this step in a row that never left; the next one waits until `retryAt`. */
  readonly failures: number;
  readonly retryAt: EpochMs | null;
  /** Sends of this step that the service answered with 429; absent: none. */
  readonly limited?: number;
  /** Our quarantine, while it should last. */
  readonly quarantine: Quarantine | null;
  /** Steps taken so far healed it, at least for a while. */
  readonly healed: boolean;
  /** When the node left the list, of a suspended one; null or absent: it is on the list. */
  readonly unlistedAt?: EpochMs | null;
  /** The node's `created_at`; absent: not known yet. Another one is another node under the same id. */
  readonly nodeCreatedAt?: EpochMs;
  /** True where another node has the id by now: the episode says nothing of that one. */
  readonly replaced?: true;
  /**
   * Whether the node was seen in maintenance, or in a quarantine that is not ours, before the last step was verified: an
   * operator works on it, and its recovery proves nothing about the policy. Absent: no.
   */
  readonly repaired?: boolean;
}

/** A quarantine that we made. */
export interface Quarantine {
  readonly action: string;
  readonly endsAt: EpochMs;
  /** Whether the node was seen in it. */
  readonly seen: boolean;
  /** Observations in a row that showed the node online before the end. */
  readonly seenOnline: number;
  /** It was still on well after its end: said once. */
  readonly overdue: boolean;
}

/** How an action ended. */
export const ACTION_OUTCOMES = ["verified", "ineffective", "refused", "failed", "in_doubt", "dry_run"] as const;
export type ActionOutcome = (typeof ACTION_OUTCOMES)[number];

/**
 * The state of an action. `awaiting`: an operator must approve it; `approved`; `intended`: journaled, nothing sent;
 * `posting`: journaled that it is being sent; `sent`: an answer came, or is in doubt; it is being verified; `ended`:
 * with an outcome. Never sent: `withdrawn`: decided otherwise before it was sent; `rejected`: by an operator; `lapsed`:
 * its evidence is gone, or the approval or the request for it expired.
 */
export type ActionState =
  | "awaiting"
  | "approved"
  | "intended"
  | "posting"
  | "sent"
  | "ended"
  | "withdrawn"
  | "rejected"
  | "lapsed";

/** What shows that a reboot took place: uptime fell; `rebooting` was seen; or the boot lies after the POST. */
export type RebootProof = "uptime_fell" | "rebooting_seen" | "boot_after_post" | "none";

/** One step done to one node. */
export interface Action {
  readonly id: string;
  readonly episode: string;
  readonly policy: string;
  readonly node: NodeId;
  readonly country: string;
  readonly region: string;
  readonly step: number;
  readonly shadow: boolean;
  readonly fingerprint: string;
  readonly request: ActionRequest;
  readonly state: ActionState;
  readonly evidence: Evidence;
  /** When it was first written down. */
  readonly createdAt: EpochMs;
  /** When an operator approved it; absent: it was not approved. */
  readonly approvedAt?: EpochMs;
  /** When it was sent, or would have been; null: not yet, or nothing of it reached the service. */
  readonly sentAt: EpochMs | null;
  readonly endedAt: EpochMs | null;
  readonly outcome: ActionOutcome | null;
  /** Whether no clear answer came: observation settles it. */
  readonly inDoubt: boolean;
  /** What the service said, or why it failed. */
  readonly detail: string | null;
  /** Uptime before it was sent. */
  readonly uptimeHoursBefore: number | null;
  /** Status before it was sent; absent: not sent yet. */
  readonly statusBefore?: NodeStatus;
  /** Whether the node was seen rebooting after it was sent. */
  readonly rebootingSeen: boolean;
  readonly proof: RebootProof | null;
  /** The operator who approved or rejected it, and when; absent: it has no answer yet, or no operators were configured. */
  readonly answered?: OperatorAnswer;
}

/** The answer of an operator to an action that waits for one. */
export interface OperatorAnswer {
  readonly operator: string;
  readonly at: EpochMs;
}

/** What is posted (spec, sections 4.3 to 4.5). */
export type ActionRequest =
  | { readonly kind: "disconnect" }
  | { readonly kind: "reboot"; readonly force: boolean }
  | { readonly kind: "quarantine"; readonly reason: string; readonly durationMinutes: number };

/**
 * A node that must not be acted on. `held`: by an operator until it is released; `vetoed`: for a time, after an operator
 * lifted our quarantine; `given_up`: by a policy that did not heal it, until the node is seen healthy or is released; a
 * `given_up` with an `until` was released then: the policy's tries count from there. `ownership`: others acted on it a
 * moment ago.
 */
export interface NodeHold {
  readonly node: NodeId;
  /** Null: every policy. */
  readonly policy: string | null;
  readonly kind: "held" | "vetoed" | "given_up" | "ownership";
  readonly at: EpochMs;
  /** Null: until it is released. */
  readonly until: EpochMs | null;
  readonly reason: string;
  /** The operator who holds it; absent: no operator does, or none were configured. */
  readonly operator?: string;
}
