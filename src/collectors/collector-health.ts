import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { WardenMetrics } from "../metrics/daemon-metrics.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { Collector } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";
import type { ServiceError } from "../api-client/errors.ts";
import type { Remark } from "../api-client/decoding/records.ts";

/** How a run of a collector went. */
export interface Outcome {
  /** All that the collector is to bring is there. */
  readonly complete: boolean;
  /** Why the run, or a part of it, failed; null: it succeeded. */
  readonly error: ServiceError | null;
  /** Of a list: share of its records that the walk has seen. */
  readonly shown?: Share;
  /** Of a list: how many more records it always counts than it shows; negative: fewer. */
  readonly difference?: number;
  /** Whether the failure is one node's: it is counted, and says nothing about the collector. Absent: no. */
  readonly isOfNode?: boolean;
}

/** How a collector fares, for people and for the status route. */
export interface CollectorState {
  readonly lastSuccessAt: EpochMs | null;
  readonly lastDurationMs: DurationMs | null;
  readonly complete: boolean;
  /** The failure that lasts; null while all is well. */
  readonly failure: ServiceError | null;
}

/** Keeps the books of one collector: metrics, the log, and its state. */
export interface Account {
  run(job: () => Promise<Outcome>): Promise<boolean>;
  remark(remark: Remark): void;
  state(): CollectorState;
}

/** What an account writes to. */
export interface AccountParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: WardenMetrics;
}

/** A failure that comes and goes is said again after this. */
export const SAY_AGAIN_MS: DurationMs = 10 * MINUTE_MS;

/** An account of nothing yet. */
export function createAccount(collector: Collector, { clock, log, metrics }: AccountParts): Account {
  let state: CollectorState = { lastSuccessAt: null, lastDurationMs: null, complete: false, failure: null };
  let remarks: { count: number; first: Remark } | null = null;
  let remarked = false;
  let remarkedAt: MonotonicMs = Number.NEGATIVE_INFINITY;
  let saying: ServiceError["kind"] | null = null;
  const saidAt = new Map<ServiceError["kind"], MonotonicMs>();
  let differs = false;

  /** A failure is said when it begins, changes or ends: not once a minute for as long as it lasts. */
  function say(failure: ServiceError | null): void {
    const now = clock.monotonic();
    if (failure === null) {
      if (saying !== null) log.info({ collector, after: saying }, "collecting works again");
      saying = null;
    } else if (
      failure.kind !== saying &&
      now - (saidAt.get(failure.kind) ?? Number.NEGATIVE_INFINITY) >= SAY_AGAIN_MS
    ) {
      log.warn({ collector, reason: failure.kind, problem: failure.message }, "collecting fails");
      saidAt.set(failure.kind, now);
      saying = failure.kind;
    }
  }

  function sayRemarks(): void {
    // Detail reads are a run each, and most of them have no remarks.
    if (remarks !== null && !remarked && clock.monotonic() - remarkedAt >= SAY_AGAIN_MS) {
      remarkedAt = clock.monotonic();
      const { reason, id, detail } = remarks.first;
      log.warn({ collector, records: remarks.count, reason, id, detail }, "records are not as the spec says");
    }
    remarked = remarks !== null;
    remarks = null;
  }

  function measure({ complete, shown, ...outcome }: Outcome): void {
    metrics.set("proxywarden_collect_complete", { collector }, complete ? 1 : 0);
    if (shown !== undefined) metrics.set("proxywarden_collect_completeness_ratio", { collector }, shown);
    if (complete) {
      metrics.set("proxywarden_collect_last_complete_timestamp_seconds", { collector }, clock.now() / SECOND_MS);
    }
    const { difference } = outcome;
    if (difference === undefined || (difference !== 0) === differs) return;
    differs = difference !== 0;
    if (differs)
      log.info({ collector, difference }, "the list always counts more or fewer records than it shows: accepted");
    else log.info({ collector }, "the list counts the records that it shows");
  }

  function close(outcome: Outcome, tookMs: DurationMs): boolean {
    const { complete, error, isOfNode = false } = outcome;
    sayRemarks();
    if (error?.kind === "aborted") return false;
    if (!isOfNode) say(error);
    if (error === null) {
      metrics.set("proxywarden_collect_last_success_timestamp_seconds", { collector }, clock.now() / SECOND_MS);
    } else {
      metrics.inc("proxywarden_collect_failures_total", { collector, reason: error.kind });
    }
    metrics.set("proxywarden_collect_duration_seconds", { collector }, tookMs / SECOND_MS);
    measure(outcome);
    const lastSuccessAt = error === null ? clock.now() : state.lastSuccessAt;
    state = { lastSuccessAt, lastDurationMs: tookMs, complete, failure: isOfNode ? state.failure : error };
    return error === null;
  }

  return {
    async run(job) {
      const began = clock.monotonic();
      try {
        return close(await job(), clock.monotonic() - began);
      } catch (error) {
        // A defect of ours in one collector must not take the daemon down with it: it is counted, and said with its stack.
        log.error({ collector, err: error }, "a collector broke; it goes on with its next run");
        metrics.inc("proxywarden_collect_failures_total", { collector, reason: "internal" });
        metrics.set("proxywarden_collect_complete", { collector }, 0);
        state = { ...state, complete: false, failure: { kind: "internal", message: String(error) } };
        return false;
      }
    },
    remark(remark) {
      metrics.inc("proxywarden_records_rejected_total", { collector, reason: remark.reason });
      remarks = remarks === null ? { count: 1, first: remark } : { ...remarks, count: remarks.count + 1 };
    },
    state: () => state,
  };
}
