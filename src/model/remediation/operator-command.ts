import type { DurationMs } from "../../base/duration.ts";
import type { Result } from "../../base/result.ts";
import type { NodeId } from "../node.ts";
import type { Secret } from "../ports.ts";
import type { EpochMs, MonotonicMs } from "../time.ts";

/** The operator commands. */
export const OPERATOR_COMMANDS = [
  "pause",
  "resume",
  "approve",
  "reject",
  "hold",
  "release",
  "reset-breaker",
  "accept-inventory",
  "reload",
] as const;
export type OperatorCommandName = (typeof OPERATOR_COMMANDS)[number];

/** A command that an operator gives. */
export interface OperatorCommand {
  readonly command: Exclude<OperatorCommandName, "reload">;
  /** The node or action that it is about, or empty if neither. */
  readonly target: string;
  readonly reason: string;
  /** Duration of its effect; null or absent if it lasts until a command ends it. */
  readonly forMs?: DurationMs | null;
  /** Name of the operator, or null if no operators are configured. */
  readonly operator: string | null;
  /** The latest time at which it may have been given, if a standby forwarded it. Absent if it was given now. */
  readonly givenAt?: MonotonicMs;
}

/**
 * The journal's row of a command that succeeded, of an attempted reload, or of a pause or hold that expired, which is
 * recorded as `resume` or `release`.
 */
export interface OperatorCommandRow {
  readonly at: EpochMs;
  readonly command: OperatorCommandName;
  /**
   * Name of the operator whose token was used. Null if no operators are configured, SIGHUP requested the reload, or the
   * pause or hold expired.
   */
  readonly operator: string | null;
  /** The node concerned, directly or through its action, or null if there is none. */
  readonly node: NodeId | null;
  /** The action concerned, or null if there is none. */
  readonly action: string | null;
  /** What changed, and the reason given. */
  readonly detail: string;
}

/** An operator who may give commands, with a bearer token of their own. */
export interface Operator {
  readonly name: string;
  readonly token: Secret;
}

/**
 * Why an operator command was not executed. `not_found`: there is no such node or action; `conflict`: the state does
 * not allow it, for example because the action was already sent; `journal`: it could not be journaled;
 * `stopping`: remediation is being stopped, for example by a reload; `unanswered`: it was forwarded to the leader, which
 * has not replied yet and may still execute it.
 */
export interface CommandRejection {
  readonly kind: "not_found" | "conflict" | "journal" | "stopping" | "unanswered";
  readonly message: string;
}

/** The result of a command as a sentence. */
export type CommandReply = Result<string, CommandRejection>;

/** A pause of all actions by an operator. */
export interface Pause {
  readonly at: EpochMs;
  /** When it ends by itself; absent or null if only `resume` ends it. */
  readonly until?: EpochMs | null;
  readonly reason: string;
  /** Absent if no operators were configured. */
  readonly operator?: string;
}
