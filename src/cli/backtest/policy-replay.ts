import type { Inventory } from "../../inventory/inventory.ts";
import { createMemoryStateStore } from "../../journal/sqlite/store.ts";
import { createDaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { Clock, ExternalBlockers, StateStore } from "../../model/ports.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { EpochMs } from "../../model/time.ts";
import { createNotifier } from "../../notify/notifier.ts";
import { createFailureLog } from "../../platform/log.ts";
import { createRemediationContext, type RemediationContext, type RemediationRules } from "../../remediation/context.ts";
import { RemediationRound } from "../../remediation/round.ts";
import { openRemediationState } from "../../remediation/state/journaled-state.ts";
import type { ReplayedPoint } from "./replayed-fleet.ts";

/** The time of a replay, which is set from outside. */
export class ReplayClock implements Clock {
  readonly #startMs: EpochMs;
  #nowMs: EpochMs;

  constructor(startMs: EpochMs) {
    this.#startMs = startMs;
    this.#nowMs = startMs;
  }

  set(at: EpochMs): void {
    this.#nowMs = at;
  }

  now(): EpochMs {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs - this.#startMs;
  }

  sleep(): Promise<void> {
    return Promise.resolve();
  }

  /** The service's clock, which is assumed to be exact: the history does not show its offset. */
  readonly serviceTime = (at: number): EpochMs => this.#startMs + at;
}

/** Dependencies of a replay. */
export interface PolicyReplayDeps {
  readonly rules: RemediationRules;
  readonly clock: ReplayClock;
  readonly inventory: Inventory;
  readonly externalBlockers: ExternalBlockers;
  /** Called with each decision. */
  onDecision(decision: Decision): void;
}

/**
 * The daemon's remediation over the fleet of a replay, as a dry run: everything is evaluated, guarded and decided as
 * usual, and steps are verified by what the history shows afterwards. Nothing is sent or kept.
 */
export class PolicyReplay {
  readonly #context: RemediationContext;
  readonly #round: RemediationRound;
  readonly #log: ReturnType<typeof createFailureLog>;
  readonly #store: StateStore;

  private constructor(context: RemediationContext, log: ReturnType<typeof createFailureLog>, store: StateStore) {
    const never = new AbortController().signal;
    this.#context = context;
    this.#round = new RemediationRound(context, { noNewSteps: never, abortPost: never });
    this.#log = log;
    this.#store = store;
  }

  static async start({
    rules,
    clock,
    inventory,
    externalBlockers,
    onDecision,
  }: PolicyReplayDeps): Promise<PolicyReplay> {
    const log = createFailureLog();
    const metrics = createDaemonMetrics({ process: false });
    const store = createMemoryStateStore();
    // Nothing reads the rows again.
    const journal = { ...store.journal, commit: () => Promise.resolve() };
    const remediationState = await openRemediationState({
      ...{ journal, clock, log, lostReason: null },
      onChange(changes) {
        for (const change of changes) if (change.kind === "decision") onDecision(change.row);
      },
    });
    const noCall = () => Promise.reject(new Error("a replay must not call the service"));
    const context = createRemediationContext({
      ...{ remediationState, journal, inventory, externalBlockers, clock, metrics, log },
      rules: { ...rules, safety: { ...rules.safety, mode: "dry_run" } },
      serviceUrl: "",
      client: { get: noCall, post: noCall, serviceTime: clock.serviceTime, clockSkewMs: () => 0 },
      notifier: createNotifier({ receivers: [], clock, random: () => 0, log }),
      onRead() {},
    });
    return new PolicyReplay(context, log, store);
  }

  /** Runs a round. Throws the first exception that was logged. */
  async run(point: ReplayedPoint): Promise<void> {
    this.#context.observed.latest = point;
    await this.#round.run();
    if (this.#log.defect.found !== null) throw this.#log.defect.found;
  }

  close(): void {
    this.#store.close();
  }
}
