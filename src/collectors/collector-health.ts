import type { RecordProblem } from "../api-client/decoding/fields.ts";
import type { ApiError } from "../api-client/errors.ts";
import { type DurationMs, MINUTE_MS, SECOND_MS } from "../base/duration.ts";
import type { Share } from "../base/percent.ts";
import type { DaemonMetrics } from "../metrics/daemon-metrics.ts";
import type { RejectReason } from "../model/label-values.ts";
import type { Clock, Log } from "../model/ports.ts";
import type { Collector } from "../model/snapshot.ts";
import type { EpochMs, MonotonicMs } from "../model/time.ts";

/** How a run of a collector went. */
export interface RunOutcome {
  /** Whether the run read everything it should. */
  readonly complete: boolean;
  /** Why the run failed, in whole or in part, or null if it succeeded. */
  readonly error: ApiError | null;
  /** For a list: share of its records that the walk has shown, 0 if it read nothing. */
  readonly shownShare?: Share;
  /** For a list: constant difference between its total and the records it shows. */
  readonly totalDifference?: number;
  /** Whether only one node failed. Then the failure is counted, but the collector is healthy. Absent means false. */
  readonly isNodeFailure?: boolean;
}

/** Health of a collector, as the status route shows it. */
export interface CollectorHealth {
  readonly lastSuccessAt: EpochMs | null;
  readonly lastDurationMs: DurationMs | null;
  readonly complete: boolean;
  /** The current failure, or null if there is none. */
  readonly failure: ApiError | null;
}

/** Health of a collector that has not run. */
export const NOT_RUN: CollectorHealth = { lastSuccessAt: null, lastDurationMs: null, complete: false, failure: null };

/** Dependencies of a reporter. */
export interface CollectorReporterDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DaemonMetrics;
}

/** Minimum time between two log lines about the same kind of failure. */
export const LOG_REPEAT_MS: DurationMs = 10 * MINUTE_MS;

const CONTRADICTION_MESSAGE = "records contradict each other";

/** Log messages about problems of records that match the API documentation. */
const PROBLEM_MESSAGES: Readonly<Partial<Record<RejectReason, string>>> = {
  older_record: CONTRADICTION_MESSAGE,
  contradicting_status: CONTRADICTION_MESSAGE,
  changing_created_at: CONTRADICTION_MESSAGE,
  usage_out_of_scale: "usage contradicts service.usage_scale",
};

/** The gauges of the last run. */
const RUN_GAUGES = [
  "proxywarden_collect_last_success_timestamp_seconds",
  "proxywarden_collect_duration_seconds",
  "proxywarden_collect_complete",
  "proxywarden_collect_completeness_ratio",
  "proxywarden_collect_last_complete_timestamp_seconds",
] as const;

/** Reports the runs of one collector in metrics and log, and keeps its health. */
export class CollectorReporter {
  readonly #collector: Collector;
  readonly #deps: CollectorReporterDeps;
  #health = NOT_RUN;
  readonly #problems = new Map<RejectReason, { readonly count: number; readonly first: RecordProblem }>();
  #previousProblems: ReadonlySet<RejectReason> = new Set();
  readonly #problemLoggedAt = new Map<RejectReason, MonotonicMs>();
  #loggedFailure: ApiError["kind"] | null = null;
  readonly #failureLoggedAt = new Map<ApiError["kind"], MonotonicMs>();
  #hasTotalDifference = false;

  constructor(collector: Collector, deps: CollectorReporterDeps) {
    this.#collector = collector;
    this.#deps = deps;
  }

  health(): CollectorHealth {
    return this.#health;
  }

  /** Forgets the last run of a collector that no longer runs. */
  reset(): void {
    const collector = this.#collector;
    for (const gauge of RUN_GAUGES) this.#deps.metrics.set(gauge, { collector }, Number.NaN);
    this.#health = NOT_RUN;
    this.#loggedFailure = null;
  }

  /** Runs the collector once and reports the run. Returns whether it succeeded. Never rejects. */
  async run(collect: () => Promise<RunOutcome>): Promise<boolean> {
    const { clock, log, metrics } = this.#deps;
    const collector = this.#collector;
    const began = clock.monotonic();
    try {
      return this.#finishRun(await collect(), clock.monotonic() - began);
    } catch (error) {
      // A bug in one collector must not stop the daemon.
      log.error({ collector, err: error }, "collector failed unexpectedly; it continues with its next run");
      metrics.inc("proxywarden_collect_failures_total", { collector, reason: "internal" });
      metrics.set("proxywarden_collect_complete", { collector }, 0);
      const failure = { kind: "internal", message: String(error) } as const;
      this.#health = { ...this.#health, complete: false, failure };
      return false;
    }
  }

