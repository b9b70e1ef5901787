import type { Steps } from "../../base/steps.ts";
import type { NodeId } from "../../model/node.ts";
import { type Action, actionName, type Decision, type Episode } from "../../model/remediation/episode.ts";
import { nextTurn, runInSlices } from "../../platform/event-loop.ts";
import type { HoldReason } from "../../policy/decision.ts";
import { decide, mayBeginEpisode } from "../../policy/decision.ts";
import { consecutiveFailures } from "../../policy/episodes/attempts.ts";
import { beginEpisode } from "../../policy/episodes/episode.ts";
import type { Candidate, GuardFacts } from "../../policy/guards/guard-types.ts";
import { type ActivePolicy, isDryRun } from "../../policy/policy.ts";
import type { EpisodeContext } from "../context.ts";
import { actionChange, commitTransition, nodeText, notifyOfEpisode } from "../execution/episode-transitions.ts";
import { hasLeft } from "../observed-fleet.ts";
import {
  approvalExpiry,
  awaitsNextStep,
  buildCandidate,
  type FactsOf,
  findCandidate,
  nextAction,
  oldSessionsBlocker,
} from "./decision-input.ts";

/** Number of candidates to decide on, and of decisions to journal, between two yields to the event loop. */
const CANDIDATES_PER_SLICE = 100;

/** Decides on every node whose timer fires, and records each decision that changed. */
export class ActionPlanner {
  readonly decisionLog: DecisionLog;
  readonly #context: EpisodeContext;
  /** Candidates of the current plan for whose next step approval must still be requested. */
  #unrequested: Candidate[] = [];

  constructor(context: EpisodeContext) {
    this.#context = context;
    this.decisionLog = new DecisionLog(context);
  }

