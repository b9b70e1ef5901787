import { type DurationMs, formatDuration, formatSecondsLeft, SECOND_MS } from "../../base/duration.ts";
import type { NodeId } from "../../model/node.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import { planAction } from "../../policy/decision.ts";
import { givenUpHold } from "../../policy/episodes/attempts.ts";
import { evaluateExpression, type Verdict } from "../../policy/evaluation.ts";
import { type Candidate, nextStep } from "../../policy/guard-facts.ts";
import { isInFlight } from "../../policy/own-actions.ts";
import { type ActivePolicy, isDryRun, policySources } from "../../policy/policy.ts";
import type { DecisionContext } from "../context.ts";
import type { RemediationState } from "../state/journaled-state.ts";

/** A policy that reads sessions acts only within this time after a walk of the sessions. */
const SESSION_WALK_AGE_MS_MAX: DurationMs = 30 * SECOND_MS;

/** Returns the nodes whose timer fires under a policy. */
export const firingNodes = ({ records }: Pick<RemediationState, "records">, policy: string): NodeId[] =>
  [...records.timersOf(policy)].flatMap(([node, { state }]) => (state === "firing" ? [node] : []));

/** Returns the current state of a node under a policy, or null if the node is not listed. */
export function buildCandidate(context: DecisionContext, active: ActivePolicy, node: NodeId): Candidate | null {
  const { remediationState, observed, clock } = context;
  const slot = observed.slotOf(node);
  if (slot === null) return null;
  const { spec } = active.policy;
  const evaluation = observed.evaluate(active.policy, slot, clock.monotonic());
  const location = observed.locationOf(node);
  const open = remediationState.records.openEpisode(node, isDryRun(active));
  const episode = open?.policy === spec.name ? open : null;
  return {
    active,
    node: { id: node, status: observed.statusAt(slot), ...location, protected: isProtected(context, slot) },
    timer: remediationState.records.timer(spec.name, node),
    episode,
    evaluation,
    observedAt: remediationState.epochOf(evaluation.at),
    approved: episode !== null && findApprovedAction(context, episode.id, episode.step) !== null,
  };
}

/** Returns the candidate of an episode's next step, or null if the node is not listed, or no step is due. */
export function findCandidate(context: DecisionContext, policy: string, node: NodeId): Candidate | null {
  const active = context.policies.findActive(policy);
  const candidate = active === null ? null : buildCandidate(context, active, node);
  return candidate?.episode != null && awaitsNextStep(context, candidate.episode) ? candidate : null;
}

/**
 * Returns whether the next step of an episode may be decided on, which requires that none of its actions is in flight.
 */
export const awaitsNextStep = ({ remediationState }: DecisionContext, { id, state }: Episode): boolean =>
  state === "firing" && !remediationState.records.actionsOf(id).some(isInFlight);

/** Returns the action of a candidate's next step, which is either the one that an operator approved or a new one. */
export function nextAction(context: DecisionContext, candidate: Candidate): Action {
  const { id, step } = candidate.episode!;
  const approved = findApprovedAction(context, id, step);
  if (approved !== null) return { ...approved, state: "intended" };
  const { remediationState } = context;
  return planAction(candidate, remediationState.records.nextId("act"), remediationState.now());
}

/**
 * Returns the approved action of a step if it was not sent yet, or null if there is none or its approval has expired.
 */
const findApprovedAction = (
  context: Pick<DecisionContext, "remediationState" | "config">,
  episode: string,
  step: number,
): Action | null =>
  context.remediationState.records
    .actionsOf(episode)
    .find(
      (action) => action.step === step && action.state === "approved" && approvalExpiry(context, action) === null,
    ) ?? null;

/**
 * Returns why an approval, or a request for one, has expired, or null if it has not. `safety.approval_ttl` is measured
 * on the journal's clock, so downtime counts. A downtime or suspension of unknown length may be longer than it.
 */
export function approvalExpiry(
  { remediationState, config }: Pick<DecisionContext, "remediationState" | "config">,
  { createdAt, approvedAt }: Action,
): string | null {
  const { approvalTtlMs } = config.safety;
  const since = approvedAt ?? createdAt;
  if (remediationState.clock.isAgeUnknown(since))
    return `it is unknown how long ago it was ${approvedAt === undefined ? "requested" : "approved"}, because the daemon was down, the machine was suspended, or the wall clock was changed`;
  if (remediationState.now() - since < approvalTtlMs) return null;
  const ttl = formatDuration(approvalTtlMs);
  return approvedAt === undefined ? `it was not approved within ${ttl}` : `the approval expired after ${ttl}`;
}

/**
 * Returns the blocker of an action whose policy reads sessions that were not walked recently, or null if there is none.
 * The read of a node before an action does not include its sessions.
 */
export function oldSessionsBlocker(
  { observed, clock }: Pick<DecisionContext, "observed" | "clock">,
  candidate: Candidate,
): Blocker<"verdict_unknown"> | null {
  const { policy } = candidate.active;
  if (nextStep(candidate)?.action === "notify" || !policySources(policy).includes("sessions")) return null;
  const walkedAt = observed.latest?.snapshot.sessions?.settledAt ?? null;
  const ageMs = walkedAt === null ? Number.POSITIVE_INFINITY : clock.monotonic() - walkedAt;
  if (ageMs <= SESSION_WALK_AGE_MS_MAX) return null;
  const read =
    walkedAt === null ? "the sessions were not read" : `the sessions were read ${formatSecondsLeft(ageMs)} ago`;
  const limit = formatDuration(SESSION_WALK_AGE_MS_MAX);
  const detail = `${read}; a policy that reads them acts only within ${limit} after their walk`;
  return { reason: "verdict_unknown", detail };
}

function isProtected(context: DecisionContext, slot: number): Verdict {
  const { observed, policies, clock } = context;
  if (policies.protectedNodes === null) return "false";
  return evaluateExpression(policies.protectedNodes, slot, observed.input(null, clock.monotonic())).verdict;
}

/**
 * Returns whether a policy has given up on a node, or gave up its last episode on the node since the timer began. False
 * while an episode on the node is open and not suspended.
 */
export function isGivenUp(
  { records }: Pick<RemediationState, "records">,
  policy: string,
  node: NodeId,
  dryRun: boolean,
): boolean {
  if (records.openEpisode(node, dryRun) !== null) return false;
  const last = records.closedEpisodesOf(node, dryRun).findLast((episode) => episode.policy === policy);
  const since = records.timer(policy, node).since ?? Number.POSITIVE_INFINITY;
  const isLastGivenUp = last?.state === "given_up" && (last.closedAt ?? 0) >= since;
  // The hold outlasts the episodes in memory.
  return isLastGivenUp || (!dryRun && givenUpHold(records, node, policy) !== null);
}
