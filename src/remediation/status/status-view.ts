import { byName } from "../../base/by-name.ts";
import { oncePerKey } from "../../base/once-per-key.ts";
import { eachInSteps, type Steps } from "../../base/steps.ts";
import { EPISODE_STATES } from "../../model/label-values.ts";
import type { NodeId } from "../../model/node.ts";
import { EXPLAINED_ROWS_MAX, type JournalQueries } from "../../model/remediation/journal.ts";
import type { EpochMs } from "../../model/time.ts";
import { findBlockers } from "../../policy/decision.ts";
import { isGivenUp, isInFlight } from "../../policy/episodes/attempts.ts";
import { findFiringNodes } from "../../policy/fleet-counts.ts";
import { limitsByName } from "../../policy/guards/safety-limits.ts";
import { stormCause } from "../../policy/guards/storm-and-breaker.ts";
import { type ActivePolicy, isDryRun } from "../../policy/policy.ts";
import { presentTimer, toTimerRow } from "../../policy/timer.ts";
import type { DecisionContext } from "../context.ts";
import { buildCandidate, type FactsOf } from "../evaluation/decision-input.ts";
import type { FleetHealth } from "../evaluation/fleet-health.ts";
import { largestWalkNodes } from "../evaluation/inventory-trust.ts";
import { readsStatus } from "../evaluation/policy-evaluator.ts";
import type { ApiKeyStatus } from "../execution/api-key-status.ts";
import { holdsAt, pauseAt } from "../operator-holds.ts";
import type { RemediationRound } from "../round.ts";
import { heldNodeCountOf, heldNodesOf, nodeMarksOf } from "./node-status.ts";
import type { PolicyExplanation, PolicyStatus, RemediationStatus, RemediationView } from "./views.ts";

type ViewDeps = DecisionContext & {
  readonly journal: JournalQueries;
  /** Absent on a standby, which sends no actions. */
  readonly apiKey?: ApiKeyStatus;
};

/** Dependencies of the status view. */
interface StatusViewDeps {
  readonly context: ViewDeps;
  readonly fleetHealth: FleetHealth;
  /** What the leader observes and decides, or null on a standby, which observes and decides nothing. */
  readonly leader: RemediationRound | null;
  /** Returns why a standby observes no node. Absent on the leader. */
  unobserved?(): string;
}

/** Creates the status view of remediation. */
export function createStatusView(deps: StatusViewDeps): RemediationView {
  const { context, leader } = deps;
  const { journal } = context;
  const { records } = context.remediationState;
  const lastDecisions = () => leader && [...leader.actionPlanner.decisionLog.lastDecisions()];
  return {
    status: () => remediationStatus(deps),
    policyNames: () => context.policies.all.map(({ spec }) => spec.name),
    policies: () => policyStatuses(deps),
    *explain(node) {
      const policies = yield* explainPolicies(deps, node);
      const now = context.remediationState.now();
      return {
        node,
        known: context.observed.slotOf(node) !== null,
        at: now,
        policies,
        // The row of a policy stays after its release, because attempts are counted from there.
        holds: holdsAt(records.holdsOn(node), now),
      };
    },
    async historyOf(node, until) {
      const query = { node, limit: EXPLAINED_ROWS_MAX, ...(until === undefined ? {} : { until }) };
      const [episodes, actions, decisions, operatorCommands] = await Promise.all([
        journal.episodes(query),
        journal.actions(query),
        journal.decisions(query),
        journal.operatorCommands(query),
      ]);
      return { episodes, actions, decisions, operatorCommands };
    },
    decisions: journal.decisions,
    actions: journal.actions,
    operatorCommands: journal.operatorCommands,
    approvals: (state = "awaiting") =>
      [...records.actions()]
        .filter((action) => action.state === state)
        .map((action) => ({
          ...action,
          expiresAt: (action.approvedAt ?? action.createdAt) + context.config.safety.approvalTtlMs,
        })),
    heldNodes: (query) => heldNodesOf(context, lastDecisions(), query),
    heldNodeCount: () => heldNodeCountOf(context, lastDecisions()),
    nodeMarks: (mark) => nodeMarksOf(context, lastDecisions(), mark),
  };
}

