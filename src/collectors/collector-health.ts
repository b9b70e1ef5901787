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
  /** All that the collector is to bring is there. */
  readonly complete: boolean;
  /** Why the run, or a part of it, failed; null: it succeeded. */
  readonly error: ApiError | null;
  /** Of a list: share of its records that the walk has seen. */
  readonly shownShare?: Share;
  /** Of a list: how many more records it always counts than it shows; negative: fewer. */
  readonly totalDifference?: number;
  /** Whether the failure is one node's: it is counted, and says nothing about the collector. Absent: no. */
  readonly isOfNode?: boolean;
}

/** How a collector fares, for people and for the status route. */
export interface CollectorHealth {
  readonly lastSuccessAt: EpochMs | null;
  readonly lastDurationMs: DurationMs | null;
  readonly complete: boolean;
  /** The failure that lasts; null while all is well. */
  readonly failure: ApiError | null;
}

/** Keeps the books of one collector: metrics, the log, and its state. */
export interface CollectorReporter {
  run(job: () => Promise<RunOutcome>): Promise<boolean>;
  reportRemark(remark: RecordRemark): void;
  health(): CollectorHealth;
}

/** What an account writes to. */
export interface CollectorReporterDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DaemonMetrics;
}

/** A failure that comes and goes is said again after this. */
export const LOG_REPEAT_MS: DurationMs = 10 * MINUTE_MS;

/** An account of nothing yet. */
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

  /** A failure is said when it begins, changes or ends: not once a minute for as long as it lasts. */
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
      log.info({ collector, difference }, "the list always counts more or fewer records than it shows: accepted");
    else log.info({ collector }, "the list counts the records that it shows");
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
        // A defect of ours in one collector must not take the daemon down with it: it is counted, and said with its stack.
        log.error({ collector, err: error }, "a collector broke; it goes on with its next run");
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
