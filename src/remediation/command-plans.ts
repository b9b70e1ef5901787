import { fail, ok, type Result } from "../base/result.ts";
import { countNoun } from "../base/text.ts";
import type { NodeId } from "../model/node.ts";
import { type Action, type ActionState, actionName, type NodeHold } from "../model/remediation/episode.ts";
import type { JournalChange } from "../model/remediation/journal.ts";
import type { CommandRejection, OperatorCommand, Pause } from "../model/remediation/operator-command.ts";
import type { EpochMs } from "../model/time.ts";
import type { EpisodeContext, RemediationContext } from "./context.ts";
import { approvalExpiry } from "./evaluation/decision-input.ts";
import type { FleetHealth } from "./evaluation/fleet-health.ts";
import type { InventoryTrustTracker } from "./evaluation/inventory-trust.ts";
import { acceptableLosses, acceptLosses, actionChange } from "./execution/episode-transitions.ts";
import { formatEnd, holdsAt, ownershipOf, PAUSE_FACT, pauseAt } from "./operator-holds.ts";
import { efficacySinceFactKey, fallbackFactKey } from "./policy-set.ts";

/** What the plans of commands depend on. */
export interface PlanDeps extends EpisodeContext, Pick<RemediationContext, "sessionWalks"> {
  readonly fleetHealth: FleetHealth;
  readonly trustTracker: InventoryTrustTracker;
}

/** What a command changes, and its reply. */
interface CommandPlan {
  /** The rows to change, or null if there is nothing to change. Then the command is not journaled. */
  readonly changes: readonly JournalChange[] | null;
  readonly reply: string;
  /** The node and the action that the command is about. Absent if there is none. */
  readonly node?: NodeId;
  readonly action?: string;
  /** Updates what depends on the changes. Called once they are journaled. */
  apply?(): void;
}

/** The plan of a command, or why it is rejected. */
export type Planned = Result<CommandPlan, CommandRejection>;

/** A command, and what its plan depends on. */
interface PlanInput extends PlanDeps {
  readonly command: OperatorCommand;
  readonly now: EpochMs;
  /**
   * When the command was given, which is now unless a standby forwarded it. If that was before this term, it is the
   * beginning of the term. The command must not undo what was done since.
   */
  readonly givenAt: EpochMs;
}

/**
 * Maximum number of holds on nodes that are not listed. A hold may last until it is released, and a mistyped id is
 * never listed.
 */
export const UNLISTED_HOLDS_MAX = 100;

/** Returns what a command changes in the current state. */
export function planCommand(deps: PlanDeps, command: OperatorCommand): Planned {
  if (!Object.hasOwn(PLANNERS, command.command))
    // A standby of another version forwarded it.
    return reject("conflict", `this version does not have the command ${command.command}`);
  const { clock } = deps.remediationState;
  const now = clock.now();
  const givenAt = command.givenAt === undefined ? now : clock.epochSinceOpened(command.givenAt);
  return PLANNERS[command.command]({ ...deps, command, now, givenAt });
}

/** Returns the rejection of a command if the daemon was paused after the command was given, or null if it was not. */
function laterPause({ remediationState, command: { command }, now, givenAt }: PlanInput) {
  const pause = pauseAt(remediationState.records, now);
  if (pause === null || pause.at <= givenAt) return null;
  return reject("conflict", `the daemon was paused after this ${command} was given, and stays paused`);
}

function planPause(input: PlanInput): Planned {
  const later = laterPause(input);
  if (later !== null) return later;
  const { remediationState, command, now, givenAt: at } = input;
  const { reason, forMs = null } = command;
  const until = forMs === null ? null : now + forMs;
  const pause: Pause = { at, until, reason, ...operatorField(command) };
  const reply = `paused: ${reason}; no action is taken until ${formatEnd(pause, "resume", remediationState.clock)}`;
  return ok({ changes: [{ kind: "fact", key: PAUSE_FACT, value: JSON.stringify(pause) }], reply });
}

function planResume(input: PlanInput): Planned {
  const later = laterPause(input);
  if (later !== null) return later;
  if (input.remediationState.records.fact(PAUSE_FACT) === null)
    return ok({ changes: null, reply: "the daemon was not paused" });
  return ok({ changes: [{ kind: "fact", key: PAUSE_FACT, value: null }], reply: "resumed" });
}

function planApprove(input: PlanInput): Planned {
  const { observed, command, now } = input;
  const awaiting = findAction(input, ["awaiting"], "does not wait for approval");
  if (!awaiting.ok) return awaiting;
  const { id, request, node } = awaiting.value;
  const row: Action = { ...awaiting.value, ...answerOf(command, now), state: "approved", approvedAt: now };
  const reply = `${id} is approved: the ${actionName(request)} of ${observed.nameOf(node)} is sent as soon as nothing else holds the node`;
  return ok({ changes: [actionChange(row)], reply, node, action: id });
}

