import type { NodeId } from "../../model/node.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import { type Candidate, nextStep } from "../../policy/candidate.ts";
import { decide, mayBeginEpisode } from "../../policy/decision.ts";
import { advanceStep, beginEpisode } from "../../policy/episodes/episode.ts";
import { type ActivePolicy, type GuardFacts, isDryRun, isInFlight } from "../../policy/facts.ts";
import { activePolicies, type RemediationContext, type ToldDecision } from "../context.ts";
import { yieldToEventLoop } from "../event-loop.ts";
import { actionChange, commitTransition, notifyOfEpisode } from "../execution/episode-transitions.ts";
import { recordApprovalRequest } from "../execution/executor.ts";
import { createdAtOf } from "../node-identity.ts";
import { approvalExpiry, buildCandidate } from "./candidates.ts";

/** Decides on every node that fires, and tells what changed. */
export interface ActionPlanner {
  /** Decides on all; returns those to act on, whoever fires longest first. */
  planAll(factsOf: (dryRun: boolean) => GuardFacts): Promise<readonly Candidate[]>;
  /** Decides on one, and tells it. */
  planOne(candidate: Candidate, facts: GuardFacts): Decision;
}

/** Candidates between two breaths. */
const CANDIDATES_PER_SLICE = 200;

/** A deciding that has told nothing yet. */
export function createActionPlanner(context: RemediationContext): ActionPlanner {
  const { remediationState, metrics, log } = context;

  function planOne(candidate: Candidate, facts: GuardFacts): Decision {
    const decision = decide(candidate, facts);
    const changes = reportDecision(decision);
    if (changes.length > 0) remediationState.record(changes);
    return decision;
  }

  /** What is to be written down of a decision: only a changed one is. */
  function reportDecision(decision: Decision): JournalChange[] {
    const { policy, node, episode, step, verdict, blockers, mode } = decision;
    const reasons = [...new Set(blockers.map(({ reason }) => reason))];
    // Each step that is acted on is a decision of its own.
    const about = verdict === "act" ? `${episode} ${step}` : reasons.toSorted().join(" ");
    const text = `${mode} ${verdict} ${about}`;
    const key = keyOf(policy, node);
    if (context.notifiedEpisodes.get(key)?.text === text) return [];
    context.notifiedEpisodes.set(key, { policy, node, shadow: mode === "dry_run", text, reasons });
    for (const reason of verdict === "act" ? (["all_clear"] as const) : reasons) {
      metrics.inc("proxywarden_decisions_total", { policy, verdict, reason });
    }
    log.info({ policy, node, mode, verdict, reasons }, "decided");
    return [{ kind: "decision", row: decision }];
  }

  /** One node under one policy: null where there is nothing to act on. */
  function evaluateCandidate(active: ActivePolicy, node: NodeId, facts: GuardFacts): Candidate | null {
    const candidate = buildCandidate(context, active, node);
    const { name } = active.policy.rule;
    if (candidate === null || candidate.evaluation.verdict === "false") {
      context.notifiedEpisodes.delete(keyOf(name, node));
      return null;
    }
    if (candidate.episode !== null && !awaitsNextStep(context, candidate.episode)) return null;
    const decision = decide(candidate, facts);
    const isSuspended =
      candidate.episode === null && remediationState.records.suspendedEpisode(name, node, isDryRun(active)) !== null;
    if (isSuspended) {
      // It has to wait until the node is free: no second episode begins beside it.
      if (decision.verdict === "hold") remediationState.record(reportDecision(decision));
      return null;
    }
    const canBegin = candidate.episode === null && candidate.evaluation.verdict === "true" && mayBeginEpisode(decision);
    if (!canBegin) return applyDecision(candidate, decision);
    const createdAt = createdAtOf(context, node);
    const episode = {
      ...beginEpisode(active, candidate.node, remediationState.records.nextId("ep"), remediationState.now()),
      ...(createdAt === null ? {} : { nodeCreatedAt: createdAt }),
    };
    commitTransition(context, null, episode);
    const withEpisode = { ...candidate, episode };
    return applyDecision(withEpisode, decide(withEpisode, facts));
  }

  function applyDecision(candidate: Candidate, decision: Decision): Candidate | null {
    // Told when its turn comes: those before it may leave no room.
    if (decision.verdict === "act" && candidate.episode !== null) return candidate;
    const changes = reportDecision(decision);
    if (changes.length > 0) remediationState.record(changes);
    if (decision.blockers.length === 1 && decision.blockers[0]!.reason === "approval") submitForApproval(candidate);
    return null;
  }

  function submitForApproval(candidate: Candidate): void {
    const episode = candidate.episode!;
    const awaitsApproval = remediationState.records
      .actionsOf(episode.id)
      .some(({ step, state }) => step === episode.step && state === "awaiting");
    if (awaitsApproval) return;
    const action = recordApprovalRequest(context, candidate);
    remediationState.record([actionChange(action)]);
    const summary = `${action.id}: ${action.request.kind} of ${action.node} (${action.policy}) waits to be approved`;
    notifyOfEpisode(context, episode, { kind: "approval", severity: "warning", summary });
  }

  /** What waits for a person lapses with its evidence. */
  function withdrawRequest(): void {
    for (const action of remediationState.records.actions()) {
      if (action.state !== "awaiting" && action.state !== "approved") continue;
      const episode = remediationState.records.episode(action.episode);
      const why = withdrawExpired(action, episode);
      if (why === null) continue;
      remediationState.record([
        actionChange({ ...action, state: "lapsed", endedAt: remediationState.now(), detail: why }),
      ]);
      log.info({ action: action.id, node: action.node, why }, "an action that waited for a person lapsed");
    }
  }

  function withdrawExpired(action: Action, episode: Episode | null): string | null {
    const expiry = approvalExpiry(context, action);
    if (expiry !== null) return expiry;
    if (episode === null || episode.closedAt !== null) return "its episode is over";
    if (episode.state === "suspended") return "its episode is suspended";
    if (episode.state !== "firing" || episode.step !== action.step) return "its step is over";
    const active = activePolicies(context).find(({ policy }) => policy.rule.name === action.policy);
    if (active === undefined || active.policy.fingerprint !== action.fingerprint) return "its policy was changed";
    if (active.mode !== "approve") return "its policy needs no approval any more";
    const candidate = buildCandidate(context, active, action.node);
    if (candidate === null) return "the node is gone";
    return candidate.evaluation.verdict === "false" ? "the node is not unhealthy any more" : null;
  }

  return {
    planOne,
    async planAll(factsOf) {
      remediationState.runBatched(withdrawRequest);
      const acts: Candidate[] = [];
      // A survey of the fleet a world, and none where nothing fires.
      const reportedDecisions = new Map<boolean, GuardFacts>();
      for (const active of activePolicies(context)) {
        const timers = [...remediationState.records.timersOf(active.policy.rule.name)];
        const firing = timers.flatMap(([node, { state }]) => (state === "firing" ? [node] : []));
        if (firing.length === 0) continue;
        const dryRun = isDryRun(active);
        const facts = reportedDecisions.get(dryRun) ?? factsOf(dryRun);
        reportedDecisions.set(dryRun, facts);
        for (let begin = 0; begin < firing.length; begin += CANDIDATES_PER_SLICE) {
          if (begin > 0) await yieldToEventLoop();
          const slice = firing.slice(begin, begin + CANDIDATES_PER_SLICE);
          acts.push(
            ...remediationState.runBatched(() => slice.flatMap((node) => evaluateCandidate(active, node, facts) ?? [])),
          );
        }
      }
      for (const [key, told] of context.notifiedEpisodes) if (!isFiring(told)) context.notifiedEpisodes.delete(key);
      return acts.toSorted((a, b) => (a.timer.since ?? 0) - (b.timer.since ?? 0));
    },
  };

  function isFiring({ policy, node }: ToldDecision): boolean {
    return remediationState.records.timer(policy, node).state === "firing";
  }
}

/** Carries out a step that tells people, and goes on to the next. */
export function sendNotifyStep(context: RemediationContext, candidate: Candidate): void {
  const episode = candidate.episode!;
  const step = nextStep(candidate);
  if (step?.action !== "notify") throw new Error("the step is no notice");
  const summary = `${episode.node} is unhealthy by the policy ${episode.policy} (${episode.id}): step ${episode.step + 1} asks to tell you`;
  if (!episode.shadow)
    notifyOfEpisode(context, episode, { kind: "step", severity: "critical", summary }, step.receiver);
  commitTransition(
    context,
    episode,
    advanceStep(episode, candidate.active.policy.rule, context.remediationState.now()),
  );
}

/** Whether the next step of an episode may be decided on: nothing of it is under way. */
export const awaitsNextStep = ({ remediationState }: RemediationContext, { id, state }: Episode): boolean =>
  state === "firing" && !remediationState.records.actionsOf(id).some(isInFlight);

const keyOf = (policy: string, node: NodeId): string => JSON.stringify([policy, node]);
