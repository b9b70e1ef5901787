import { type DurationMs, formatDuration, MINUTE_MS, SECOND_MS } from "../../base/duration.ts";
import { errorMessage } from "../../base/result.ts";
import type { MonotonicMs } from "../../model/time.ts";
import type { RemediationControllerDeps } from "../context.ts";

/**
 * Maximum time without a round that succeeded before this is shown as a failure. A round whose steps wait for a slow
 * service takes minutes. The alert ProxywardenRemediationStalled has the same threshold.
 */
const ROUND_MS_MAX: DurationMs = 15 * MINUTE_MS;

type RoundHealthDeps = Pick<RemediationControllerDeps, "clock" | "log" | "metrics">;

/** Tracks whether rounds of remediation succeed. No node is healed while they don't. */
export class RoundHealth {
  readonly #deps: RoundHealthDeps;
  #succeededAt: MonotonicMs = 0;
  /** The error of the last round, or null if it succeeded. */
  #error: string | null = null;

  /** The start counts as a success, so that rounds that fail from the beginning are noticed as well. */
  constructor(deps: RoundHealthDeps) {
    this.#deps = deps;
    this.recordSuccess();
  }

  recordSuccess(): void {
    const { clock, metrics } = this.#deps;
    this.#succeededAt = clock.monotonic();
    this.#error = null;
    metrics.set("proxywarden_remediation_last_success_timestamp_seconds", {}, clock.now() / SECOND_MS);
  }

  recordFailure(error: unknown): void {
    this.#error = errorMessage(error);
    this.#deps.log.error({ err: error }, "remediation round failed; no further action was taken in it");
  }

  /** Returns why no node is healed, or null if the last round succeeded and is not too long ago. */
  failure(): string | null {
    const elapsedMs = this.#deps.clock.monotonic() - this.#succeededAt;
    if (this.#error === null && elapsedMs <= ROUND_MS_MAX) return null;
    const elapsed = formatDuration(Math.round(elapsedMs / SECOND_MS) * SECOND_MS);
    return `no remediation round has succeeded for ${elapsed}: ${this.#error ?? "the current one has not ended"}`;
  }
}