function planReject(input: PlanInput): Planned {
  const { observed, command, givenAt: at } = input;
  const unsent = findAction(input, ["awaiting", "approved"], "can't be rejected");
  if (!unsent.ok) return unsent;
  const { approvedAt: _, ...action } = unsent.value;
  const { id, request, node } = action;
  const reason = suffix(command.reason);
  const detail = `${nameOfOperator(command)} rejected ${id}${reason}`;
  const row: Action = { ...action, ...answerOf(command, at), state: "rejected", endedAt: at, detail };
  const reply = `${id}, ${actionName(request)} of ${observed.nameOf(node)}, is rejected${reason}; the step is not requested again in this episode, unless the node is released`;
  return ok({ changes: [actionChange(row)], reply, node, action: id });
}

function planHold(input: PlanInput): Planned {
  const { observed, remediationState, command, now, givenAt: at } = input;
  const { target: node, forMs = null } = command;
  const isUnlisted = (id: NodeId) => observed.slotOf(id) === null;
  const isOther = (hold: NodeHold) => hold.kind === "held" && hold.node !== node && isUnlisted(hold.node);
  if (isUnlisted(node) && remediationState.records.allHolds().filter(isOther).length >= UNLISTED_HOLDS_MAX) {
    const message = `${UNLISTED_HOLDS_MAX} nodes that are not listed are already held; release one of them first`;
    return reject("conflict", message);
  }
  const until = forMs === null ? null : now + forMs;
  const known = remediationState.records.hold(node, null);
  if (known?.kind === "held" && known.at > at) return laterHold(input);
  const ownership = ownershipOf(known);
  const reason = suffix(command.reason);
  const base = { node, policy: null, kind: "held", at, until, ...(ownership && { ownership }) } as const;
  const row = { ...base, reason: `${nameOfOperator(command)} holds it${reason}`, ...operatorField(command) };
  const note = isUnlisted(node) ? "; no node with that id is listed now, and the hold applies once one is" : "";
  const reply = `${observed.nameOf(node)} is held${reason}; no policy acts on it until ${formatEnd(row, "release", remediationState.clock)}${note}`;
  return ok({ changes: [{ kind: "hold", row }], reply, node });
}

const laterHold = ({ observed, command: { command, target } }: PlanInput) =>
  reject("conflict", `${observed.nameOf(target)} was held after this ${command} was given, and stays held`);

function planRelease(input: PlanInput): Planned {
  const { observed, command, now, givenAt } = input;
  const { records } = input.remediationState;
  const { target: node } = command;
  const name = observed.nameOf(node);
  const holds = holdsAt(records.holdsOn(node), now);
  const rejected = records
    .openEpisodesOf(node)
    .flatMap(({ id, step }) => records.actionsOf(id).filter((action) => action.step === step))
    .filter(({ state }) => state === "rejected");
  if (holds.length === 0 && rejected.length === 0) return reject("not_found", `${JSON.stringify(name)} is not held`);
  const times = [...holds.map(({ at }) => at), ...rejected.map(({ endedAt }) => endedAt ?? 0)];
  if (times.some((at) => at > givenAt)) return laterHold(input);
  // The row of a policy stays: attempts are counted from the release of a given-up node.
  const changes = holds.map(
    (hold): JournalChange =>
      hold.policy === null ? { kind: "hold_gone", node, policy: null } : { kind: "hold", row: { ...hold, until: now } },
  );
  const detail = `${nameOfOperator(command)} lifted the rejection`;
  for (const action of rejected) changes.push(actionChange({ ...action, state: "lapsed", detail }));
  const policies = holds.flatMap(({ kind, policy }) => (kind === "given_up" ? (policy ?? []) : []));
  const retries = policies.length === 0 ? "" : `; ${policies.join(" and ")} may try it again`;
  const ids = rejected.map(({ id }) => id).join(" and ");
  const lifted = ids === "" ? "" : `; the rejection of ${ids} is lifted, and its policy decides on the step again`;
  return ok({ changes, reply: `${name} is released${retries}${lifted}`, node });
}

