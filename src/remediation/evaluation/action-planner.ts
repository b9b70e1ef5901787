import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import type { NodeId } from "../../model/node.ts";
import type { Decision, HoldReason } from "../../model/remediation/decision.ts";
import type { Action, Episode } from "../../model/remediation/episode.ts";
import { decide, mayBeginEpisode } from "../../policy/decision.ts";
import { beginEpisode } from "../../policy/episodes/episode.ts";
import { type ActivePolicy, type GuardFacts, isDryRun, isInFlight } from "../../policy/facts.ts";
import type { Candidate } from "../../policy/guards/guard.ts";
import { planAction } from "../../policy/planned-action.ts";
import type { TransitionDeps } from "../execution/episode-transitions.ts";
import { actionChange, commitTransition, notifyOfEpisode } from "../execution/episode-transitions.ts";
import type { CandidateDeps } from "./candidates.ts";
import { approvalExpiry, buildCandidate, findApprovedAction } from "./candidates.ts";

type PlannerDeps = CandidateDeps & TransitionDeps;

/** Decides on every node whose timer fires, and records each decision that changed. */
export interface ActionPlanner {
  /** The last decision about each node whose timer fires. */
  readonly lastDecisions: ReadonlyMap<string, LastDecision>;
  /** Decides on all of them; returns the steps to take, the longest-firing node first. */
  plan(factsOf: (dryRun: boolean) => GuardFacts): Promise<readonly PlannedStep[]>;
  /**
   * Returns the candidate of a planned step if it may still be taken, and records the decision. It is decided on again only
   * if `facts` are not the ones that it was planned on, because an earlier step of the round changed them.
   */
  confirm(planned: PlannedStep, facts: GuardFacts): Candidate | null;
  /** The candidate of an episode's next step, as observed now; null: the node is gone, or a step is under way. */
  candidateOf(policy: string, node: NodeId): Candidate | null;
  /** The action of a candidate's next step: the one that an operator approved, or a new one. */
  actionOf(candidate: Candidate): Action;
}

/** A step to take, and the facts that this was decided on. */
export interface PlannedStep {
  readonly candidate: Candidate;
  readonly decision: Decision;
  readonly facts: GuardFacts;
}

/** The last decision about a node under a policy. */
export interface LastDecision {
  readonly policy: string;
  readonly node: NodeId;
  readonly dryRun: boolean;
  /** Mode, verdict and reasons: a decision with another text is a change. */
  readonly text: string;
  /** Why the node is held; empty: it is acted on. */
  readonly reasons: readonly HoldReason[];
}

/** Candidates that are decided on between two yields to the event loop. */
const CANDIDATES_PER_SLICE = 200;

