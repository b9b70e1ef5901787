import { DAY_MS, type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Journal } from "../model/remediation/journal.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { type Candidate, nextStep } from "../policy/candidate.ts";
import { type GuardFacts, isDryRun } from "../policy/facts.ts";
import type { Plan } from "../scheduling/planner.ts";
import { activePolicies, createRemediationContext, findPolicy, type RemediationContextDeps } from "./context.ts";
import { recoverFromCrash } from "./crash-recovery.ts";
import { awaitsNextStep, createActionPlanner, sendNotifyStep } from "./evaluation/action-planner.ts";
import { buildCandidate, isCurrentEnough } from "./evaluation/candidates.ts";
import { detailDeadlines, thresholdsOfPolicies } from "./evaluation/detail-demand.ts";
import { createExternalBlockerCache, QUERY_INTERVAL_MS } from "./evaluation/external-blockers.ts";
import { createFleetHealth } from "./evaluation/fleet-health.ts";
import { createInventoryTrustTracker, type InventoryTrust } from "./evaluation/inventory-trust.ts";
import { createRuleEvaluator } from "./evaluation/rule-evaluator.ts";
import { createEpisodeTracker } from "./execution/episode-tracker.ts";
import { releaseRecoveredNodes, resumeEpisodeNotifications } from "./execution/episode-transitions.ts";
import { executeStep, type Recheck, recordDryRun } from "./execution/executor.ts";
import { startVerificationReads } from "./execution/verification-reads.ts";
import { createExternalActions } from "./external-actions.ts";
import { createNodeIdentities } from "./node-identity.ts";
import { createOperatorCommands } from "./operator-commands.ts";
import { bindJournalToService } from "./service-identity.ts";
import { createEpisodeGauge } from "./status/episode-gauge.ts";
import { createFleetAlerts } from "./status/fleet-alerts.ts";
import { createHoldGauges } from "./status/hold-gauges.ts";
import { createStatusView, initializeCounters, removePolicyGauges, setStatusGauges } from "./status/status-view.ts";
import type { OperatorCommands, RemediationView } from "./status/views.ts";

/** Watches over the nodes: judges, decides, acts and verifies, snapshot by snapshot. */
export interface RemediationController {
  /** Takes in what is seen now. Returns at once; rounds follow one another. */
  update(snapshot: Snapshot, plan: Plan): void;
  readonly view: RemediationView;
  readonly operatorCommands: OperatorCommands;
  /**
   * Starts nothing new, waits up to `postGraceMs` for the response to a POST in flight, then aborts it and journals it as
   * in doubt.
   */
  stop(postGraceMs: DurationMs): Promise<void>;
}

/** What a warden stands on. */
export interface RemediationControllerDeps extends RemediationContextDeps {
  readonly journal: Journal;
}

/** The journal forgets what ended so long ago. */
const JOURNAL_RETENTION_MS: DurationMs = 90 * DAY_MS;
const PRUNE_INTERVAL_MS: DurationMs = 10 * MINUTE_MS;
const POLICY_MEMORY_MS: DurationMs = 30 * DAY_MS;

