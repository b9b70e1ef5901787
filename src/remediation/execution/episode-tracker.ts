import { NODE_STATUSES, type NodeId, type NodeStatus } from "../../model/node.ts";
import type { Action, ActionOutcome, Episode } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { EpochMs } from "../../model/time.ts";
import {
  advanceStep,
  clearEpisode,
  markUnlisted,
  observeStatus,
  recordRefused,
  recordStepLost,
  recordStepResult,
  refireEpisode,
  resumeEpisode,
  suspendEpisode,
  withdrawEpisode,
} from "../../policy/episodes/episode.ts";
import {
  evaluateStep,
  rebootProof,
  type StepObservation,
  type StepResult,
  stepDeadlines,
} from "../../policy/episodes/verification.ts";
import { isInFlight, isLost, isUnlisted } from "../../policy/facts.ts";
import { conditionKeyOf, type Policy, policySources } from "../../policy/policy.ts";
import { INACTIVE, observeCondition, type Timer } from "../../policy/timers/timer.ts";
import {
  evaluateExpression,
  evaluatePolicy,
  type MaxAgeOf,
  type PolicyEvaluation,
} from "../../policy/timers/verdict.ts";
import type { RemediationContext } from "../context.ts";
import { forgetReplacedNode } from "../node-identity.ts";
import { canaryFactKey } from "../policy-set.ts";
import type { TransitionDeps } from "./episode-transitions.ts";
import { actionChange, commitTransition, finishAction, finishActions } from "./episode-transitions.ts";

type TrackerDeps = TransitionDeps & Pick<RemediationContext, "client" | "clock" | "observed">;

/** Follows open episodes by what is seen: verifies steps, minds quarantines, and closes what is over. */
export interface EpisodeTracker {
  /**
   * Looks at all open episodes. `replaced`: nodes whose id another node has by now. Not to be called while the fleet's data
   * can't be trusted.
   */
  update(replaced: ReadonlySet<NodeId>): void;
}

