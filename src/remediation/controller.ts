import { DAY_MS, type DurationMs, MINUTE_MS } from "../base/duration.ts";
import type { Action } from "../model/remediation/episode.ts";
import type { Journal } from "../model/remediation/journal.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { precondition } from "../policy/decision.ts";
import { type GuardFacts, isDryRun } from "../policy/facts.ts";
import { nextStep } from "../policy/guards/guard.ts";
import type { Plan } from "../scheduling/planner.ts";
import { createRemediationContext, type RemediationContextDeps } from "./context.ts";
import { recoverFromCrash } from "./crash-recovery.ts";
import { createActionPlanner, type PlannedStep } from "./evaluation/action-planner.ts";
import { isCurrentEnough } from "./evaluation/candidates.ts";
import { detailDeadlines, thresholdsOfPolicies } from "./evaluation/detail-demand.ts";
import { createExternalBlockerCache, QUERY_INTERVAL_MS } from "./evaluation/external-blockers.ts";
import { createFleetHealth } from "./evaluation/fleet-health.ts";
import { createInventoryTrustTracker, type InventoryTrust } from "./evaluation/inventory-trust.ts";
import { createRuleEvaluator } from "./evaluation/rule-evaluator.ts";
import { EpisodeTracker } from "./execution/episode-tracker.ts";
import { releaseRecoveredNodes, resumeEpisodeNotifications } from "./execution/episode-transitions.ts";
import { executeAction, recordDryRun, sendNotifyStep } from "./execution/executor.ts";
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

/** Remediates nodes: for each snapshot it evaluates policies, decides, acts and verifies. */
export interface RemediationController {
  /** Schedules a round over a new snapshot. Returns at once; rounds run one after another. */
  update(snapshot: Snapshot, plan: Plan): void;
  readonly view: RemediationView;
  readonly operatorCommands: OperatorCommands;
  /**
   * Starts nothing new, waits up to `postGraceMs` for the response to a POST in flight, then aborts it and journals it as
   * in doubt.
   */
  stop(postGraceMs: DurationMs): Promise<void>;
}

/** Dependencies of the controller. */
export interface RemediationControllerDeps extends RemediationContextDeps {
  readonly journal: Journal;
}

/** Rows of the journal are deleted this long after they ended. */
const JOURNAL_RETENTION_MS: DurationMs = 90 * DAY_MS;
const PRUNE_INTERVAL_MS: DurationMs = 10 * MINUTE_MS;
const POLICY_MEMORY_MS: DurationMs = 30 * DAY_MS;

