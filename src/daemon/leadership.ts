import { type DurationMs, SECOND_MS } from "../base/duration.ts";
import type { Clock, Lease, LeaseHolder, Log } from "../model/ports.ts";
import { FailureState } from "../platform/log.ts";

/** Dependencies of {@link Leadership}. */
interface LeadershipDeps {
  readonly lease: Lease;
  /** `state.postgres.lease`. */
  readonly leaseMs: DurationMs;
  readonly clock: Clock;
  readonly log: Log;
  /** Makes this daemon lead. If it rejects, the lease is released. */
  onElected(): Promise<void>;
  /** Makes this daemon stand by. Also called after {@link onElected} rejected. Must not reject. */
  onLeadershipLost(): Promise<void>;
}

/** Wait between two attempts to acquire the lease. */
const ACQUIRE_INTERVAL_MS: DurationMs = SECOND_MS;
/** Number of renewals per duration of the lease. */
const RENEWALS_PER_LEASE = 3;
/** Wait after a renewal that failed. */
const RETRY_INTERVAL_MS: DurationMs = SECOND_MS;

/**
 * Acquires the lease and renews it.
 *
 *     standby ── acquired ──▶ leader ── deadline passed ──▶ expired
 *        ▲                     │  ▲                          │  │
 *        │                     │  └───────── renewed ────────┘  │
 *        └────── deposed ──────┴────────────────────────────────┘
 *
 * An expired leader neither polls nor acts (see {@link Lease.isLeader}). It keeps what it knows, because it remains the
 * leader if no other daemon has taken the lease.
 */
export class Leadership {
  readonly #deps: LeadershipDeps;
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #leader: LeaseHolder | null = null;
  readonly #acquisitions = new FailureState();
  /** Whether this daemon could not lead although it had the lease. Reset when another daemon leads. */
  #elections = new FailureState();

  constructor(deps: LeadershipDeps) {
    this.#deps = deps;
  }

  /** Returns the leader as far as this daemon knows, or the last one, or null if unknown. */
  leader(): LeaseHolder | null {
    return this.#leader;
  }

  /** Starts trying to acquire the lease. */
  start(): void {
    this.#running = this.#run();
  }

  /** Stops acquiring and renewing the lease. The lease of a leader is not released. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, log, onLeadershipLost } = this.#deps;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      if (await this.#acquire()) {
        // The lease was acquired while this daemon was stopping.
        if (signal.aborted) return this.#release();
        const kept = this.#keep();
        const hasLed = await this.#lead();
        await kept;
        if (signal.aborted) return;
        if (hasLed) log.warn({}, "no longer the leader");
        await onLeadershipLost();
      }
      await clock.sleep(ACQUIRE_INTERVAL_MS, signal);
    }
  }

  async #acquire(): Promise<boolean> {
    const { lease, log } = this.#deps;
    const before = this.#leader?.epoch ?? null;
    try {
      const isAcquired = await lease.acquire();
      this.#leader = await lease.current();
      this.#acquisitions.succeeded(log, {}, "requests for the lease succeed again");
      const { holder, epoch } = this.#leader ?? { holder: null, epoch: null };
      if (!isAcquired && epoch !== before) {
        log.info({ leader: holder, epoch }, "another daemon leads; standing by");
        this.#elections = new FailureState();
      }
      return isAcquired;
    } catch (error) {
      if (lease.epoch() !== null) {
        // The lease has been acquired, and only reading its holder failed.
        this.#leader = null;
        return true;
      }
      this.#acquisitions.failed(log, { err: error }, "lease not acquired; trying again");
      return false;
    }
  }

  /** Makes this daemon lead, or releases the lease if it can't. Returns whether it leads. */
  async #lead(): Promise<boolean> {
    const { lease, log, onElected } = this.#deps;
    const fields = { epoch: lease.epoch() };
    if (!this.#elections.isFailing) log.info(fields, "elected leader");
    try {
      await onElected();
      this.#elections.succeeded(log, fields, "elected leader");
      return true;
    } catch (error) {
      const message = "this daemon can't lead and releases the lease; trying again";
      this.#elections.failed(log, { err: error }, message, "error");
      await this.#release();
      return false;
    }
  }

  async #release(): Promise<void> {
    const { lease, log } = this.#deps;
    await lease.release().catch((error: unknown) => log.warn({ err: error }, "lease not released"));
  }

  /** Renews the lease until this daemon stops or does not hold it any more. */
  async #keep(): Promise<void> {
    const { clock, lease, leaseMs, log } = this.#deps;
    const { signal } = this.#stop;
    const renewals = new FailureState();
    while (lease.epoch() !== null) {
      await clock.sleep(renewals.isFailing ? RETRY_INTERVAL_MS : leaseMs / RENEWALS_PER_LEASE, signal);
      if (signal.aborted || lease.epoch() === null) return;
      try {
        await lease.renew();
        renewals.succeeded(log, {}, "lease renewals succeed again");
      } catch (error) {
        if (lease.epoch() === null) return;
        renewals.failed(log, { err: error, left_ms: Math.round(lease.leftMs()) }, "lease not renewed; trying again");
      }
    }
  }
}