/** Starts a warden: first settles what the last one left. */
export function startRemediationController(parts: RemediationControllerDeps): RemediationController {
  const context = createRemediationContext(parts);
  bindJournalToService(context);
  const { remediationState, clock, log } = context;
  const externalBlockers = createExternalBlockerCache(context.externalBlockers, clock);
  const fleetHealth = createFleetHealth(context, externalBlockers);
  const trustTracker = createInventoryTrustTracker(remediationState, () => context.rules.safety, context.inventory);
  const ruleEvaluator = createRuleEvaluator(context);
  const externalActions = createExternalActions(context);
  const episodeTracker = createEpisodeTracker(context);
  const identities = createNodeIdentities(context);
  const actionPlanner = createActionPlanner(context);
  const fleetAlerts = createFleetAlerts(context, fleetHealth);
  const episodes = createEpisodeGauge(context);
  const holds = createHoldGauges(context);
  const noNewSteps = new AbortController();
  const abort = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let isRoundRequested = false;
  let isRunning = false;
  let prunedAt = Number.NEGATIVE_INFINITY;

  context.inventory.setThresholds(thresholdsOfPolicies(context.policies));
  recoverFromCrash(context);
  initializeCounters(context);
  resumeEpisodeNotifications(context);
  const view = createStatusView({ context, fleetHealth, trustTracker, journal: parts.journal, trust: currentTrust });
  const operatorCommands = createOperatorCommands({
    context,
    fleetHealth,
    trust: trustTracker,
    onCommand: requestRound,
  });
  const verifying = startVerificationReads(context, noNewSteps.signal);

  function currentTrust(): InventoryTrust {
    if (context.view === null)
      return { blockers: [{ reason: "warming_up", detail: "nothing was seen yet" }], isUntrusted: false };
    const { snapshot, plan } = context.view;
    const trust = trustTracker.update(snapshot.fleet, {
      at: clock.monotonic(),
      freshMs: plan.nodes?.freshMs ?? 0,
      serviceTime: context.client.serviceTime,
    });
    const dispute = remediationState.clock.problem();
    if (dispute === null) return trust;
    return { ...trust, blockers: [{ reason: "service_clock", detail: dispute }, ...trust.blockers] };
  }

  /** A round is wanted: at once, or as soon as the one under way is over. */
  function requestRound(): void {
    isRoundRequested = true;
    if (isRunning || noNewSteps.signal.aborted) return;
    isRunning = true;
    running = runRounds().finally(() => {
      isRunning = false;
    });
  }

  async function runRounds(): Promise<void> {
    while (isRoundRequested && !noNewSteps.signal.aborted) {
      isRoundRequested = false;
      try {
        await runRound();
      } catch (error) {
        // A defect of ours must neither end the watching nor act: the round is left, and said with its stack.
        log.error({ err: error }, "a round of the warden broke; no node was touched by it after this");
      }
    }
  }

  async function runRound(): Promise<void> {
    if (context.view === null) return;
    remediationState.checkClock(context.client.serviceTime(clock.monotonic()));
    forgetOldPolicies();
    // Before the list was seen whole once, a node that is not there is not gone.
    if (context.view.snapshot.fleet.settledAt === null) {
      setAllGauges();
      return;
    }
    const trust = currentTrust();
    if (trust.isUntrusted) ruleEvaluator.markUntrusted();
    else {
      const replaced = identities.findReplaced();
      await ruleEvaluator.evaluate(replaced, fleetHealth.recordChanges);
      externalActions.update();
      remediationState.runBatched(() => {
        episodeTracker.update(replaced);
        releaseRecoveredNodes(context);
      });
    }
    context.inventory.setDetailDeadlines(detailDeadlines(context));
    fleetHealth.update(trust.isUntrusted);
    fleetAlerts.update(trust);
    await queryBlockers();
    const acts = await actionPlanner.planAll((dryRun) => fleetHealth.guardFacts(dryRun, trust));
    setAllGauges();
    if (acts.length > 0) {
      await executeCandidates(acts);
      setAllGauges();
    }
    prune();
  }

  function forgetOldPolicies(): void {
    if (context.keyRejection !== null && clock.monotonic() >= context.keyRejection.until) context.keyRejection = null;
    // Whatever could not be written down so far, and the time.
    remediationState.record([]);
  }

  function setAllGauges(): void {
    setStatusGauges(context, view);
    episodes.show();
    holds.show();
  }

  async function queryBlockers(): Promise<void> {
    const asking = context.policies.filter(
      ({ rule }) =>
        rule.blockedBy.length > 0 &&
        [...remediationState.records.timersOf(rule.name).values()].some(({ state }) => state === "firing"),
    );
    await Promise.all(asking.map((policy) => externalBlockers.refresh(policy, noNewSteps.signal, QUERY_INTERVAL_MS)));
  }

  async function executeCandidates(acts: readonly Candidate[]): Promise<void> {
    const facts = new Map<boolean, GuardFacts>();
    for (const candidate of acts) {
      if (noNewSteps.signal.aborted) return;
      const dryRun = isDryRun(candidate.active);
      const known = facts.get(dryRun) ?? fleetHealth.guardFacts(dryRun, currentTrust());
      facts.set(dryRun, known);
      if (nextStep(candidate)?.action !== "notify" && !isCurrentEnough(context, candidate)) continue;
      // Each act before it may have left no room for this one.
      const again = recheckWith(known)(candidate);
      if (again?.decision.verdict !== "act") continue;
      facts.delete(dryRun);
      if (nextStep(again.candidate)?.action === "notify") sendNotifyStep(context, again.candidate);
      else if (dryRun) recordDryRun(context, again.candidate);
      else
        await executeStep(context, externalBlockers, again.candidate, recheck, {
          noNewSteps: noNewSteps.signal,
          abort: abort.signal,
        });
    }
  }

  const recheck: Recheck = (candidate) => {
    if (identities.isReplaced(candidate.node.id)) return null;
    // The node has just been read afresh: others may have acted on it since the last walk.
    externalActions.update();
    return recheckWith(fleetHealth.guardFacts(isDryRun(candidate.active), currentTrust()))(candidate);
  };

  const recheckWith =
    (facts: GuardFacts): Recheck =>
    ({ active, node, approved }) => {
      const policy = findPolicy(context, active.policy.rule.name);
      const now = policy === null ? undefined : activePolicies(context).find((each) => each.policy === policy);
      const candidate = now === undefined ? null : buildCandidate(context, now, node.id);
      if (candidate === null || candidate.episode === null || !awaitsNextStep(context, candidate.episode)) return null;
      // An approval that was taken up is an intent by now, and stays an approval.
      const same = { ...candidate, approved: candidate.approved || approved };
      return { candidate: same, decision: actionPlanner.planOne(same, facts) };
    };

  function prune(): void {
    if (
      clock.monotonic() - prunedAt < PRUNE_INTERVAL_MS ||
      remediationState.journalProblem() !== null ||
      !remediationState.clock.isSettled()
    )
      return;
    prunedAt = clock.monotonic();
    try {
      parts.journal.prune(remediationState.now() - JOURNAL_RETENTION_MS);
    } catch (error) {
      log.warn({ err: error }, "the journal could not forget what is old");
    }
    remediationState.records.prune(remediationState.now() - POLICY_MEMORY_MS);
  }

  return {
    update(snapshot, plan) {
      context.view = { snapshot, plan };
      requestRound();
    },
    view,
    operatorCommands,
    async stop(postGraceMs) {
      noNewSteps.abort();
      const done = new AbortController();
      void clock.sleep(postGraceMs, done.signal).then(() => abort.abort());
      await Promise.all([running, verifying]);
      done.abort();
      removePolicyGauges(context);
      episodes.clear();
      holds.clear();
    },
  };
}
