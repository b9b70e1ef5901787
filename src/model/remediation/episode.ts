import type { DurationMs } from "../../base/duration.ts";
import type { NodeId, NodeStatus } from "../node.ts";
import type { Mode } from "../policy/policy.ts";
import type { EpochMs } from "../time.ts";

/** The timer of a policy for a node, as the journal stores it. Without a row the timer is inactive. */
export interface TimerRow {
  readonly policy: string;
  readonly node: NodeId;
  /** `lapsed`: it fired, but was then not observed for so long that `for` has to pass again. */
  readonly state: "pending" | "firing" | "lapsed";
  /** Time for which `when` was observed to be true; compared with `for`. */
  readonly trueMs: DurationMs;
  /** If firing or lapsed, the time for which `when` was observed to be false again; compared with `clear_for`. */
  readonly clearMs: DurationMs;
  /** When the timer last became pending, on the journal's clock. */
  readonly since: EpochMs;
  /**
   * The node's `created_at`, on the service's clock. Absent if unknown. If it changes, the id belongs to another node.
   */
  readonly nodeCreatedAt?: EpochMs;
}

/**
 * The states of an open episode:
 * - `firing`: the next step waits until nothing holds the node.
 * - `acting`: a step is in progress.
 * - `recovering`: a step healed the node, and `clear_for` runs.
 * - `quarantined`: our quarantine is in effect.
 * - `probation`: our quarantine has ended, and `clear_for` runs.
 * - `suspended`: the node left the list, is down after a step, or its verdict was unknown for too long. Other policies may
 *   act on the node.
 */
export const OPEN_STATES = ["firing", "acting", "recovering", "quarantined", "probation", "suspended"] as const;
/**
 * The states of a closed episode:
 * - `healed`: a step healed the node.
 * - `cleared`: the condition ended, but not because of a step.
 * - `given_up`: no step was left, the service refused an action or answered it with 429 too often, or the result of an
 *   action stayed unknown.
 * - `freed`: an operator lifted our quarantine.
 * - `withdrawn`: the episode was suspended for too long, the id belongs to another node, an operator accepted the loss of
 *   the node, or the policy or the service changed.
 */
export const CLOSED_STATES = ["healed", "cleared", "given_up", "freed", "withdrawn"] as const;
export type EpisodeState = (typeof OPEN_STATES)[number] | (typeof CLOSED_STATES)[number];

/** A problem of a node under a policy, from firing until it is closed. */
export interface Episode {
  readonly id: string;
  readonly policy: string;
  readonly node: NodeId;
  /** Whether the policy is in dry_run. Then nothing is sent, and its limits are counted separately. */
  readonly dryRun: boolean;
  /** Canonical text of the policy when the episode began. */
  readonly fingerprint: string;
  readonly country: string;
  readonly region: string;
  readonly state: EpisodeState;
  /** When the state was entered. */
  readonly stateAt: EpochMs;
  readonly openedAt: EpochMs;
  readonly closedAt: EpochMs | null;
  /** Index of the next step, or of the one in progress. */
  readonly step: number;
  /** Number of steps sent, or that would have been sent. */
  readonly acted: number;
  /**
   * Consecutive attempts at this step that were not executed, not counting 429s. The next one waits until `retryAt`.
   */
  readonly failures: number;
  readonly retryAt: EpochMs | null;
  /** Attempts at this step that the service answered with 429. Absent if there are none. */
  readonly limited?: number;
  /** Our quarantine, until it should have ended. */
  readonly quarantine: Quarantine | null;
  /**
   * Ids of the consecutive episodes before this one in which the policy did not heal the node, oldest first. Absent if
   * there are none.
   */
  readonly failedBefore?: readonly string[];
  /** Whether the steps so far healed the node, at least for a while. */
  readonly healed: boolean;
  /** If suspended, when the node left the list; null or absent if it is on the list. */
  readonly unlistedAt?: EpochMs | null;
  /**
   * Start of the time for which a node that was available before a step has been down after it: the end of the step, or
   * when the node was seen down while it recovered from a reboot. Null or absent if the node is not down after a step.
   */
  readonly downSince?: EpochMs | null;
  /** The node's `created_at`. Absent if unknown. If it changes, the id belongs to another node. */
  readonly nodeCreatedAt?: EpochMs;
  /** The node's name when the episode began. Null or absent if it is unknown whether the id still belongs to that node. */
  readonly nodeName?: string | null;
  /** Whether the id now belongs to another node, which the episode does not concern. Absent means false. */
  readonly replaced?: true;
  /**
   * Whether the node was in maintenance, or in a quarantine that is not ours, before the last step was verified. An
   * operator was working on it, so its recovery proves nothing about the policy. Absent means false.
   */
  readonly repaired?: boolean;
}