function remediationStatus({ context, fleetHealth, leader, unobserved }: StatusViewDeps): RemediationStatus {
  const { remediationState, config, observed } = context;
  const { records } = remediationState;
  const { breaker, storm } = fleetHealth.state(false);
  const isFleetRead = observed.latest !== null && observed.fleet.walkedAt !== null;
  return {
    mode: config.safety.mode,
    paused: pauseAt(records, remediationState.now()),
    breaker: breaker.open,
    trust: leader?.trustTracker.current().blockers ?? [{ reason: "warming_up", detail: unobserved!() }],
    stormUntil: storm?.until ?? null,
    stormCause: storm && stormCause(storm),
    journal: remediationState.journalProblem(),
    credentials: context.apiKey?.holdReason() ?? null,
    roundFailure: leader?.health.failure() ?? null,
    largestWalkNodes: largestWalkNodes(records),
    // The first snapshots may show a fleet of which nothing was read yet.
    limits: isFleetRead ? limitsByName(config.safety, observed.fleet.count) : null,
    approvalTtlMs: config.safety.approvalTtlMs,
    inFlight: [...records.actions()].filter((action) => isInFlight(action) && !action.dryRun).length,
  };
}

function* policyStatuses({ context, leader }: StatusViewDeps): Steps<readonly PolicyStatus[]> {
  const { policies, remediationState } = context;
  const { records } = remediationState;
  const statuses: PolicyStatus[] = [];
  const counted = policies.active().map((active) => ({
    active,
    dryRun: isDryRun(active),
    episodes: byName<string, number>(EPISODE_STATES, () => 0),
  }));
  const byPolicy = new Map(counted.map((each) => [each.active.policy.spec.name, each]));
  yield* eachInSteps(records.openEpisodes(), ({ policy, dryRun, state }) => {
    const counts = byPolicy.get(policy);
    if (counts?.dryRun === dryRun) counts.episodes[state]!++;
  });
  for (const { active, dryRun, episodes } of counted) {
    const { name } = active.policy.spec;
    let [pending, firing, givenUp] = [0, 0, 0];
    yield* eachInSteps(records.timersOf(name), ([node, { state }]) => {
      if (state !== "firing") pending++;
      else {
        firing++;
        if (isGivenUp(records, name, node, dryRun)) givenUp++;
      }
    });
    statuses.push({
      ...active,
      matched: leader?.policyEvaluator.matchedNodes(name) ?? null,
      pending,
      firing,
      unknown: leader?.policyEvaluator.unknownNodes(name) ?? null,
      episodes: { ...episodes, pending, given_up: givenUp },
    });
  }
  return statuses;
}

/** Explains every policy on a node, in steps. */
function* explainPolicies(deps: StatusViewDeps, node: NodeId): Steps<readonly PolicyExplanation[]> {
  const { observed, policies, remediationState } = deps.context;
  // Found in steps here, so that the counts of the fleet don't block the event loop.
  if (observed.latest !== null) yield* findFiringNodes(observed.fleet, remediationState.records, policies.active());
  const factsOf = oncePerKey((dryRun: boolean) => deps.leader!.collectFacts(dryRun));
  const explained: PolicyExplanation[] = [];
  for (const active of policies.active()) {
    yield;
    explained.push(...explainPolicy(deps, active, node, factsOf));
  }
  return explained;
}

/**
 * Explains a policy on a node. On a standby only what is recorded is known. Returns an empty list if the node is not
 * listed or, on a standby, if nothing is recorded about it.
 */
function explainPolicy(
  { context, unobserved }: StatusViewDeps,
  active: ActivePolicy,
  node: NodeId,
  factsOf: FactsOf,
): PolicyExplanation[] {
  const { records } = context.remediationState;
  const { name, forMs, steps } = active.policy.spec;
  const dryRun = isDryRun(active);
  const timer = toTimerRow(name, node, records.timer(name, node));
  const recorded = {
    policy: name,
    mode: active.mode,
    timer: timer && presentTimer(timer),
    otherStatusAt: readsStatus(active.policy) ? otherStatusAt(context, node) : null,
    forMs,
    steps,
    episode: records.episodeUnder(name, node, dryRun),
  };
  const candidate = buildCandidate(context, active, node);
  if (candidate === null) {
    if (unobserved === undefined || (timer === null && recorded.episode === null)) return [];
    const unknowns = [{ field: "the node", why: unobserved() }];
    return [{ ...recorded, verdict: "unknown", matched: null, unknowns, fields: {}, blockers: [] }];
  }
  const { verdict, matched, unknowns, fields } = candidate.evaluation;
  const blockers = matched === false ? [] : findBlockers(candidate, factsOf(dryRun));
  return [{ ...recorded, verdict, matched, unknowns, fields: fields(), blockers }];
}

function otherStatusAt({ observed, remediationState }: StatusViewDeps["context"], node: NodeId): EpochMs | null {
  const slot = observed.slotOf(node);
  const at = slot === null ? Number.NaN : observed.fleet.otherStatusAt.at(slot);
  return Number.isNaN(at) ? null : remediationState.epochOf(at);
}
