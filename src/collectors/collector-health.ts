import type { RecordRemark } from "../api-client/decoding/records.ts";
import type { ApiError } from "../api-client/errors.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { Collector } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** How a run of a collector went. */
export interface RunOutcome {
  /** Whether the run brought everything it was to bring. */
  readonly complete: boolean;
  /** Why the run, or part of it, failed; null: it succeeded. */
  readonly error: ApiError | null;
  /** For a list: share of its records that the walk has seen. */
  readonly shownShare?: Share;
  /** For a list: constant difference between its total and the records it shows. */
  readonly totalDifference?: number;
  /** Whether the failure concerns one node only: it is counted, but the collector is healthy. Absent: false. */
  readonly isOfNode?: boolean;
}

/** Health of a collector, as the status route shows it. */
export interface CollectorHealth {
  readonly lastSuccessAt: EpochMs | null;
  readonly lastDurationMs: DurationMs | null;
  readonly complete: boolean;
  /** The current failure; null: none. */
  readonly failure: ApiError | null;
}

/** Reports the runs of one collector to metrics and log, and keeps its health. */
export interface CollectorReporter {
  run(job: () => Promise<RunOutcome>): Promise<boolean>;
  reportRemark(remark: RecordRemark): void;
  health(): CollectorHealth;
}

/** Dependencies of a reporter. */
export interface CollectorReporterDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DaemonMetrics;
}

/** Minimum time between two log lines about the same kind of failure. */
export const LOG_REPEAT_MS: DurationMs = 10 * MINUTE_MS;

/** Creates the reporter of a collector that has not run yet. */
export function createCollectorReporter(
  collector: Collector,
  { clock, log, metrics }: CollectorReporterDeps,
): CollectorReporter {
  let state: CollectorHealth = { lastSuccessAt: null, lastDurationMs: null, complete: false, failure: null };
  let remarks: { count: number; first: RecordRemark } | null = null;
  let remarkedCount = false;
  let remarkedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  let loggedFailure: ApiError["kind"] | null = null;
  const loggedAt = new Map<ApiError["kind"], MonotonicMs>();
  let isDifferent = false;

  /** Logs a failure when it begins, changes or ends, not at every run. */
  function logFailure(failure: ApiError | null): void {
    const now = clock.monotonic();
    if (failure === null) {
      if (loggedFailure !== null) log.info({ collector, after: loggedFailure }, "collecting works again");
      loggedFailure = null;
    } else if (
      failure.kind !== loggedFailure &&
      now - (loggedAt.get(failure.kind) ?? Number.NEGATIVE_INFINITY) >= LOG_REPEAT_MS
    ) {
      log.warn({ collector, reason: failure.kind, problem: failure.message }, "collecting fails");
      loggedAt.set(failure.kind, now);
      loggedFailure = failure.kind;
    }
  }

  function logRemarks(): void {
    // Detail reads are a run each, and most of them have no remarks.
    if (remarks !== null && !remarkedCount && clock.monotonic() - remarkedAt >= LOG_REPEAT_MS) {
      remarkedAt = clock.monotonic();
      const { reason, id, detail } = remarks.first;
      log.warn({ collector, records: remarks.count, reason, id, detail }, "records are not as the spec says");
    }
    remarkedCount = remarks !== null;
    remarks = null;
  }

  function setGauges({ complete, shownShare: shown, ...outcome }: RunOutcome): void {
    metrics.set("proxywarden_collect_complete", { collector }, complete ? 1 : 0);
    if (shown !== undefined) metrics.set("proxywarden_collect_completeness_ratio", { collector }, shown);
    if (complete) {
      metrics.set("proxywarden_collect_last_complete_timestamp_seconds", { collector }, clock.now() / SECOND_MS);
    }
    const { totalDifference: difference } = outcome;
    if (difference === undefined || (difference !== 0) === isDifferent) return;
    isDifferent = difference !== 0;
    if (isDifferent)
      log.info({ collector, difference }, "constant difference between the list's total and its records accepted");
    else log.info({ collector }, "the list's total matches its records again");
  }

  function finishRun(outcome: RunOutcome, tookMs: DurationMs): boolean {
    const { complete, error, isOfNode = false } = outcome;
    logRemarks();
    if (error?.kind === "aborted") return false;
    if (!isOfNode) logFailure(error);
    if (error === null) {
      metrics.set("proxywarden_collect_last_success_timestamp_seconds", { collector }, clock.now() / SECOND_MS);
    } else {
      metrics.inc("proxywarden_collect_failures_total", { collector, reason: error.kind });
    }
    metrics.set("proxywarden_collect_duration_seconds", { collector }, tookMs / SECOND_MS);
    setGauges(outcome);
    const lastSuccessAt = error === null ? clock.now() : state.lastSuccessAt;
    state = { lastSuccessAt, lastDurationMs: tookMs, complete, failure: isOfNode ? state.failure : error };
    return error === null;
  }

  return {
    async run(job) {
      const began = clock.monotonic();
      try {
        return finishRun(await job(), clock.monotonic() - began);
      } catch (error) {
        // A bug in one collector must not stop the daemon: it is counted, and logged with its stack.
        log.error({ collector, err: error }, "collector failed unexpectedly; it continues with its next run");
        metrics.inc("proxywarden_collect_failures_total", { collector, reason: "internal" });
        metrics.set("proxywarden_collect_complete", { collector }, 0);
        state = { ...state, complete: false, failure: { kind: "internal", message: String(error) } };
        return false;
      }
    },
    reportRemark(remark) {
      metrics.inc("proxywarden_records_rejected_total", { collector, reason: remark.reason });
      remarks = remarks === null ? { count: 1, first: remark } : { ...remarks, count: remarks.count + 1 };
    },
    health: () => state,
  };
}
