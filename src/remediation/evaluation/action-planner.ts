import type { NodeId } from "../../model/node.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { Episode } from "../../model/remediation/episode.ts";
import { nextTurn, runInSlices } from "../../platform/event-loop.ts";
import { decide, mayBeginEpisode } from "../../policy/decision.ts";
import { beginEpisode } from "../../policy/episodes/episode.ts";
import { consecutiveFailures } from "../../policy/episodes/retries.ts";
import { type ActivePolicy, type GuardFacts, isDryRun } from "../../policy/facts.ts";
import type { Candidate } from "../../policy/guards/guard-row.ts";
import { commitTransition, type TransitionDeps } from "../execution/episode-transitions.ts";
import { requestApproval } from "./approvals.ts";
import {
  awaitsNextStep,
  buildCandidate,
  type CandidateDeps,
  findCandidate,
  firingNodes,
  oldSessionsBlocker,
} from "./candidates.ts";
import { DecisionLog } from "./decision-log.ts";
import type { FactsOf } from "./guard-facts.ts";

type PlannerDeps = CandidateDeps & TransitionDeps;

/** Number of candidates to decide on, and of decisions to journal, between two yields to the event loop. */
const CANDIDATES_PER_SLICE = 100;

/** Decides on every node whose timer fires, and records each decision that changed. */
export class ActionPlanner {
  readonly decisionLog: DecisionLog;
  readonly #context: PlannerDeps;

  constructor(context: PlannerDeps) {
    this.#context = context;
    this.decisionLog = new DecisionLog(context);
  }

  /**
   * Returns the candidates whose next step is to be taken, starting with the node that has been firing longest. Those
   * whose step was tried and not executed come last, because each failure may hold the others. Begins the episodes that
   * may begin.
   */
  async plan(factsOf: FactsOf): Promise<readonly Candidate[]> {
    const { clock, policies, remediationState } = this.#context;
    const planned: Candidate[] = [];
    for (const active of policies.active()) {
      const firing = firingNodes(remediationState, active.policy.rule.name);
      for (let begin = 0; begin < firing.length; begin += CANDIDATES_PER_SLICE) {
        await nextTurn();
        const slice = firing.slice(begin, begin + CANDIDATES_PER_SLICE);
        const facts = factsOf(isDryRun(active));
        planned.push(
          ...remediationState.runBatched(() => slice.flatMap((node) => this.#planStep(active, node, facts) ?? [])),
        );
      }
    }
    await nextTurn();
    await runInSlices(this.decisionLog.forgetCleared(), clock);
    const hasFailed = ({ episode }: Candidate) => Number((episode?.failures ?? 0) > 0);
    return planned.toSorted((a, b) => hasFailed(a) - hasFailed(b) || (a.timer.since ?? 0) - (b.timer.since ?? 0));
  }

  /**
   * Returns the candidate of a planned step if it may still be taken, and records the decision. The step is decided on
   * again, because an earlier step of the round, newer data or an operator may have changed the facts.
   */
  confirm(planned: Candidate, facts: GuardFacts): Candidate | null {
    const { active, node, episode } = planned;
    const candidate = findCandidate(this.#context, active.policy.rule.name, node.id);
    if (candidate === null || candidate.evaluation.verdict === "false") return null;
    if (candidate.episode?.id !== episode?.id || candidate.episode?.step !== episode?.step) return null;
    if (isDryRun(candidate.active) !== isDryRun(active)) return null;
    const decision = decide(candidate, facts);
    const blocker = decision.verdict === "act" ? oldSessionsBlocker(this.#context, candidate) : null;
    const confirmed = blocker === null ? decision : ({ ...decision, verdict: "hold", blockers: [blocker] } as const);
    this.decisionLog.record(confirmed);
    return confirmed.verdict === "act" ? candidate : null;
  }

  /** Decides on one node under one policy. Returns null if no step is to be taken. */
  #planStep(active: ActivePolicy, node: NodeId, facts: GuardFacts): Candidate | null {
    const candidate = buildCandidate(this.#context, active, node);
    const { name } = active.policy.rule;
    if (candidate === null || candidate.evaluation.verdict === "false") {
      this.decisionLog.forget(name, node);
      return null;
    }
    const { episode } = candidate;
    if (episode !== null && !awaitsNextStep(this.#context, episode)) return null;
    const decision = decide(candidate, facts);
    if (episode !== null) return this.#actOrHold(candidate, decision);
    // A suspended episode continues once the node is free, so no second one begins beside it.
    const { records } = this.#context.remediationState;
    const isSuspended = records.suspendedEpisode(name, node, isDryRun(active)) !== null;
    if (!isSuspended && candidate.evaluation.verdict === "true" && mayBeginEpisode(decision)) {
      const begun = this.#beginEpisode(candidate);
      return this.#actOrHold({ ...candidate, episode: begun }, { ...decision, episode: begun.id });
    }
    if (decision.verdict === "hold") this.decisionLog.record(decision);
    return null;
  }

  /** Begins an episode. The decision does not depend on it, so it stays valid. */
  #beginEpisode({ active, node }: Candidate): Episode {
    const { observed, remediationState } = this.#context;
    const { records } = remediationState;
    const now = remediationState.now();
    const createdAt = observed.createdAtOf(node.id);
    const failedBefore = isDryRun(active) ? [] : consecutiveFailures(records, node.id, active.policy.rule, now);
    const episode = {
      ...beginEpisode(active, node, records.nextId("ep"), now),
      ...(failedBefore.length === 0 ? {} : { failedBefore }),
      ...(createdAt === null ? {} : { nodeCreatedAt: createdAt }),
    };
    commitTransition(this.#context, null, episode);
    return episode;
  }

  #actOrHold(candidate: Candidate, decision: Decision): Candidate | null {
    if (decision.verdict === "act") return candidate;
    this.decisionLog.record(decision);
    const [blocker, ...others] = decision.blockers;
    if (blocker?.reason === "approval" && others.length === 0) requestApproval(this.#context, candidate);
    return null;
  }
}
