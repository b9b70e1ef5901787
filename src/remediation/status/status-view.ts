import { byName } from "../../base/by-name.ts";
import { eachInSteps, type Steps } from "../../base/steps.ts";
import { EPISODE_STATES } from "../../model/label-values.ts";
import type { NodeId } from "../../model/node.ts";
import type { Blocker } from "../../model/remediation/decision.ts";
import { EXPLAINED_ROWS_MAX, type JournalQueries } from "../../model/remediation/journal.ts";
import type { EpochMs } from "../../model/time.ts";
import { findBlockers } from "../../policy/decision.ts";
import type { GuardFacts } from "../../policy/guards/guard-types.ts";
import { limitsByName } from "../../policy/guards/safety-limits.ts";
import { stormCause } from "../../policy/guards/storm-and-breaker.ts";
import { isInFlight } from "../../policy/own-actions.ts";
import { type ActivePolicy, isDryRun } from "../../policy/policy.ts";
import { presentTimer, toTimerRow } from "../../policy/timer.ts";
import type { DecisionContext } from "../context.ts";
import type { LastDecision } from "../evaluation/action-planner.ts";
import { buildCandidate, type FactsSteps, isGivenUp } from "../evaluation/decision-input.ts";
import { FleetHealth } from "../evaluation/fleet-health.ts";
import { largestWalkNodes } from "../evaluation/inventory-trust.ts";
import { readsStatus } from "../evaluation/policy-evaluator.ts";
import { ObservedFleet } from "../observed-fleet.ts";
import { pauseAt } from "../operator-holds.ts";
import { PolicySet } from "../policy-set.ts";
import { heldNodeCountOf, heldNodesOf, nodeMarksOf } from "./node-status.ts";
import type { MatchedNodes, PolicyExplanation, PolicyStatus, RemediationStatus, RemediationView } from "./views.ts";

type ViewDeps = DecisionContext & { readonly journal: JournalQueries };

/** Dependencies of the status view. */
interface StatusViewDeps {
  readonly context: ViewDeps;
  readonly fleetHealth: FleetHealth;
  /** Returns why fleet data is not trusted, or an empty list if it is. */
  trustBlockers(): readonly Blocker[];
  /** Returns why rounds don't succeed, or null if they do, or on a standby, which has none. */
  roundFailure(): string | null;
  /** Collects the facts for guards. Not called on a standby, which observes no node. */
  readonly collectFacts: FactsSteps;
  /** Returns why this daemon observes no node. Absent if it does. */
  unobserved?(): string;
  /** Returns the last decisions, or null on a standby, which decides nothing. */
  lastDecisions(): readonly LastDecision[] | null;
  /** Returns the number of nodes whose condition is unknown to a policy, or null on a standby. */
  unknownNodes(policy: string): number | null;
  /** Returns how many nodes a policy matches, or null before the first complete walk and on a standby. */
  matchedNodes(policy: string): MatchedNodes | null;
}

/** Creates the status view of remediation. */
export function createStatusView(deps: StatusViewDeps): RemediationView {
  const { context } = deps;
  const { journal } = context;
  const { records } = context.remediationState;
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
        holds: records.holdsOn(node).filter(({ until }) => until === null || until > now),
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
    heldNodes: (query) => heldNodesOf(context, deps.lastDecisions(), query),
    heldNodeCount: () => heldNodeCountOf(context, deps.lastDecisions()),
    nodeMarks: (mark) => nodeMarksOf(context, deps.lastDecisions(), mark),
  };
}

/**
 * Creates the view of a daemon that stands by, which shows what the leader has journaled. It changes nothing, and knows
 * only what was journaled about nodes. `leader` names the leader in texts.
 */
export function createStandbyView(
  deps: Pick<ViewDeps, "clock" | "journal" | "remediationState" | "config">,
  leader: () => string,
): RemediationView {
  const unobserved = () => `this daemon stands by; only the leader, ${leader()}, observes the fleet`;
  const context = {
    ...deps,
    policies: new PolicySet(deps.config, deps.remediationState.records),
    observed: new ObservedFleet({ serviceTime: () => null }),
  };
  return createStatusView({
    context,
    fleetHealth: new FleetHealth(context),
    trustBlockers: () => [{ reason: "warming_up", detail: unobserved() }],
    roundFailure: () => null,
    collectFacts: () => {
      throw new Error("a standby observes no fleet");
    },
    unobserved,
    lastDecisions: () => null,
    unknownNodes: () => null,
    matchedNodes: () => null,
  });
}

function remediationStatus({ context, fleetHealth, trustBlockers, roundFailure }: StatusViewDeps): RemediationStatus {
  const { remediationState, config, observed } = context;
  const { records } = remediationState;
  const { breaker, storm } = fleetHealth.state(false);
  return {
    mode: config.safety.mode,
    paused: pauseAt(records, remediationState.now()),
    breaker: breaker.open,
    trust: trustBlockers(),
    stormUntil: storm?.until ?? null,
    stormCause: storm && stormCause(storm),
    journal: remediationState.journalProblem(),
    roundFailure: roundFailure(),
    largestWalkNodes: largestWalkNodes(records),
    limits: limitsByName(config.safety, observed.latest?.snapshot.fleet.count ?? 0),
    inFlight: [...records.actions()].filter((action) => isInFlight(action) && !action.dryRun).length,
  };
}

function* policyStatuses({
  context: { policies, remediationState },
  unknownNodes,
  matchedNodes,
}: StatusViewDeps): Steps<readonly PolicyStatus[]> {
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
        if (isGivenUp(remediationState, name, node, dryRun)) givenUp++;
      }
    });
    const counts = { ...episodes, pending, given_up: givenUp };
    const [matched, unknown] = [matchedNodes(name), unknownNodes(name)];
    statuses.push({ ...active, matched, pending, firing, unknown, episodes: counts });
  }
  return statuses;
}

/** Explains every policy on a node, in steps. */
function* explainPolicies(deps: StatusViewDeps, node: NodeId): Steps<readonly PolicyExplanation[]> {
  const { observed, policies } = deps.context;
  const facts = new Map<boolean, GuardFacts>();
  const explained: PolicyExplanation[] = [];
  for (const active of policies.active()) {
    yield;
    const dryRun = isDryRun(active);
    // Guards are asked only about listed nodes.
    if (observed.slotOf(node) !== null && !facts.has(dryRun)) facts.set(dryRun, yield* deps.collectFacts(dryRun));
    explained.push(...explainPolicy(deps, active, node, facts.get(dryRun)));
  }
  return explained;
}

/** Explains a policy on a node. On a standby only what is recorded is known; on the leader, an unlisted node has none. */
function explainPolicy(
  { context, unobserved }: StatusViewDeps,
  active: ActivePolicy,
  node: NodeId,
  facts: GuardFacts | undefined,
): PolicyExplanation[] {
  const { records } = context.remediationState;
  const { name, forMs, steps } = active.policy.spec;
  const dryRun = isDryRun(active);
  const timer = toTimerRow(name, node, records.timer(name, node));
  const recorded = {
    policy: name,
    mode: active.mode,
    timer: timer === null ? null : presentTimer(timer),
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
  const blockers = matched === false ? [] : findBlockers(candidate, facts!);
  return [{ ...recorded, verdict, matched, unknowns, fields: fields(), blockers }];
}

function otherStatusAt({ observed, remediationState }: StatusViewDeps["context"], node: NodeId): EpochMs | null {
  const slot = observed.slotOf(node);
  const at = slot === null ? Number.NaN : observed.fleet.otherStatusAt.at(slot);
  return Number.isNaN(at) ? null : remediationState.epochOf(at);
}
