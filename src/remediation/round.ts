import { DAY_MS, type DurationMs, MINUTE_MS } from "../base/duration.ts";
import { oncePerKey } from "../base/once-per-key.ts";
import type { TrustAssessment } from "../inventory/trust.ts";
import type { Action } from "../model/remediation/episode.ts";
import type { MonotonicMs } from "../model/time.ts";
import { nextTurn, runInSlices } from "../platform/event-loop.ts";
import { precondition } from "../policy/decision.ts";
import { findFiringNodes } from "../policy/fleet-counts.ts";
import { type Candidate, nextStep } from "../policy/guards/guard-types.ts";
import { isDryRun } from "../policy/policy.ts";
import type { RemediationContext } from "./context.ts";
import { ActionPlanner, hasFailed, lapseApprovals } from "./evaluation/action-planner.ts";
import {
  approvalExpiry,
  buildCandidate,
  createGuardFacts,
  type FactsOf,
  nextAction,
  oldSessionsBlocker,
} from "./evaluation/decision-input.ts";
import { detailDeadlines } from "./evaluation/detail-demand.ts";
import { QUERY_INTERVAL_MS } from "./evaluation/external-blockers.ts";
import { FleetHealth } from "./evaluation/fleet-health.ts";
import { InventoryTrustTracker } from "./evaluation/inventory-trust.ts";
import { PolicyEvaluator } from "./evaluation/policy-evaluator.ts";
import { EpisodeTracker } from "./execution/episode-tracker.ts";
import { releaseRecoveredNodes } from "./execution/episode-transitions.ts";
import { type ExecutionSignals, executeAction, recordDryRun, sendNotifyStep } from "./execution/executor.ts";
import { ExternalActions } from "./external-actions.ts";
import { findReplacedNodes, forgetReplacedNode, isReplacedNode } from "./replaced-nodes.ts";
import { EPISODE_MEMORY_MS } from "./state/journaled-state.ts";
import { createFleetAlerts } from "./status/fleet-alerts.ts";
import { setGauges } from "./status/gauges.ts";
import { RoundHealth } from "./status/round-health.ts";
import { createStatusView } from "./status/status-view.ts";
import type { RemediationView } from "./status/views.ts";

/** Rows of the journal are deleted this long after they ended. */
const JOURNAL_RETENTION_MS: DurationMs = 90 * DAY_MS;
const PRUNE_INTERVAL_MS: DurationMs = 10 * MINUTE_MS;
/** Number of open episodes to update between two yields to the event loop. */
const EPISODES_PER_SLICE = 1_000;
/** Number of planned steps to decide on again between two yields to the event loop. */
const STEPS_PER_TURN = 100;

/**
 * One round over the latest snapshot. It evaluates the policies, and plans and takes steps. Rounds must not overlap.
 */
export class RemediationRound {
  readonly fleetHealth: FleetHealth;
  readonly trustTracker: InventoryTrustTracker;
  readonly health: RoundHealth;
  readonly view: RemediationView;
  readonly collectFacts: FactsOf;
  readonly policyEvaluator: PolicyEvaluator;
  readonly actionPlanner: ActionPlanner;
  readonly #context: RemediationContext;
  readonly #signals: ExecutionSignals;
  readonly #episodeTracker: EpisodeTracker;
  readonly #externalActions: ExternalActions;
  readonly #sendFleetAlerts: (trust: TrustAssessment) => void;
  /** Sequence number of the snapshot that was assessed last. */
  #assessed = 0;
  #prunedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  /** Whether a snapshot since the last assessment was not trusted. */
  #hasBeenUntrusted = false;

  constructor(context: RemediationContext, signals: ExecutionSignals) {
    this.#context = context;
    this.#signals = signals;
    this.fleetHealth = new FleetHealth(context);
    this.trustTracker = new InventoryTrustTracker(context);
    this.health = new RoundHealth(context);
    this.collectFacts = createGuardFacts(context, this.fleetHealth, this.trustTracker);
    this.actionPlanner = new ActionPlanner(context);
    this.policyEvaluator = new PolicyEvaluator(context, this.fleetHealth);
    this.view = createStatusView({ context, fleetHealth: this.fleetHealth, leader: this });
    this.#episodeTracker = new EpisodeTracker(context);
    this.#externalActions = new ExternalActions(context);
    this.#sendFleetAlerts = createFleetAlerts(context, this.fleetHealth);
  }