/** Starts a controller. It first settles what the last process left under way. */
export function startRemediationController(parts: RemediationControllerDeps): RemediationController {
  const context = createRemediationContext(parts);
  bindJournalToService(context);
  const { remediationState, clock, log } = context;
  const externalBlockers = createExternalBlockerCache(context.externalBlockers, clock);
  const fleetHealth = createFleetHealth(context, externalBlockers);
  const trustTracker = createInventoryTrustTracker(remediationState, () => context.rules.safety, context.inventory);
  const ruleEvaluator = createRuleEvaluator(context);
  const detectExternalActions = createExternalActions(context);
  const episodeTracker = new EpisodeTracker(context);
  const identities = createNodeIdentities(context);
  const actionPlanner = createActionPlanner(context);
  const sendFleetAlerts = createFleetAlerts(context, fleetHealth);
  const episodes = createEpisodeGauge(context);
  const holds = createHoldGauges(context, actionPlanner.lastDecisions);
  const noNewSteps = new AbortController();
  const abort = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let isRoundRequested = false;
  let isRunning = false;
  let prunedAt = Number.NEGATIVE_INFINITY;

  context.inventory.setThresholds(thresholdsOfPolicies(context.policies.all));
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
    if (context.observed.latest === null)
      return { blockers: [{ reason: "warming_up", detail: "there is no snapshot yet" }], isUntrusted: false };
    const { snapshot, plan } = context.observed.latest;
    const trust = trustTracker.update(snapshot.fleet, {
      at: clock.monotonic(),
      freshMs: plan.nodes?.freshMs ?? 0,
      serviceTime: context.client.serviceTime,
    });
    const dispute = remediationState.clock.problem();
    if (dispute === null) return trust;
    return { ...trust, blockers: [{ reason: "service_clock", detail: dispute }, ...trust.blockers] };
  }

  /** Starts a round now, or as soon as the current one is over. */
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
        // An unexpected error ends the round, and neither the daemon nor later rounds.
        log.error({ err: error }, "remediation round failed; no further action was taken in it");
      }
    }
  }

  async function runRound(): Promise<void> {
    if (context.observed.latest === null) return;
    remediationState.checkClock(context.client.serviceTime(clock.monotonic()));
    // Writes the time, and what could not be written before.
    remediationState.record([]);
    // Before the first complete walk a node that is not listed is not gone.
    if (context.observed.latest.snapshot.fleet.settledAt === null) {
      setAllGauges();
      return;
    }
    const trust = currentTrust();
    if (trust.isUntrusted) ruleEvaluator.markUntrusted();
    else {
      const replaced = identities.findReplaced();
      await ruleEvaluator.evaluate(replaced, fleetHealth.recordChanges);
      detectExternalActions();
      remediationState.runBatched(() => {
        episodeTracker.update(replaced);
        releaseRecoveredNodes(context);
      });
    }
    context.inventory.setDetailDeadlines(detailDeadlines(context));
    fleetHealth.update(trust.isUntrusted);
    sendFleetAlerts(trust);
    await queryBlockers();
    const facts = createFactsCache();
    const steps = await actionPlanner.plan(facts.of);
    setAllGauges();
    if (steps.length > 0) {
      await takeSteps(steps, facts);
      setAllGauges();
    }
    prune();
  }

  function setAllGauges(): void {
    setStatusGauges(context, view);
    episodes.show();
    holds.show();
  }

  async function queryBlockers(): Promise<void> {
    const asking = context.policies.all.filter(
      ({ rule }) =>
        rule.blockedBy.length > 0 &&
        [...remediationState.records.timersOf(rule.name).values()].some(({ state }) => state === "firing"),
    );
    await Promise.all(asking.map((policy) => externalBlockers.refresh(policy, noNewSteps.signal, QUERY_INTERVAL_MS)));
  }

  /** Facts of the moment, computed once for real actions and once for dry runs until a step changes them. */
  function createFactsCache() {
    const facts = new Map<boolean, GuardFacts>();
    return {
      of(dryRun: boolean): GuardFacts {
        const known = facts.get(dryRun) ?? fleetHealth.guardFacts(dryRun, currentTrust());
        facts.set(dryRun, known);
        return known;
      },
      clear: () => facts.clear(),
    };
  }

  async function takeSteps(steps: readonly PlannedStep[], facts: ReturnType<typeof createFactsCache>): Promise<void> {
    for (const step of steps) {
      if (noNewSteps.signal.aborted) return;
      const dryRun = isDryRun(step.candidate.active);
      const isNotify = nextStep(step.candidate)?.action === "notify";
      if (!isNotify && !isCurrentEnough(context, step.candidate)) continue;
      const candidate = actionPlanner.confirm(step, facts.of(dryRun));
      if (candidate === null) continue;
      facts.clear();
      if (isNotify) sendNotifyStep(context, candidate);
      else if (dryRun) recordDryRun(context, actionPlanner.actionOf(candidate));
      else
        await executeAction(context, externalBlockers, actionPlanner.actionOf(candidate), checkPrecondition, {
          noNewSteps: noNewSteps.signal,
          abort: abort.signal,
        });
    }
  }

  function checkPrecondition(action: Action): string | null {
    if (identities.isReplaced(action.node)) return "the node is gone";
    // The node has just been read: others may have acted on it since the last walk.
    detectExternalActions();
    const candidate = actionPlanner.candidateOf(action.policy, action.node);
    return precondition(action, candidate, fleetHealth.guardFacts(action.shadow, currentTrust()));
  }

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
      log.warn({ err: error }, "journal prune failed");
    }
    remediationState.records.prune(remediationState.now() - POLICY_MEMORY_MS);
  }

  return {
    update(snapshot, plan) {
      context.observed.latest = { snapshot, plan };
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
