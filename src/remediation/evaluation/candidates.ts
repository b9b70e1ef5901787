import { type DurationMs, formatDuration, SECOND_MS } from "../../base/duration.ts";
import { NODE_STATUSES, type NodeId } from "../../model/node.ts";
import type { Action } from "../../model/remediation/episode.ts";
import { type ActivePolicy, isDryRun, type NodeObservation } from "../../policy/facts.ts";
import type { Candidate } from "../../policy/guards/guard.ts";
import { policySources } from "../../policy/policy.ts";
import { evaluateExpression, evaluatePolicy } from "../../policy/timers/verdict.ts";
import type { RemediationContext } from "../context.ts";

/** What the functions of this file read. */
export type CandidateDeps = Pick<RemediationContext, "clock" | "observed" | "policies" | "remediationState" | "rules">;

/** Maximum age of a walk of the sessions when a node is acted on by what it showed. */
const WALK_AGE_MS_MAX: DurationMs = 30 * SECOND_MS;

/** Returns the last observation of a node, as guards read it; null: it is not listed. */
export function observeNode(context: CandidateDeps, node: NodeId): NodeObservation | null {
  const slot = context.observed.slotOf(node);
  if (slot === null) return null;
  const { fleet } = context.observed;
  const location = fleet.locations[fleet.locationIndex[slot]!]!;
  return {
    id: node,
    status: NODE_STATUSES[fleet.status[slot]!]!,
    country: location.country,
    region: location.region,
    protected: isProtected(context, slot),
  };
}

/** Returns a node under a policy, by everything that is known now; null: it is not listed. */
export function buildCandidate(context: CandidateDeps, active: ActivePolicy, node: NodeId): Candidate | null {
  const trust = observeNode(context, node);
  if (trust === null) return null;
  const { remediationState, clock } = context;
  const { rule } = active.policy;
  const subject = context.observed.scope().find(node)!;
  const evaluation = evaluatePolicy(active.policy, subject, context.observed.maxAgeOf(rule), clock.monotonic());
  const open = remediationState.records.openEpisode(node, isDryRun(active));
  const episode = open?.policy === rule.name ? open : null;
  return {
    active,
    node: trust,
    timer: remediationState.records.timer(rule.name, node),
    episode,
    evaluation,
    observedAt: remediationState.epochOf(evaluation.at),
    approved: episode !== null && findApprovedAction(context, episode.id, episode.step) !== null,
  };
}

/**
 * Whether a candidate may be acted on now. Reading a node does not show its sessions, so a policy that reads them acts only
 * right after a walk of the sessions.
 */
export function isCurrentEnough(
  { observed, clock }: Pick<CandidateDeps, "observed" | "clock">,
  { active }: Candidate,
): boolean {
  if (!policySources(active.policy).includes("sessions")) return true;
  const walkedAt = observed.latest?.snapshot.sessions?.settledAt ?? Number.NEGATIVE_INFINITY;
  return clock.monotonic() - walkedAt <= WALK_AGE_MS_MAX;
}

/** Returns the approved action of a step that was not sent yet; null: there is none, or its approval has expired. */
export const findApprovedAction = (context: CandidateDeps, episode: string, step: number): Action | null =>
  context.remediationState.records
    .actionsOf(episode)
    .find(
      (action) => action.step === step && action.state === "approved" && approvalExpiry(context, action) === null,
    ) ?? null;

/**
 * Returns why an approval, or a request for one, has expired (`safety.approval_ttl`, on the journal's clock: downtime counts);
 * null: it has not.
 */
export function approvalExpiry(
  { remediationState, rules }: Pick<CandidateDeps, "remediationState" | "rules">,
  { state, createdAt, approvedAt }: Action,
): string | null {
  const { approvalTtlMs } = rules.safety;
  if (remediationState.now() - (approvedAt ?? createdAt) < approvalTtlMs) return null;
  const ttl = formatDuration(approvalTtlMs);
  return state === "approved" ? `the approval expired after ${ttl}` : `it was not approved within ${ttl}`;
}

function isProtected(context: CandidateDeps, slot: number): NodeObservation["protected"] {
  const { protectedNodes } = context.policies;
  if (protectedNodes === null) return "false";
  return evaluateExpression(
    protectedNodes,
    context.observed.scope().nodeAt(slot),
    context.observed.maxAgeOf(null),
    context.clock.monotonic(),
  ).verdict;
}
