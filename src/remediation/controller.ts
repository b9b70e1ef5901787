import type { DurationMs } from "../base/duration.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Plan } from "../scheduling/planner.ts";
import { createRemediationContext, type RemediationContext, type RemediationControllerDeps } from "./context.ts";
import { recoverFromCrash } from "./crash-recovery.ts";
import { thresholdsOfPolicies } from "./evaluation/detail-demand.ts";
import { resumeEpisodeNotifications } from "./execution/episode-transitions.ts";
import { startVerificationReads } from "./execution/verification-reads.ts";
import { createOperatorCommands, type OperatorCommands } from "./operator-command-execution.ts";
import { endExpiredHolds, nextExpiryMs } from "./operator-holds.ts";
import { RemediationRound } from "./round.ts";
import { bindJournalToService } from "./service-binding.ts";
import { initializeCounters } from "./status/gauges.ts";
import type { RemediationView } from "./status/views.ts";

/** Remediates nodes. For each snapshot it evaluates policies, decides, acts and verifies. */
export class RemediationController {
  readonly view: RemediationView;
  readonly operatorCommands: OperatorCommands;
  readonly #context: RemediationContext;
  readonly #round: RemediationRound;
  readonly #noNewSteps = new AbortController();
  readonly #abortPost = new AbortController();
  readonly #verificationReads: Promise<void>;
  /** Ends the wait for the next expiry. */
  #wakeUp = new AbortController();
  #rounds: Promise<void> = Promise.resolve();
  #isRoundRequested = false;
  #isRunning = false;

  /** Starts the controller. It first settles what the last process left unfinished. */
  constructor(deps: RemediationControllerDeps) {
    const context = createRemediationContext(deps);
    bindJournalToService(context);
    this.#context = context;
    const signals = { noNewSteps: this.#noNewSteps.signal, abortPost: this.#abortPost.signal };
    this.#round = new RemediationRound(context, signals);
    context.inventory.details.setThresholds(thresholdsOfPolicies(context.policies.all));
    recoverFromCrash(context);
    initializeCounters(context);
    resumeEpisodeNotifications(context);
    const { fleetHealth, trustTracker, view } = this.#round;
    this.view = view;
    this.operatorCommands = createOperatorCommands({
      ...context,
      fleetHealth,
      trustTracker,
      stopping: signals.noNewSteps,
      onCommand: () => this.#requestRound(),
    });
    this.#rounds = this.#round.setGauges();
    this.#verificationReads = startVerificationReads(context, signals.noNewSteps);
  }

  /** Schedules a round over a new snapshot. Returns immediately. Rounds run one after another. */
  update(snapshot: Snapshot, plan: Plan): void {
    // The round that is running may not have assessed the snapshot before this one.
    if (this.#isRunning) this.#round.checkTrust();
    this.#context.observed.latest = { snapshot, plan };
    this.#requestRound();
  }

  /**
   * Starts nothing new and rejects operator commands. Waits for commands that are being journaled, and up to
   * `postGraceMs` for the response to a POST in flight, then aborts it and journals it as in doubt.
   */
  async stop(postGraceMs: DurationMs): Promise<void> {
    this.#noNewSteps.abort();
    this.#wakeUp.abort();
    const done = new AbortController();
    void this.#context.clock.sleep(postGraceMs, done.signal).then(() => this.#abortPost.abort());
    await Promise.all([this.#rounds, this.#verificationReads, this.#context.remediationState.pendingCommits()]);
    done.abort();
    this.#context.metrics.clearPolicyGauges();
  }

  /** Starts a round now, or as soon as the current one is over. */
  #requestRound(): void {
    this.#isRoundRequested = true;
    if (this.#isRunning || this.#noNewSteps.signal.aborted) return;
    this.#isRunning = true;
    this.#rounds = this.#runRounds().finally(() => {
      this.#isRunning = false;
      this.#wakeAtExpiry();
    });
  }

  /** Requests a round when the next pause or hold expires, because the next snapshot may be far away. */
  #wakeAtExpiry(): void {
    // Without a reason each round would create an exception with a stack trace.
    this.#wakeUp.abort(null);
    const expiresMs = nextExpiryMs(this.#context);
    if (expiresMs === null || this.#noNewSteps.signal.aborted) return;
    this.#wakeUp = new AbortController();
    const { signal } = this.#wakeUp;
    void this.#context.clock.sleep(expiresMs, signal).then(() => !signal.aborted && this.#requestRound());
  }

  async #runRounds(): Promise<void> {
    while (this.#isRoundRequested && !this.#noNewSteps.signal.aborted) {
      this.#isRoundRequested = false;
      try {
        endExpiredHolds(this.#context);
        if (this.#context.observed.latest !== null) await this.#round.run();
        // A command may have been accepted before the first snapshot.
        else await this.#round.setGauges();
        this.#round.health.recordSuccess();
      } catch (error) {
        // An unexpected error ends the round, but neither the daemon nor later rounds.
        this.#round.health.recordFailure(error);
      }
    }
  }
}
