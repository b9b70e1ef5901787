import { CollectorReporter } from "../../collectors/collector-health.ts";
import type { Inventory } from "../../inventory/inventory.ts";
import { createMemoryStateStore } from "../../journal/sqlite/store.ts";
import { createDaemonMetrics } from "../../metrics/daemon-metrics.ts";
import type { ExternalBlockers } from "../../model/ports.ts";
import type { Decision } from "../../model/remediation/decision.ts";
import type { EpochMs, MonotonicMs } from "../../model/time.ts";
import { createNotifier } from "../../notify/notifier.ts";
import { createFailureLog } from "../../platform/log.ts";
import { createRemediationContext, type RemediationRules } from "../../remediation/context.ts";
import { RemediationRound } from "../../remediation/round.ts";
import { openRemediationState } from "../../remediation/state/journaled-state.ts";
import type { ReplayedPoint } from "./replayed-fleet.ts";

/** The time of a replay, which is set from outside. */
export type ReplayClock = ReturnType<typeof createReplayClock>;

/** Creates the clock of a replay that begins at `startMs`. */
export function createReplayClock(startMs: EpochMs) {
  let nowMs = startMs;
  return {
    set(at: EpochMs): void {
      nowMs = at;
    },
    now: () => nowMs,
    monotonic: () => nowMs - startMs,
    sleep: () => Promise.resolve(),
    /** The service's clock, which is assumed to be exact: the history does not show its offset. */
    serviceTime: (at: MonotonicMs): EpochMs => startMs + at,
  };
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
 * Starts the daemon's remediation over the fleet of a replay, as a dry run: everything is evaluated, guarded and decided
 * as usual, and steps are verified by what the history shows afterwards. Nothing is sent or kept.
 */
export async function startPolicyReplay(deps: PolicyReplayDeps) {
  const { rules, clock, inventory, externalBlockers, onDecision } = deps;
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
    detailReporter: new CollectorReporter("details", { clock, log, metrics }),
    client: { get: noCall, post: noCall, serviceTime: clock.serviceTime, clockSkewMs: () => 0 },
    notifier: createNotifier({ receivers: [], clock, random: () => 0, log }),
    onRead() {},
  });
  const never = new AbortController().signal;
  const round = new RemediationRound(context, { noNewSteps: never, abortPost: never });
  return {
    /** Runs a round. Throws the first exception that was logged. */
    async run(point: ReplayedPoint): Promise<void> {
      context.observed.latest = point;
      await round.run();
      if (log.defect.found !== null) throw log.defect.found;
    },
    close: () => store.close(),
  };
}