  /** Counts a problem without logging it. */
  countProblem({ reason }: RecordProblem): void {
    this.#deps.metrics.inc("proxywarden_records_rejected_total", { collector: this.#collector, reason });
  }

  /** Counts a problem on a record of the current run, and logs it with the run. */
  readonly reportProblem = (problem: RecordProblem): void => {
    this.countProblem(problem);
    const { count, first } = this.#problems.get(problem.reason) ?? { count: 0, first: problem };
    this.#problems.set(problem.reason, { count: count + 1, first });
  };

  /**
   * Logs an example of the problems for each reason that the previous run did not have, unless one was logged recently.
   * A run calls it at its end.
   */
  logProblems(): void {
    const { clock, log } = this.#deps;
    for (const [reason, { count, first }] of this.#problems) {
      // Detail reads are a run each, and most of them have no problems.
      const loggedAt = this.#problemLoggedAt.get(reason) ?? Number.NEGATIVE_INFINITY;
      if (this.#previousProblems.has(reason) || clock.monotonic() - loggedAt < LOG_REPEAT_MS) continue;
      this.#problemLoggedAt.set(reason, clock.monotonic());
      const { id, detail } = first;
      const fields = { collector: this.#collector, records: count, reason, id, detail };
      log.warn(fields, PROBLEM_MESSAGES[reason] ?? "records do not match the API documentation");
    }
    this.#previousProblems = new Set(this.#problems.keys());
    this.#problems.clear();
  }

  #finishRun(outcome: RunOutcome, tookMs: DurationMs): boolean {
    const { clock, metrics } = this.#deps;
    const collector = this.#collector;
    const { complete, error, shownShare, isNodeFailure = false } = outcome;
    const now = clock.now();
    this.logProblems();
    if (error?.kind === "aborted") return false;
    if (!isNodeFailure) this.#logFailure(error);
    // A complete walk has shown enough, even if a page failed.
    const succeeded = error === null || (complete && shownShare !== undefined);
    if (succeeded) metrics.set("proxywarden_collect_last_success_timestamp_seconds", { collector }, now / SECOND_MS);
    if (error !== null) metrics.inc("proxywarden_collect_failures_total", { collector, reason: error.kind });
    metrics.set("proxywarden_collect_duration_seconds", { collector }, tookMs / SECOND_MS);
    metrics.set("proxywarden_collect_complete", { collector }, complete ? 1 : 0);
    if (shownShare !== undefined) metrics.set("proxywarden_collect_completeness_ratio", { collector }, shownShare);
    if (complete) metrics.set("proxywarden_collect_last_complete_timestamp_seconds", { collector }, now / SECOND_MS);
    this.#logTotalDifference(outcome.totalDifference);
    const lastSuccessAt = succeeded ? now : this.#health.lastSuccessAt;
    const failure = isNodeFailure ? this.#health.failure : error;
    this.#health = { lastSuccessAt, lastDurationMs: tookMs, complete, failure };
    return succeeded;
  }

  /** Logs a failure when it begins, changes or ends, not at every run. */
  #logFailure(failure: ApiError | null): void {
    const { clock, log } = this.#deps;
    const collector = this.#collector;
    if (failure === null) {
      if (this.#loggedFailure !== null) log.info({ collector, after: this.#loggedFailure }, "collector works again");
      this.#loggedFailure = null;
      return;
    }
    const { kind, message } = failure;
    const loggedAt = this.#failureLoggedAt.get(kind) ?? Number.NEGATIVE_INFINITY;
    if (kind === this.#loggedFailure || clock.monotonic() - loggedAt < LOG_REPEAT_MS) return;
    log.warn({ collector, reason: kind, problem: message }, "collector failed");
    this.#failureLoggedAt.set(kind, clock.monotonic());
    this.#loggedFailure = kind;
  }

  #logTotalDifference(difference: number | undefined): void {
    const { log } = this.#deps;
    const collector = this.#collector;
    if (difference === undefined || (difference !== 0) === this.#hasTotalDifference) return;
    this.#hasTotalDifference = difference !== 0;
    if (this.#hasTotalDifference) {
      log.info({ collector, difference }, "accepted a constant difference between the list's total and its records");
    } else log.info({ collector }, "the list's total matches its records again");
  }
}
