import type { Action, Episode, RebootProof } from "../../model/remediation/episode.ts";
import { observeAfterStep, recordStepResult } from "../../policy/episodes/episode.ts";
import {
  evaluateStep,
  rebootProof,
  type StepObservation,
  type StepResult,
} from "../../policy/episodes/verification.ts";
import { evaluateExpression, evaluatePolicy, type MaxAgeOf } from "../../policy/evaluation.ts";
import type { EpisodeContext, ServiceContext } from "../context.ts";
import { canaryFactKey, type SentUnder } from "../policy-set.ts";
import { actionChange, commitTransition, finishAction, withdraw } from "./episode-transitions.ts";
import { hasReportsSince, isDetailOlder, mayHaveReported, toServiceTime } from "./node-reports.ts";

/** Dependencies of the verification of steps. */
export type VerificationDeps = EpisodeContext & Pick<ServiceContext, "client">;

/** Detail of an action whose node recovered while an operator worked on it. */
const REPAIRED_DETAIL =
  "the node was in maintenance, or in a quarantine that the daemon did not start, before this was verified";

/** Detail of an action to which the service responded, but whose effect no observation showed. */
const UNKNOWN_DETAIL = "no observation showed whether the step helped";

/**
 * Verifies a step by the policy under which it was sent, and records its end. `slot` is the node's slot in the fleet.
 */
export function verifyStep(context: VerificationDeps, episode: Episode, action: Action, slot: number): void {
  const { remediationState, policies } = context;
  const sentUnder = policies.sentUnder(action);
  if (sentUnder === null) {
    withdraw(context, episode, "this version can't read the policy that it was sent under");
    return;
  }
  const observation = observeStep(context, action, sentUnder, slot);
  const seen = withObservation(action, observation);
  if (seen !== action) remediationState.record([actionChange(seen)]);
  // A dry run creates no quarantine that could be observed.
  const isDryRunQuarantine = episode.dryRun && action.request.kind === "quarantine";
  const result = isDryRunQuarantine ? "verified" : evaluateStep(seen, sentUnder.verify, observation);
  if (result === null) return;
  const isOurs = result !== "verified" || episode.repaired !== true;
  const outcome = isOurs ? result : "in_doubt";
  const proof = seen.request.kind === "reboot" && !seen.dryRun ? rebootProofOf(context, seen, slot) : null;
  const changes = [finishAction(context, seen, outcome, { proof, ...detailOf(seen, result, isOurs) })];
  const { spec, fingerprint } = policies.find(episode.policy) ?? sentUnder.policy;
  if (!seen.dryRun && outcome === "verified" && seen.fingerprint === fingerprint)
    changes.push({ kind: "fact", key: canaryFactKey(spec.name), value: fingerprint });
  const now = remediationState.now();
  const observed = observeAfterStep(episode, seen, observation.status, now);
  commitTransition(context, episode, recordStepResult(observed, seen, result, spec, now), changes);
}

/** Returns the action with what was observed for the first time: that its node reboots, or that `expect` does not hold. */
function withObservation(action: Action, { isFresh, status, expect }: StepObservation): Action {
  const rebootingSeen = action.rebootingSeen || (isFresh && status === "rebooting");
  const expectedBefore = action.expectedBefore === true && !(isFresh && expect === "false");
  if (rebootingSeen === action.rebootingSeen && expectedBefore === (action.expectedBefore ?? false)) return action;
  return { ...action, rebootingSeen, expectedBefore };
}

function observeStep(
  context: VerificationDeps,
  action: Action,
  { policy, expect }: SentUnder,
  slot: number,
): StepObservation {
  const { observed, remediationState } = context;
  const { fleet, sessions } = observed.latest!.snapshot;
  const sentAt = action.sentAt ?? Number.POSITIVE_INFINITY;
  const hasReports = hasReportsSince(context, sentAt, slot);
  // A correction of the journal's clock after a suspension makes data from before the step look newer than the step.
  const suspendedAt = remediationState.clock.suspendedAt();
  const isAfter = (at: number | null | undefined) =>
    hasReports && (at ?? Number.NaN) > suspendedAt && remediationState.epochOf(at!) > sentAt;
  const isFresh = {
    nodes: isAfter(fleet.listedAt.at(slot)),
    details: isAfter(fleet.detailedAt.at(slot)) && !isDetailOlder(context, sentAt, slot),
    sessions: isAfter(sessions?.observedFrom),
  };
  // Data from before the step was sent says nothing about its effect, so it counts as stale.
  const maxAgeOf = observed.maxAgeOf(policy.spec);
  const sinceSent: MaxAgeOf = (source) => (isFresh[source] ? maxAgeOf(source) : Number.NEGATIVE_INFINITY);
  const input = { ...observed.input(policy.spec, context.clock.monotonic()), maxAgeOf: sinceSent };
  return {
    now: remediationState.now(),
    isFresh: isFresh.nodes,
    status: observed.statusAt(slot),
    hasReported: mayHaveReported(context, sentAt, slot),
    when: evaluatePolicy(policy, slot, input).verdict,
    expect: expect === null ? null : evaluateExpression(expect, slot, input).verdict,
  };
}

/** Returns why an action ends in doubt. Any other action, and one whose POST had no clear response, keeps its detail. */
function detailOf(action: Action, result: StepResult, isOurs: boolean): Partial<Pick<Action, "detail">> {
  if (!isOurs) return { detail: REPAIRED_DETAIL };
  return result === "in_doubt" && !action.inDoubt && !action.dryRun ? { detail: UNKNOWN_DETAIL } : {};
}

function rebootProofOf(context: VerificationDeps, action: Action, slot: number): RebootProof {
  const { observed, client } = context;
  const at = observed.fleet.listedAt.at(slot);
  return rebootProof({
    uptimeHoursBefore: action.uptimeHoursBefore,
    uptimeHoursNow: observed.uptimeHoursAt(slot),
    status: observed.statusAt(slot),
    rebootingSeen: action.rebootingSeen,
    observedAt: client.serviceTime(at),
    postedAt: toServiceTime(context, action.sentAt!, at),
  });
}
