import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import type { Clock, LeaseHolder, Lease as LeasePort } from "../../model/ports.ts";
import type { MonotonicMs } from "../../model/time.ts";
import { unusableVersionFailure } from "../open-failure.ts";
import type { Database } from "./database.ts";
import { named, VERSIONS } from "./migrations.ts";

/** Dependencies of a lease. */
interface LeaseDeps {
  readonly database: Database;
  /** Name of this daemon's instance. It need not be unique. */
  readonly holder: string;
  readonly url: string | null;
  readonly leaseMs: DurationMs;
  readonly clock: Clock;
  /**
   * Called before each attempt to acquire the lease. The attempt fails if it rejects. Absent if the schema is current.
   */
  prepare?(): Promise<void>;
}

/** Thrown if this daemon does not lead, or no longer leads. */
export class LeadershipLost extends Error {}

/**
 * Condition that makes a statement, which has locked the lease, fail after it has waited a second for a row that
 * another client has locked. Otherwise renewals, which wait for this statement, would fail until the lease has ended.
 */
export const SHORT_LOCK_WAIT = "set_config('lock_timeout', '1s', true) IS NOT NULL";

/**
 * Twice the longest lease that `config/schema/config.ts` accepts. A lease that ends later shows that the database's
 * clock was set back. It is taken, since its leader may be gone.
 */
const LEASE_MS_MAX: DurationMs = 10 * MINUTE_MS;

/** SQL for the database's clock in milliseconds. */
const NOW_MS = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint";

/** Number of attempts to renew the lease during its duration. Each may take the time until the next one. */
const ATTEMPTS_PER_LEASE = 3;

/**
 * The lease of the leader. Times are those of the database's clock. This daemon's deadline is measured on its monotonic
 * clock from before it sent its last renewal, so it passes before the lease ends. The epoch fences commits (see
 * `journal.ts`). It is the time of the acquisition in milliseconds, or one more than the last epoch if that is greater,
 * so that none is used twice, even if an earlier state of the database is restored.
 *
 *     standby ── acquire ──▶ leader ── deadline passed ──▶ expired ── renew ──▶ leader
 *        ▲                     └───── deposed, released ──────┴──────────────────▶ standby
 */
export class Lease implements LeasePort {
  readonly #deps: LeaseDeps;
  #epoch: number | null = null;
  #deadline: MonotonicMs = Number.NEGATIVE_INFINITY;

  constructor(deps: LeaseDeps) {
    this.#deps = deps;
  }

  epoch(): number | null {
    return this.#epoch;
  }

  /** Like {@link Lease.epoch}. Throws {@link LeadershipLost} if this daemon does not lead. */
  requireEpoch(): number {
    if (this.#epoch === null) throw new LeadershipLost("this daemon does not lead");
    return this.#epoch;
  }

  isLeader(): boolean {
    return this.leftMs() > 0;
  }

  leftMs(): DurationMs {
    return this.#epoch === null ? 0 : Math.max(0, this.#deadline - this.#deps.clock.monotonic());
  }

  async acquire(): Promise<boolean> {
    const { database, holder, url, leaseMs } = this.#deps;
    await this.#deps.prepare?.();
    const sentAt = this.#deps.clock.monotonic();
    const { schema: s } = database;
    const [row] = await database.query(
      `WITH taken AS (
         INSERT INTO ${s}.leases AS held (holder, url, epoch, expires_at)
         SELECT $1, $2, ${NOW_MS}, clock_timestamp() + $3 * interval '1 millisecond'
         FROM ${s}.schema_version WHERE version <= $4
         ON CONFLICT (id) DO UPDATE
           SET holder = excluded.holder, url = excluded.url, epoch = GREATEST(held.epoch + 1, excluded.epoch),
             expires_at = excluded.expires_at
           WHERE held.expires_at NOT BETWEEN clock_timestamp() AND clock_timestamp() + $5 * interval '1 millisecond'
         RETURNING epoch
       )
       SELECT (SELECT epoch FROM taken) AS epoch, version,
         EXISTS (SELECT FROM ${s}.leases WHERE expires_at > clock_timestamp()) AS held
       FROM ${s}.schema_version`,
      [holder, url, leaseMs, VERSIONS.last, LEASE_MS_MAX],
      this.#timeoutMs(),
    );
    if (row!.epoch === null) {
      const problem =
        row!.held === true ? null : unusableVersionFailure(named(database), Number(row!.version), VERSIONS);
      if (problem !== null) throw new Error(problem.message);
      return false;
    }
    this.#epoch = Number(row!.epoch);
    this.#deadline = sentAt + leaseMs;
    return true;
  }

  /**
   * Renews the lease. Rejects with {@link LeadershipLost} if this daemon does not lead, or if another one has taken the
   * lease.
   */
  async renew(): Promise<void> {
    const { database, leaseMs, clock } = this.#deps;
    const epoch = this.requireEpoch();
    const sentAt = clock.monotonic();
    const [row] = await database.query(
      `UPDATE ${database.schema}.leases SET expires_at = clock_timestamp() + $2 * interval '1 millisecond'
       WHERE epoch = $1 RETURNING epoch`,
      [epoch, leaseMs],
      this.#timeoutMs(),
    );
    if (row === undefined) throw this.loseLeadership();
    if (this.#epoch === epoch) this.#deadline = Math.max(this.#deadline, sentAt + leaseMs);
  }

  /** Ends this daemon's leadership, because another daemon leads. Returns the error to throw. */
  loseLeadership(): LeadershipLost {
    this.#epoch = null;
    return new LeadershipLost("another daemon has become the leader");
  }

  async release(): Promise<void> {
    const { database } = this.#deps;
    const epoch = this.#epoch;
    this.#epoch = null;
    if (epoch === null) return;
    const sql = `UPDATE ${database.schema}.leases SET expires_at = '-infinity' WHERE epoch = $1`;
    await database.query(sql, [epoch], this.#timeoutMs());
  }

  async current(): Promise<LeaseHolder | null> {
    const { database } = this.#deps;
    const [row] = await database.query(
      `SELECT holder, url, epoch,
         GREATEST(0, EXTRACT(EPOCH FROM (GREATEST(expires_at, '1970-01-01') - clock_timestamp())) * 1000)::float8 AS left_ms
       FROM ${database.schema}.leases`,
    );
    if (row === undefined) return null;
    const url = row.url === null ? null : String(row.url);
    return { holder: String(row.holder), url, epoch: Number(row.epoch), leftMs: Number(row.left_ms) };
  }

  /** Returns the timeout of a statement on the lease. */
  #timeoutMs(): DurationMs {
    return this.#deps.leaseMs / ATTEMPTS_PER_LEASE;
  }
}