  /**
   * Returns the candidates whose next step should be taken, starting with the node that has been unhealthy longest. Those
   * whose step failed come last ({@link hasFailed}), because another failure may delay the others or put them on hold.
   * Begins the episodes that may begin, and requests the approvals that are missing.
   */
  async plan(factsOf: FactsOf): Promise<readonly Candidate[]> {
    const { clock, policies, remediationState } = this.#context;
    const planned: Candidate[] = [];
    this.#unrequested = [];
    for (const active of policies.active()) {
      const firing = remediationState.records.firingNodes(active.policy.spec.name);
      for (let begin = 0; begin < firing.length; begin += CANDIDATES_PER_SLICE) {
        await nextTurn();
        const slice = firing.slice(begin, begin + CANDIDATES_PER_SLICE);
        const facts = factsOf(isDryRun(active));
        planned.push(
          ...remediationState.runBatched(() => slice.flatMap((node) => this.#planStep(active, node, facts) ?? [])),
        );
      }
    }
    if (this.#unrequested.length > 0) await requestApprovals(this.#context, this.#unrequested);
    await nextTurn();
    await runInSlices(this.decisionLog.forgetCleared(), clock);
    return planned.toSorted(
      (a, b) => Number(hasFailed(a)) - Number(hasFailed(b)) || (a.timer.since ?? 0) - (b.timer.since ?? 0),
    );
  }

  /**
   * Returns the candidate of a planned step if it may still be taken, and records the decision. The step is decided on
   * again, because an earlier step of the round, newer data or an operator may have changed the facts.
   */
  confirm(planned: Candidate, facts: GuardFacts): Candidate | null {
    const { active, node, episode } = planned;
    const candidate = findCandidate(this.#context, active.policy.spec.name, node.id);
    if (candidate === null || candidate.evaluation.verdict === "false") return null;
    if (candidate.episode?.id !== episode?.id || candidate.episode?.step !== episode?.step) return null;
    if (isDryRun(candidate.active) !== isDryRun(active)) return null;
    const decision = decide(candidate, facts);
    const blocker = decision.verdict === "act" ? oldSessionsBlocker(this.#context, candidate) : null;
    const confirmed = blocker === null ? decision : ({ ...decision, verdict: "hold", blockers: [blocker] } as const);
    this.decisionLog.record(confirmed);
    return confirmed.verdict === "act" ? candidate : null;
  }

  /** Decides on one node under one policy. Returns null if no step should be taken. */
  #planStep(active: ActivePolicy, node: NodeId, facts: GuardFacts): Candidate | null {
    const candidate = buildCandidate(this.#context, active, node);
    const { name } = active.policy.spec;
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
    const failedBefore = isDryRun(active) ? [] : consecutiveFailures(records, node.id, active.policy.spec, now);
    const episode = {
      ...beginEpisode(active, node, records.nextId("ep"), now),
      nodeName: observed.nameOf(node.id),
      ...(failedBefore.length === 0 ? {} : { failedBefore }),
      ...(createdAt === null ? {} : { nodeCreatedAt: createdAt }),
    };
    commitTransition(this.#context, null, episode);
    return episode;
  }

  #actOrHold(candidate: Candidate, decision: Decision<HoldReason>): Candidate | null {
    if (decision.verdict === "act") return candidate;
    this.decisionLog.record(decision);
    const [blocker, ...others] = decision.blockers;
    const isUnrequested =
      blocker?.reason === "approval" && others.length === 0 && !isRequested(this.#context, candidate);
    if (isUnrequested) this.#unrequested.push(candidate);
    return null;
  }
}

/** Returns whether the next step was tried and not executed, other than because of a 429. */
export const hasFailed = ({ episode }: Candidate): boolean => (episode?.failures ?? 0) > 0;

/** The last decision about a node under a policy. */
export interface LastDecision {
  readonly policy: string;
  readonly node: NodeId;
  readonly dryRun: boolean;
  /** Mode and verdict, with the reasons of a hold or the step of an action. A decision with another text is a change. */
  readonly text: string;
  /** Why the node is held, or empty if it is acted on. */
  readonly reasons: readonly HoldReason[];
}

/** Records each decision that differs from the last one about its node, and remembers the last ones. */
class DecisionLog {
  readonly #context: EpisodeContext;
  readonly #last = new Map<string, LastDecision>();

  constructor(context: EpisodeContext) {
    this.#context = context;
  }

  /** The last decision about each node whose timer fires. */
  lastDecisions(): IterableIterator<LastDecision> {
    return this.#last.values();
  }

  /** Counts, logs and journals a decision if it is a change. */
  record(decision: Decision<HoldReason>): void {
    const { policy, node, episode, step, verdict, blockers, mode } = decision;
    const reasons = [...new Set(blockers.map(({ reason }) => reason))];
    // Each step that is taken is a decision of its own.
    const subject = verdict === "act" ? `${episode} ${step}` : reasons.toSorted().join(" ");
    const text = `${mode} ${verdict} ${subject}`;
    const key = keyOf(policy, node);
    if (this.#last.get(key)?.text === text) return;
    this.#last.set(key, { policy, node, dryRun: mode === "dry_run", text, reasons });
    const { log, metrics, remediationState } = this.#context;
    for (const reason of verdict === "act" ? (["all_clear"] as const) : reasons)
      metrics.inc("proxywarden_decisions_total", { policy, verdict, reason });
    log.info({ policy, node, mode, verdict, reasons }, "decided");
    remediationState.record([{ kind: "decision", row: decision }]);
  }

  /** Forgets the last decision about a node, so that the next one is a change. */
  forget(policy: string, node: NodeId): void {
    this.#last.delete(keyOf(policy, node));
  }

  /** Forgets the decisions about nodes whose timer does not fire any more, in steps. */
  *forgetCleared(): Steps<void> {
    const { records } = this.#context.remediationState;
    for (const { policy, node } of this.lastDecisions()) {
      if (records.timer(policy, node).state !== "firing") this.forget(policy, node);
      yield;
    }
  }
}

const keyOf = (policy: string, node: NodeId): string => JSON.stringify([policy, node]);

const isRequested = ({ remediationState }: EpisodeContext, { episode }: Candidate): boolean =>
  remediationState.records
    .actionsOf(episode!.id)
    .some(({ step, state }) => step === episode!.step && state === "awaiting");

/**
 * Journals requests for approval of the candidates' next steps, and only then notifies about them: after a crash, another
 * action could get an id that was not journaled. If the journal can't be written, they are requested in a later round.
 */
async function requestApprovals(context: EpisodeContext, candidates: readonly Candidate[]): Promise<void> {
  const requests = candidates.map((candidate) => ({
    episode: candidate.episode!,
    action: { ...nextAction(context, candidate), state: "awaiting" } as const,
  }));
  if (!(await context.remediationState.commit(() => requests.map(({ action }) => actionChange(action))))) return;
  for (const { episode, action } of requests) {
    const summary = `${action.id}: ${actionName(action.request)} of ${nodeText(context, action.node)} by ${action.policy} waits for approval`;
    notifyOfEpisode(context, episode, { kind: "approval", severity: "warning", summary });
  }
}

/** Ends approvals, and requests for one, that have expired or that no longer apply. */
export function lapseApprovals(context: EpisodeContext): void {
  const { remediationState, log } = context;
  for (const action of remediationState.records.actions()) {
    if (action.state !== "awaiting" && action.state !== "approved") continue;
    const episode = remediationState.records.episode(action.episode);
    const reason = approvalExpiry(context, action) ?? obsoleteReason(context, action, episode);
    if (reason === null) continue;
    const endedAt = remediationState.now();
    remediationState.record([actionChange({ ...action, state: "lapsed", endedAt, detail: reason })]);
    log.info({ action: action.id, node: action.node, reason }, "approval, or the request for one, lapsed");
  }
}

/** Returns why an action that was approved, or waits for approval, no longer applies, or null if it does. */
export function obsoleteReason(context: EpisodeContext, action: Action, episode: Episode | null): string | null {
  if (episode === null || episode.closedAt !== null) return "its episode is over";
  if (episode.state === "suspended") return "its episode is suspended";
  if (episode.state !== "firing" || episode.step !== action.step) return "its step is over";
  const active = context.policies.findActive(action.policy);
  if (active === null || active.policy.fingerprint !== action.fingerprint) return "its policy was changed";
  if (active.mode !== "approve") return "its policy no longer needs approval";
  const candidate = buildCandidate(context, active, action.node);
  if (candidate === null) return hasLeft(context.observed.fleet, action.node) ? "the node is gone" : null;
  return candidate.evaluation.verdict === "false" ? "the node is no longer unhealthy" : null;
}