/** A quarantine that the daemon started. */
export interface Quarantine {
  readonly action: string;
  readonly endsAt: EpochMs;
  /** Whether the node was observed in quarantine. */
  readonly seen: boolean;
  /** Whether the first status that showed it was maintenance. Absent before that, and in older journals. */
  readonly asMaintenance?: boolean;
  /** Consecutive observations of the node as online before the end. */
  readonly seenOnline: number;
  /** Whether the operator was notified that the node is still in quarantine well after its end. */
  readonly overdue: boolean;
}

/** How an action ended. */
export const ACTION_OUTCOMES = ["verified", "ineffective", "refused", "failed", "in_doubt", "dry_run"] as const;
export type ActionOutcome = (typeof ACTION_OUTCOMES)[number];

/**
 * The states of an action that is not over:
 * - `awaiting`: an operator must approve it.
 * - `approved`: an operator approved it.
 * - `intended`: it is journaled, and the node is read again before the action is sent.
 * - `posting`: it is being sent, which was journaled first.
 * - `sent`: a response arrived, or the action is in doubt, and it is being verified.
 */
const UNFINISHED_STATES = ["awaiting", "approved", "intended", "posting", "sent"] as const;
/**
 * The states of an action that is over:
 * - `ended`: it has an outcome.
 * - `withdrawn`: it was never sent, because the decision changed.
 * - `rejected`: it was never sent, because an operator rejected it.
 * - `lapsed`: it was never sent, because its evidence no longer holds, the approval or the request for it expired, or
 *   an operator lifted its rejection.
 */
const FINISHED_STATES = ["ended", "withdrawn", "rejected", "lapsed"] as const;
export type ActionState = (typeof UNFINISHED_STATES)[number] | (typeof FINISHED_STATES)[number];

/** Returns whether there is something left to do or to observe for an action. */
export const isUnfinished = ({ state }: Action): boolean => UNFINISHED_STATES.some((each) => each === state);

/** What proves a reboot: uptime fell, the status `rebooting` was observed, or the boot time is after the POST. */
export type RebootProof = "uptime_fell" | "rebooting_seen" | "boot_after_post" | "none";

/** One step applied to one node. */
export interface Action {
  readonly id: string;
  readonly episode: string;
  readonly policy: string;
  readonly node: NodeId;
  readonly country: string;
  readonly region: string;
  readonly step: number;
  readonly dryRun: boolean;
  readonly fingerprint: string;
  readonly request: ActionRequest;
  readonly state: ActionState;
  readonly evidence: Evidence;
  /** When it was first journaled. */
  readonly createdAt: EpochMs;
  /** When an operator approved it. Absent if it was not approved. */
  readonly approvedAt?: EpochMs;
  /** When it was sent or would have been sent, or null if it has not been sent or did not reach the service. */
  readonly sentAt: EpochMs | null;
  readonly endedAt: EpochMs | null;
  readonly outcome: ActionOutcome | null;
  /** Whether there was no conclusive response, so that observation settles the outcome. */
  readonly inDoubt: boolean;
  /** The service's response, or the error. */
  readonly detail: string | null;
  /** Uptime before it was sent, or null if unknown. */
  readonly uptimeHoursBefore: number | null;
  /** Status before it was sent. Absent if not sent yet. */
  readonly statusBefore?: NodeStatus;
  /** Whether the step's `expect` held before it was sent, and has held ever since. Absent means false. */
  readonly expectedBefore?: boolean;
  /** Whether the node was observed rebooting after it was sent. */
  readonly rebootingSeen: boolean;
  readonly proof: RebootProof | null;
  /** The operator's answer. Absent if there is none yet, or if no operators were configured. */
  readonly answered?: OperatorAnswer;
}