  /** Records whether the last snapshot is trusted; if not, a cooldown follows. Call before a newer one replaces it. */
  checkTrust(): void {
    this.#hasBeenUntrusted ||= this.trustTracker.current().isUntrusted;
  }

  /** Runs the round, and sets the gauges of remediation. */
  async run(): Promise<void> {
    // Copying the snapshot has already taken a part of this turn of the event loop.
    await nextTurn();
    await this.#assess();
    // Before the first complete walk, a node that is not listed may still exist.
    if (this.#context.observed.fleet.settledAt === null) {
      await this.setGauges();
      return;
    }
    await this.#queryExternalBlockers();
    const steps = await this.actionPlanner.plan(oncePerKey(this.collectFacts));
    await this.setGauges();
    if (steps.length > 0) {
      await this.#takeSteps(steps);
      await this.setGauges();
    }
    this.#prune();
  }

  /** Brings everything that decisions depend on up to date with the latest snapshot. */
  async #assess(): Promise<void> {
    const { client, clock, inventory, observed, policies, remediationState } = this.#context;
    this.#assessed = observed.latest!.snapshot.sequence;
    // The journal's clock never goes back, so it must not follow a single wrong Date.
    const clockAdvance = await remediationState.checkClock(() =>
      client.serviceTimeAgreedAt() !== null ? client.serviceTime(clock.monotonic()) : null,
    );
    if (clockAdvance !== null) this.fleetHealth.followClock(clockAdvance);
    // Journals the time, and what could not be journaled before.
    remediationState.record([]);
    await nextTurn();
    if (observed.fleet.settledAt === null) {
      const trust = this.trustTracker.current();
      // Conditions in the journal may have ended, so alerts about them are sent only if the first complete walk is
      // late.
      if (trust.isUntrusted) this.#sendFleetAlerts(trust);
      return;
    }
    const wasUntrusted = this.trustTracker.current().isUntrusted;
    const hasBeenUntrusted = wasUntrusted || this.#hasBeenUntrusted;
    this.#hasBeenUntrusted = false;
    if (hasBeenUntrusted) await this.policyEvaluator.markUntrusted();
    if (!wasUntrusted) await this.#evaluate();
    // Found in slices here, so that the counts below don't block the event loop.
    await runInSlices(findFiringNodes(observed.fleet, remediationState.records, policies.active()), clock);
    await nextTurn();
    inventory.setDetailDeadlines(detailDeadlines(this.#context));
    // A newer snapshot may have arrived in the meantime.
    const trust = this.trustTracker.current();
    this.fleetHealth.update(wasUntrusted || trust.isUntrusted);
    this.#sendFleetAlerts(trust);
    remediationState.runBatched(() => lapseApprovals(this.#context));
  }

  /** Brings timers and episodes up to date with the snapshot. */
  async #evaluate(): Promise<void> {
    const replaced = await runInSlices(
      findReplacedNodes(this.#context, this.#context.detailReporter),
      this.#context.clock,
    );
    await this.policyEvaluator.evaluate(replaced);
    await nextTurn();
    await this.#externalActions.detect();
    const { remediationState } = this.#context;
    remediationState.runBatched(() => {
      for (const node of replaced) forgetReplacedNode(this.#context, node);
      remediationState.identities.replaced = new Set();
    });
    await this.#updateEpisodes();
  }

  /** Brings episodes up to date, in slices, as long as the snapshot is trusted: a newer one may arrive in the meantime. */
  async #updateEpisodes(): Promise<void> {
    const { clock, remediationState } = this.#context;
    const ids = remediationState.records.openEpisodes().map(({ id }) => id);
    for (let begin = 0; begin < ids.length; begin += EPISODES_PER_SLICE) {
      if (begin > 0) await nextTurn();
      if (this.trustTracker.current().isUntrusted) return;
      const slice = ids.slice(begin, begin + EPISODES_PER_SLICE);
      remediationState.runBatched(() => this.#episodeTracker.update(slice));
    }
    await runInSlices(this.#episodeTracker.forgetClosed(), clock);
    if (this.trustTracker.current().isUntrusted) return;
    remediationState.runBatched(() => releaseRecoveredNodes(this.#context));
  }

  /** Sets the gauges of remediation. They don't need a snapshot. */
  setGauges(): Promise<void> {
    const lastDecisions = this.actionPlanner.decisionLog.lastDecisions();
    return runInSlices(setGauges(this.#context, this.view, lastDecisions), this.#context.clock);
  }

  /** Runs the `blocked_by` queries of policies with firing nodes. */
  async #queryExternalBlockers(): Promise<void> {
    const { externalBlockerCache, policies, remediationState } = this.#context;
    await Promise.all(
      policies.all
        .filter(({ spec }) => spec.blockedBy.length > 0 && remediationState.records.firingNodes(spec.name).length > 0)
        .map((policy) => externalBlockerCache.refresh(policy, this.#signals.noNewSteps, QUERY_INTERVAL_MS)),
    );
  }

  /** Takes planned steps one after another. Each is decided on again, because the ones before it may take minutes. */
  async #takeSteps(steps: readonly Candidate[]): Promise<void> {
    let factsOf = oncePerKey(this.collectFacts);
    for (const [index, planned] of steps.entries()) {
      // Most steps of a mass event may be held by now, and deciding on them takes long.
      if (index % STEPS_PER_TURN === STEPS_PER_TURN - 1) {
        await nextTurn();
        factsOf = oncePerKey(this.collectFacts);
      }
      if (this.#signals.noNewSteps.aborted) return;
      // A step may wait for minutes, and newer data may show a storm, or that a node has recovered.
      if (this.#context.observed.latest!.snapshot.sequence !== this.#assessed) {
        // The remaining steps have failed before, perhaps because reads of their nodes hang. The next round takes new
        // steps first.
        if (index > 0 && hasFailed(planned)) return;
        await this.#assess();
        factsOf = oncePerKey(this.collectFacts);
        if (this.#signals.noNewSteps.aborted) return;
      }
      const isNotify = nextStep(planned)?.action === "notify";
      const dryRun = isDryRun(planned.active);
      const candidate = this.actionPlanner.confirm(planned, factsOf(dryRun));
      if (candidate === null) continue;
      // The step changes the facts, so the next step is decided on with new ones.
      factsOf = oncePerKey(this.collectFacts);
      if (isNotify) {
        sendNotifyStep(this.#context, candidate);
        await nextTurn();
        continue;
      }
      const action = nextAction(this.#context, candidate);
      if (dryRun) {
        recordDryRun(this.#context, action);
        await nextTurn();
      } else await executeAction(this.#context, action, () => this.#preconditionOf(action), this.#signals);
    }
  }

  /** Returns why the action must not be sent according to what is known now, or null if it may be sent. */
  #preconditionOf(action: Action): string | null {
    if (isReplacedNode(this.#context, action.node)) return "the id belongs to another node";
    const expiry = action.approvedAt === undefined ? null : approvalExpiry(this.#context, action);
    if (expiry !== null) return expiry;
    // The node has just been read, and others may have acted on it since the last walk.
    this.#externalActions.detectOn(action.node);
    const active = this.#context.policies.findActive(action.policy)!;
    const candidate = buildCandidate(this.#context, active, action.node);
    const problem = precondition(action, candidate, this.collectFacts(action.dryRun));
    const blocker = candidate === null ? null : oldSessionsBlocker(this.#context, candidate);
    return problem ?? (blocker === null ? null : `${blocker.reason}: ${blocker.detail}`);
  }

  #prune(): void {
    const { clock, journal, log, remediationState } = this.#context;
    const isDue = clock.monotonic() - this.#prunedAt >= PRUNE_INTERVAL_MS;
    if (!isDue || remediationState.journalProblem() !== null || !remediationState.clock.isSettled()) return;
    this.#prunedAt = clock.monotonic();
    // This is not waited for, since nothing depends on it.
    journal
      .prune(remediationState.now() - JOURNAL_RETENTION_MS)
      .catch((error: unknown) => log.warn({ err: error }, "journal prune failed"));
    remediationState.records.prune(remediationState.now() - EPISODE_MEMORY_MS);
  }
}
