import type { Action, Episode } from "../../model/remediation/episode.ts";
import type { Candidate } from "../../policy/guards/guard-row.ts";
import { actionChange, notifyOfEpisode, type TransitionDeps } from "../execution/episode-transitions.ts";
import { approvalExpiry, buildCandidate, type CandidateDeps, nextAction } from "./candidates.ts";

type ApprovalDeps = CandidateDeps & TransitionDeps;

/** Journals a request for approval of a candidate's next step and notifies about it, unless there already is one. */
export function requestApproval(context: ApprovalDeps, candidate: Candidate): void {
  const { remediationState } = context;
  const episode = candidate.episode!;
  const isRequested = remediationState.records
    .actionsOf(episode.id)
    .some(({ step, state }) => step === episode.step && state === "awaiting");
  if (isRequested) return;
  const action: Action = { ...nextAction(context, candidate), state: "awaiting" };
  remediationState.record([actionChange(action)]);
  const summary = `${action.id}: ${action.request.kind} of ${action.node} (${action.policy}) waits for approval`;
  notifyOfEpisode(context, episode, { kind: "approval", severity: "warning", summary });
}

/** Ends approvals, and requests for one, that have expired or that no longer apply. */
export function lapseApprovals(context: ApprovalDeps): void {
  const { remediationState, log } = context;
  for (const action of remediationState.records.actions()) {
    if (action.state !== "awaiting" && action.state !== "approved") continue;
    const episode = remediationState.records.episode(action.episode);
    const reason = approvalExpiry(context, action) ?? obsoleteReason(context, action, episode);
    if (reason === null) continue;
    const endedAt = remediationState.now();
    remediationState.record([actionChange({ ...action, state: "lapsed", endedAt, detail: reason })]);
    log.info({ action: action.id, node: action.node, reason }, "approval, or the request for one, expired");
  }
}

/** Returns why the action no longer applies, or null if it does. */
function obsoleteReason(context: ApprovalDeps, action: Action, episode: Episode | null): string | null {
  if (episode === null || episode.closedAt !== null) return "its episode is over";
  if (episode.state === "suspended") return "its episode is suspended";
  if (episode.state !== "firing" || episode.step !== action.step) return "its step is over";
  const active = context.policies.findActive(action.policy);
  if (active === null || active.policy.fingerprint !== action.fingerprint) return "its policy was changed";
  if (active.mode !== "approve") return "its policy no longer needs approval";
  const candidate = buildCandidate(context, active, action.node);
  if (candidate === null) return "the node is gone";
  return candidate.evaluation.verdict === "false" ? "the node is no longer unhealthy" : null;
}