/** A following of what the books hold. */
export function createEpisodeTracker(context: TrackerDeps): EpisodeTracker {
  const { remediationState } = context;
  /** Records from before were looked at by whoever followed before. */
  const sessionsCountedFrom = context.clock.monotonic();
  /** When the node's record that was looked at last was observed, by episode: one record is one look. */
  const lastObservedAt = new Map<string, number>();
  /** Of episodes that a step has healed: how long they are ill again. */
  const relapses = new Map<string, Timer>();

  function updateEpisode(episode: Episode): void {
    const slot = context.observed.slotOf(episode.node);
    if (slot === null) {
      handleMissing(episode);
      return;
    }
    const policy = context.policies.find(episode.policy);
    const present = episode.state === "suspended" ? handleReturn(episode) : episode;
    if (present.closedAt !== null) return;
    const { fleet } = context.observed;
    const isNew = fleet.listedAt[slot]! > (lastObservedAt.get(episode.id) ?? sessionsCountedFrom);
    lastObservedAt.set(episode.id, fleet.listedAt[slot]!);
    const observedNow = isNew ? updateQuarantine(present, NODE_STATUSES[fleet.status[slot]!]!) : present;
    if (observedNow.closedAt !== null) return;
    const action = inFlight(observedNow);
    if (action !== null) verifyStep(observedNow, action, slot);
    const judged = remediationState.records.episode(observedNow.id)!;
    if (judged.closedAt !== null) return;
    if (policy === null || !isAbout(judged, policy) || isHeldByAnother(judged, policy)) abandonStep(judged);
    else if (action === null) trackRecovery(judged, policy, slot);
  }

  const inFlight = ({ id }: Episode): Action | null => remediationState.records.actionsOf(id).find(isInFlight) ?? null;

  /**
   * The node of an episode has left the list. Without an action of ours it is forgotten after `forget_after`. A lost one is
   * not: only its return or accept-inventory ends that.
   */
  function handleMissing(episode: Episode): void {
    const now = remediationState.now();
    if (!isUnlisted(episode)) {
      commitTransition(context, episode, markUnlisted(episode, now));
      return;
    }
    const action = inFlight(episode);
    if (action !== null && now >= evaluateStepEnd(action)) {
      const change = finishAction(context, action, action.shadow ? "dry_run" : "ineffective", {
        detail: "the node left the list",
      });
      commitTransition(context, episode, recordStepLost(episode, action, now), [change]);
    } else if (!isLost(episode)) closeForgotten(episode, "the node did not come back");
  }

  function suspend(episode: Episode): void {
    commitTransition(context, episode, suspendEpisode(episode, remediationState.now()));
  }

  /** Ends an episode that was suspended for `retry.forget_after`. */
  function closeForgotten(episode: Episode, why: string): void {
    if (isForgotten(episode, episode.stateAt)) withdraw(episode, why);
  }

  const isForgotten = (episode: Episode, since: EpochMs): boolean =>
    remediationState.now() - since >= (policyOf(episode)?.rule.retry.forgetAfterMs ?? 0);

  function withdraw(episode: Episode, why: string): void {
    commitTransition(
      context,
      episode,
      withdrawEpisode(episode, remediationState.now()),
      finishActions(context, episode, why),
    );
  }

  /** When the time of a step is up; at once where it is not understood any more. */
  function evaluateStepEnd(action: Action): EpochMs {
    const step = context.policies.withFingerprint(action.fingerprint)?.rule.steps[action.step];
    return step === undefined || step.action === "notify" ? 0 : stepDeadlines(action, step.verify).end;
  }

  /** The policy of an episode as it is now; if it is no more, as it was. */
  const policyOf = ({ policy, fingerprint }: Episode): Policy | null =>
    context.policies.find(policy) ?? context.policies.withFingerprint(fingerprint);

  function handleReturn(episode: Episode): Episode {
    if (isUnlisted(episode) && isForgotten(episode, episode.unlistedAt!)) {
      withdraw(episode, "the node came back too late");
      return remediationState.records.episode(episode.id)!;
    }
    const after = resumeEpisode(episode, inFlight(episode) !== null, remediationState.now());
    if (after !== episode) commitTransition(context, episode, after);
    return after;
  }

  function updateQuarantine(episode: Episode, status: NodeStatus): Episode {
    const after = observeStatus(episode, status, remediationState.now());
    if (after === episode) return after;
    const detail = "a person lifted the quarantine";
    commitTransition(
      context,
      episode,
      after,
      after.state === "freed" ? [recordVeto(after), ...finishActions(context, after, detail)] : [],
    );
    return after;
  }

  function recordVeto(episode: Episode): JournalChange {
    const { node, policy, id } = episode;
    const now = remediationState.now();
    const until = now + (policyOf(episode)?.rule.retry.everyMs ?? 0);
    const reason = `a person lifted the quarantine of ${id}`;
    return { kind: "hold", row: { node, policy, kind: "vetoed", at: now, until, reason } };
  }

  /** What no policy of now stands behind is watched while our hand is on the node, and no longer. */
  function abandonStep(episode: Episode): void {
    if (episode.state === "acting" || episode.quarantine !== null) return;
    withdraw(episode, "its policy is gone or was changed");
  }

  /** Whether an episode is about what its policy is about now. */
  const isAbout = ({ fingerprint }: Episode, policy: Policy): boolean =>
    fingerprint === policy.fingerprint || conditionKeyOf(fingerprint) === policy.conditionKey;

  /** Whether its policy works in the other world now: a dry run that became real, or the other way round. */
  function isHeldByAnother(episode: Episode, policy: Policy): boolean {
    const dryRun = context.policies.activate(policy).mode === "dry_run";
    return dryRun !== episode.shadow && episode.state !== "acting" && episode.quarantine === null;
  }

  /** A step is judged by the policy under which it was sent, whatever became of that since. */
  function verifyStep(episode: Episode, action: Action, slot: number): void {
    const policy = context.policies.withFingerprint(action.fingerprint);
    const step = policy?.rule.steps[action.step];
    if (policy === null || step === undefined || step.action === "notify") {
      withdraw(episode, "what it was sent for is not understood any more");
      return;
    }
    const isDryRunStep = episode.shadow && action.request.kind === "quarantine";
    const seen = observeStep(action, policy, slot);
    const end = isDryRunStep ? "verified" : evaluateStep(action, step.verify, seen);
    if (seen.isFresh && seen.status === "rebooting" && !action.rebootingSeen) {
      remediationState.record([actionChange({ ...action, rebootingSeen: true })]);
    }
    if (end !== null) finishStep(episode, remediationState.records.action(action.id)!, end, policy, slot);
  }

  function observeStep(action: Action, policy: Policy, slot: number): StepObservation {
    const { fleet, sessions } = context.observed.latest!.snapshot;
    const sentAt = action.sentAt ?? Number.POSITIVE_INFINITY;
    const isAfter = (at: number | null | undefined) => remediationState.epochOf(at ?? Number.NaN) > sentAt;
    const observed = {
      nodes: isAfter(fleet.listedAt[slot]),
      details: isAfter(fleet.detailedAt[slot]),
      sessions: isAfter(sessions?.settledAt),
      stats: true,
      hourly: true,
    };
    // What was observed before the step was sent says nothing of what came of it: it is as unknown as stale data.
    const maxAges = context.observed.maxAgeOf(policy.rule);
    const sinceSent: MaxAgeOf = (source) => (observed[source] ? maxAges(source) : Number.NEGATIVE_INFINITY);
    const subject = context.observed.scope().nodeAt(slot);
    const now = context.clock.monotonic();
    const expectation = policy.expects[action.step] ?? null;
    return {
      now: remediationState.now(),
      isFresh: observed.nodes,
      status: NODE_STATUSES[fleet.status[slot]!]!,
      when: evaluatePolicy(policy, subject, sinceSent, now).verdict,
      expect: expectation === null ? null : evaluateExpression(expectation, subject, sinceSent, now).verdict,
    };
  }

  const evaluation = (policy: Policy, slot: number): PolicyEvaluation =>
    evaluatePolicy(
      policy,
      context.observed.scope().nodeAt(slot),
      context.observed.maxAgeOf(policy.rule),
      context.clock.monotonic(),
    );

  function finishStep(episode: Episode, action: Action, end: StepResult, sentUnder: Policy, slot: number): void {
    const now = remediationState.now();
    const policy = context.policies.find(episode.policy) ?? sentUnder;
    const isOurs = end !== "verified" || episode.repaired !== true;
    const outcome: ActionOutcome = action.shadow ? "dry_run" : isOurs ? end : "in_doubt";
    const proof = action.request.kind === "reboot" && !action.shadow ? rebootProofOf(action, slot) : null;
    const changes = [finishAction(context, action, outcome, isOurs ? { proof } : { proof, detail: REPAIRED_DETAIL })];
    const isProof = outcome === "verified" && action.fingerprint === policy.fingerprint;
    if (isProof) changes.push({ kind: "fact", key: canaryFactKey(policy.rule.name), value: policy.fingerprint });
    relapses.delete(episode.id);
    commitTransition(context, episode, recordStepResult(episode, action, end, policy.rule, now), changes);
  }

  function rebootProofOf(action: Action, slot: number) {
    const { fleet } = context.observed;
    const observedAt = context.client.serviceTime(fleet.listedAt[slot]!);
    const elapsed = remediationState.epochOf(fleet.listedAt[slot]!) - action.sentAt!;
    const uptime = fleet.uptimeHours[slot]!;
    return rebootProof({
      uptimeHoursBefore: action.uptimeHoursBefore,
      uptimeHoursNow: Number.isNaN(uptime) ? null : uptime,
      rebootingSeen: action.rebootingSeen,
      observedAt,
      postedAt: observedAt === null ? null : observedAt - elapsed,
    });
  }

  /** An episode that waits: for its next step, for its clearing, for the end of a quarantine, or to be seen again. */
  function trackRecovery(episode: Episode, policy: Policy, slot: number): void {
    const now = remediationState.now();
    const { name, forMs, clearForMs } = policy.rule;
    if (episode.state === "acting") return;
    const { state } = remediationState.records.timer(name, episode.node);
    if (episode.quarantine === null && state !== "firing") {
      relapses.delete(episode.id);
      if (state !== "lapsed") {
        commitTransition(
          context,
          episode,
          clearEpisode(episode, now),
          finishActions(context, episode, "the node is well again"),
        );
      } else if (episode.state !== "suspended") suspend(episode);
      else closeForgotten(episode, "its verdict stayed unknown");
      return;
    }
    if (episode.state === "suspended") {
      if (isNodeFree(episode)) commitTransition(context, episode, refireEpisode(episode, policy.rule, now));
      else closeForgotten(episode, "another episode has the node");
      return;
    }
    if (episode.state === "firing" && episode.step >= policy.rule.steps.length) {
      // A reload took its steps away.
      commitTransition(context, episode, recordRefused(episode, policy.rule, now));
      return;
    }
    if (episode.state !== "recovering" && episode.state !== "probation") return;
    const { verdict, at, newest } = evaluation(policy, slot);
    const gapMsMax = Math.max(...policySources(policy).map(context.observed.maxAgeOf(policy.rule)));
    const before = relapses.get(episode.id) ?? INACTIVE;
    const relapse = observeCondition(before, { verdict, at, newest, now }, { forMs, clearForMs, gapMsMax });
    relapses.set(episode.id, relapse);
    if (relapse.state !== "firing") return;
    relapses.delete(episode.id);
    commitTransition(context, episode, advanceStep(episode, policy.rule, now));
  }

  /** Whether a suspended episode may have its node again: no other one has it, or has acted on it a short while ago. */
  function isNodeFree({ node, shadow: dryRun, stateAt }: Episode): boolean {
    if (remediationState.records.openEpisode(node, dryRun) !== null) return false;
    const other = remediationState.records.closedEpisodesOf(node, dryRun).findLast(({ acted }) => acted > 0);
    const closedAt = other?.closedAt ?? Number.NEGATIVE_INFINITY;
    return closedAt < stateAt || remediationState.now() - closedAt >= context.rules.safety.cooldownMs;
  }

  return {
    update(replaced) {
      for (const node of replaced) forgetReplacedNode(context, node);
      const open = remediationState.records.openEpisodes();
      for (const episode of open) updateEpisode(episode);
      const ids = new Set(open.map(({ id }) => id));
      for (const id of lastObservedAt.keys()) if (!ids.has(id)) lastObservedAt.delete(id);
      for (const id of relapses.keys()) if (!ids.has(id)) relapses.delete(id);
    },
  };
}

/** Detail of an action whose node recovered while an operator worked on it. */
const REPAIRED_DETAIL = "the node was in maintenance, or in a quarantine that is not ours, before this was verified";