/** The approval or rejection of an action by an operator. */
interface OperatorAnswer {
  readonly operator: string;
  readonly at: EpochMs;
}

/** The request of an action (spec, sections 4.3 to 4.5). */
export type ActionRequest =
  | { readonly kind: "disconnect" }
  | { readonly kind: "reboot"; readonly force: boolean }
  | { readonly kind: "quarantine"; readonly reason: string; readonly durationMinutes: number };

/** Returns the name of an action in messages: `disconnect`, `reboot`, `forced reboot` or `quarantine`. */
export const actionName = (request: ActionRequest): string =>
  request.kind === "reboot" && request.force ? "forced reboot" : request.kind;

/**
 * A node on which no action may be taken:
 * - `held`: an operator holds it until it is released or the hold expires.
 * - `vetoed`: an operator lifted our quarantine; the policy leaves the node alone until `until`.
 * - `given_up`: a policy did not heal it; this lasts until the node is healthy or is released. If `until` is set, the
 *   node was released then, and the row is kept because only later attempts count.
 * - `ownership`: another client or an operator acted on it recently, or it restarted, which looks the same.
 */
export interface NodeHold {
  readonly node: NodeId;
  /** Null means every policy. */
  readonly policy: string | null;
  readonly kind: "held" | "vetoed" | "given_up" | "ownership";
  readonly at: EpochMs;
  /** When the hold ends or was released; null if it lasts until the node is released or, for `given_up`, healthy. */
  readonly until: EpochMs | null;
  readonly reason: string;
  /** When an operator released the node from `given_up`, if this row replaced that one; 0 if never. */
  readonly releasedAt?: EpochMs;
  /** The operator who holds it. Absent if no operator does, or if none were configured. */
  readonly operator?: string;
  /**
   * A hold of kind `ownership` that applies in addition to an operator's and may end later. Absent if there is none.
   */
  readonly ownership?: OwnershipHold;
}

/** A hold of a node that another client or an operator acted on. */
type OwnershipHold = Pick<NodeHold, "at" | "reason"> & { readonly until: EpochMs };

/** One reason to hold a node, with a text that contains the numbers. `src/policy/guards` has a row for each reason. */
export interface Blocker<Reason extends string = string> {
  readonly reason: Reason;
  readonly detail: string;
}

/** The basis of a decision: the values of the node that the policy's expressions read. */
export interface Evidence {
  /** Values by field, such as `node.status`; timestamps in ISO 8601. */
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  /** When the oldest value was observed, on the journal's clock. */
  readonly observedAt: EpochMs;
}

/** Whether an action is taken on a node or the node is held, and why. */
export interface Decision<Reason extends string = string> {
  readonly at: EpochMs;
  readonly policy: string;
  readonly node: NodeId;
  /** Id of the episode, or null if none has begun because of a blocker. */
  readonly episode: string | null;
  /** Index of the policy's step. */
  readonly step: number;
  /** Effective mode: the lowest of the policy's mode, safety.mode and the mode allowed by its efficacy. */
  readonly mode: Mode;
  readonly verdict: "act" | "hold";
  /** Empty if the verdict is `act`. */
  readonly blockers: readonly Blocker<Reason>[];
  readonly evidence: Evidence;
}