/** Creates a planner that has recorded no decision yet. */
export function createActionPlanner(context: PlannerDeps): ActionPlanner {
  const { remediationState, metrics, log } = context;
  const { records } = remediationState;
  const lastDecisions = new Map<string, LastDecision>();

  /** Records a decision if it differs from the last one about the node. */
  function recordDecision(decision: Decision): void {
    const { policy, node, episode, step, verdict, blockers, mode } = decision;
    const reasons = [...new Set(blockers.map(({ reason }) => reason))];
    // Each step that is acted on is a decision of its own.
    const about = verdict === "act" ? `${episode} ${step}` : reasons.toSorted().join(" ");
    const text = `${mode} ${verdict} ${about}`;
    const key = keyOf(policy, node);
    if (lastDecisions.get(key)?.text === text) return;
    lastDecisions.set(key, { policy, node, dryRun: mode === "dry_run", text, reasons });
    for (const reason of verdict === "act" ? (["all_clear"] as const) : reasons) {
      metrics.inc("proxywarden_decisions_total", { policy, verdict, reason });
    }
    log.info({ policy, node, mode, verdict, reasons }, "decided");
    remediationState.record([{ kind: "decision", row: decision }]);
  }

  /** Decides on one node under one policy; null: no step is to be taken. */
  function planStep(active: ActivePolicy, node: NodeId, facts: GuardFacts): PlannedStep | null {
    const candidate = buildCandidate(context, active, node);
    const { name } = active.policy.rule;
    if (candidate === null || candidate.evaluation.verdict === "false") {
      lastDecisions.delete(keyOf(name, node));
      return null;
    }
    if (candidate.episode !== null && !awaitsNextStep(candidate.episode)) return null;
    const decision = decide(candidate, facts);
    if (candidate.episode === null) {
      const isSuspended = records.suspendedEpisode(name, node, isDryRun(active)) !== null;
      if (isSuspended || candidate.evaluation.verdict !== "true" || !mayBeginEpisode(decision)) {
        // A suspended episode goes on once the node is free: no second one begins beside it.
        if (decision.verdict === "hold") recordDecision(decision);
        return null;
      }
      return planEpisode(candidate, decision, facts);
    }
    return planOrHold({ candidate, decision, facts });
  }

  /** Begins an episode. The decision does not depend on it, so it stays valid. */
  function planEpisode(candidate: Candidate, decision: Decision, facts: GuardFacts): PlannedStep | null {
    const { active, node } = candidate;
    const createdAt = context.observed.createdAtOf(node.id);
    const episode = {
      ...beginEpisode(active, node, records.nextId("ep"), remediationState.now()),
      ...(createdAt === null ? {} : { nodeCreatedAt: createdAt }),
    };
    commitTransition(context, null, episode);
    return planOrHold({ candidate: { ...candidate, episode }, decision: { ...decision, episode: episode.id }, facts });
  }

  function planOrHold(planned: PlannedStep): PlannedStep | null {
    const { candidate, decision } = planned;
    if (decision.verdict === "act") return planned;
    recordDecision(decision);
    if (decision.blockers.length === 1 && decision.blockers[0]!.reason === "approval") requestApproval(candidate);
    return null;
  }

  /** Whether the next step of an episode may be decided on: no action of it is under way. */
  const awaitsNextStep = ({ id, state }: Episode): boolean =>
    state === "firing" && !records.actionsOf(id).some(isInFlight);

  function candidateOf(policy: string, node: NodeId): Candidate | null {
    const active = context.policies.findActive(policy);
    const candidate = active === null ? null : buildCandidate(context, active, node);
    return candidate?.episode != null && awaitsNextStep(candidate.episode) ? candidate : null;
  }

  function actionOf(candidate: Candidate): Action {
    const { id, step } = candidate.episode!;
    const approved = findApprovedAction(context, id, step);
    if (approved !== null) return { ...approved, state: "intended" };
    return planAction(candidate, records.nextId("act"), remediationState.now());
  }

  function requestApproval(candidate: Candidate): void {
    const episode = candidate.episode!;
    const isRequested = records
      .actionsOf(episode.id)
      .some(({ step, state }) => step === episode.step && state === "awaiting");
    if (isRequested) return;
    const action: Action = { ...actionOf(candidate), state: "awaiting" };
    remediationState.record([actionChange(action)]);
    const summary = `${action.id}: ${action.request.kind} of ${action.node} (${action.policy}) waits to be approved`;
    notifyOfEpisode(context, episode, { kind: "approval", severity: "warning", summary });
  }

  /** Lets requests for approval lapse when their evidence is gone. */
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
    const active = context.policies.findActive(action.policy);
    if (active === null || active.policy.fingerprint !== action.fingerprint) return "its policy was changed";
    if (active.mode !== "approve") return "its policy needs no approval any more";
    const candidate = buildCandidate(context, active, action.node);
    if (candidate === null) return "the node is gone";
    return candidate.evaluation.verdict === "false" ? "the node is not unhealthy any more" : null;
  }

  return {
    lastDecisions,
    async plan(factsOf) {
      remediationState.runBatched(withdrawRequest);
      const planned: PlannedStep[] = [];
      for (const active of context.policies.active()) {
        const timers = [...records.timersOf(active.policy.rule.name)];
        const firing = timers.flatMap(([node, { state }]) => (state === "firing" ? [node] : []));
        for (let begin = 0; begin < firing.length; begin += CANDIDATES_PER_SLICE) {
          if (begin > 0) await yieldToEventLoop();
          const slice = firing.slice(begin, begin + CANDIDATES_PER_SLICE);
          const facts = factsOf(isDryRun(active));
          planned.push(
            ...remediationState.runBatched(() => slice.flatMap((node) => planStep(active, node, facts) ?? [])),
          );
        }
      }
      for (const [key, { policy, node }] of lastDecisions) {
        if (records.timer(policy, node).state !== "firing") lastDecisions.delete(key);
      }
      return planned.toSorted((a, b) => (a.candidate.timer.since ?? 0) - (b.candidate.timer.since ?? 0));
    },
    confirm(planned, facts) {
      if (planned.facts === facts) {
        recordDecision(planned.decision);
        return planned.candidate;
      }
      const { active, node } = planned.candidate;
      const candidate = candidateOf(active.policy.rule.name, node.id);
      if (candidate === null) return null;
      const decision = decide(candidate, facts);
      recordDecision(decision);
      return decision.verdict === "act" ? candidate : null;
    },
    candidateOf,
    actionOf,
  };
}

const keyOf = (policy: string, node: NodeId): string => JSON.stringify([policy, node]);