function planResetBreaker({ policies, fleetHealth, now, givenAt }: PlanInput): Planned {
  const { open } = fleetHealth.state(false).breaker;
  const isOpen = open !== null;
  if (isOpen && open.openedAt > givenAt)
    return reject("conflict", "the breaker opened after this reset-breaker was given, and stays open");
  const fellBack = policies.active().flatMap(({ hasFallenBack, policy }) => (hasFallenBack ? [policy.spec.name] : []));
  if (!isOpen && fellBack.length === 0)
    return reject("conflict", "the breaker is not open, and no policy has fallen back to dry_run");
  const { changes, apply } = fleetHealth.resetBreaker(fellBack);
  const policyChanges = fellBack.flatMap((name): JournalChange[] => [
    { kind: "fact", key: fallbackFactKey(name), value: null },
    { kind: "fact", key: efficacySinceFactKey(name), value: String(now) },
  ]);
  const replies = isOpen ? ["the breaker is closed, and counts from zero"] : [];
  const modes = fellBack.length === 1 ? "has its configured mode" : "have their configured modes";
  // Its mode, or safety.mode, may be dry_run by now.
  if (fellBack.length > 0) replies.push(`${fellBack.join(" and ")} ${modes} again; efficacy is measured from now on`);
  return ok({ changes: [...changes, ...policyChanges], reply: replies.join("; "), apply });
}

function planAcceptInventory(input: PlanInput): Planned {
  const { observed, sessionWalks, trustTracker, command } = input;
  const walk = observed.latest?.snapshot.fleet.lastWalk ?? null;
  if (walk === null || (walk.isAborted && !walk.complete)) {
    const problem = "not every page of the node list could be read";
    const advice = "or raise safety.trust.max_missing if a page stays unreadable";
    return reject("conflict", `${problem}: send the command again after a walk that reads all of them, ${advice}`);
  }
  if (walk.at > (command.givenAt ?? walk.at)) {
    const problem = "the list was read again after this accept-inventory was given";
    return reject("conflict", `${problem}: check it, and send the command again`);
  }
  const { changes, apply } = trustTracker.acceptMissing(walk.seenNodes, walk.missing);
  const missing = walk.missing === 0 ? "" : `; ${countNoun(walk.missing, "missing node")} accepted`;
  const missingSessions = sessionWalks.acceptable()?.missing ?? 0;
  const sessions = missingSessions === 0 ? "" : `; ${countNoun(missingSessions, "missing session")} accepted`;
  const lost = new Set(acceptableLosses(input).map(({ node }) => node)).size;
  const losses = lost === 0 ? "" : `; the loss of ${countNoun(lost, "node")} after an action is accepted`;
  const reply = `the inventory baseline is now ${countNoun(walk.seenNodes, "node")}${missing}${sessions}${losses}`;
  const applyAll = () => {
    apply();
    acceptLosses(input);
  };
  return ok({ changes, reply, apply: applyAll });
}

/** What each command changes. */
const PLANNERS: Readonly<Record<OperatorCommand["command"], (input: PlanInput) => Planned>> = {
  pause: planPause,
  resume: planResume,
  approve: planApprove,
  reject: planReject,
  hold: planHold,
  release: planRelease,
  "reset-breaker": planResetBreaker,
  "accept-inventory": planAcceptInventory,
};

/**
 * Returns the action that a command is about if it is in one of `states` and its approval, or the request for one, has
 * not expired. Otherwise rejects the command. `problem` says what can't be done with an action in another state.
 */
function findAction(
  input: PlanInput,
  states: readonly ActionState[],
  problem: string,
): Result<Action, CommandRejection> {
  const { target: id } = input.command;
  const action = input.remediationState.records.action(id);
  if (action === null)
    return reject("not_found", `there is no action ${id}: "approvals" lists those that can be approved or rejected`);
  const { state, node } = action;
  if (state === "intended") {
    const message = `${id} ${problem}: it is about to be sent; "hold ${node}" may still prevent that`;
    return reject("conflict", message);
  }
  if (!states.includes(state)) return reject("conflict", `${id} ${problem}: its state is ${state}`);
  const expiry = approvalExpiry(input, action);
  return expiry === null ? ok(action) : reject("conflict", `${id} has expired: ${expiry}`);
}

/** Returns the operator's name for replies and reasons. */
const nameOfOperator = ({ operator }: OperatorCommand): string => operator ?? "an operator";

const operatorField = ({ operator }: OperatorCommand): { readonly operator?: string } =>
  operator === null ? {} : { operator };

const answerOf = ({ operator }: OperatorCommand, at: EpochMs): Pick<Action, "answered"> =>
  operator === null ? {} : { answered: { operator, at } };

const suffix = (reason: string): string => (reason === "" ? "" : `: ${reason}`);

/** Returns the rejection of a command. */
export const reject = (kind: CommandRejection["kind"], message: string): Result<never, CommandRejection> =>
  fail({ kind, message });
