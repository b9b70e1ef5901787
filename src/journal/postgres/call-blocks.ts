import type { CallCounter } from "../../model/ports.ts";
import { callsSince } from "../row-queries.ts";
import type { Database } from "./database.ts";
import { type Lease, SHORT_LOCK_WAIT } from "./lease.ts";

/** Calls that are reserved at once. After a crash the rest of a block counts as used. */
export const CALL_BLOCK = 100;

/** A reservation of calls on a day. */
interface CallBlock {
  readonly day: string;
  left: number;
}

/**
 * Counts calls in blocks. A block counts as used in the database before one of its calls is made. The next block is
 * reserved when half of the current one is used, so normally no call waits for the database. Reservations are fenced by
 * the lease.
 */
export class CallBlocks implements CallCounter {
  readonly #database: Database;
  readonly #lease: Lease;
  /**
   * Calls made, by day. Those of earlier leaders include their whole blocks; ours exclude the rest of the current
   * block.
   */
  readonly #used: Map<string, number>;
  #block: CallBlock = { day: "", left: 0 };
  #reserving: Promise<void> | null = null;

  /** `used` holds the calls by day that the database had when this daemon became the leader. */
  constructor(database: Database, lease: Lease, used: ReadonlyMap<string, number>) {
    this.#database = database;
    this.#lease = lease;
    this.#used = new Map(used);
  }

  since: CallCounter["since"] = (day) => callsSince(this.#used, day);

  add: CallCounter["add"] = async (day, calls) => {
    while (this.#leftOn(day) < calls) {
      this.#reserving ??= this.#reserve(day, calls);
      await this.#reserving;
    }
    this.#block.left -= calls;
    this.#used.set(day, (this.#used.get(day) ?? 0) + calls);
    // If this fails, the next call that needs the block tries again.
    if (this.#block.left < CALL_BLOCK / 2) this.#reserving ??= this.#reserve(day, 0);
    this.#reserving?.catch(() => undefined);
  };

  /**
   * Returns the rest of the block to the database. Call it when no more calls follow. Rejects if the database can't be
   * reached.
   */
  async close(): Promise<void> {
    await this.#reserving?.catch(() => undefined);
    const { day, left } = this.#block;
    this.#block = { day: "", left: 0 };
    if (left > 0) await this.#count(day, -left);
  }

  #leftOn(day: string): number {
    return this.#block.day === day ? this.#block.left : 0;
  }

  async #reserve(day: string, calls: number): Promise<void> {
    const previous = this.#block;
    try {
      const size = Math.max(CALL_BLOCK, calls);
      await this.#count(day, size);
      this.#block = { day, left: size + this.#leftOn(day) };
    } finally {
      this.#reserving = null;
    }
    // If this fails, the rest of yesterday's block stays counted.
    if (previous.day !== day && previous.left > 0)
      await this.#count(previous.day, -previous.left).catch(() => undefined);
  }

  async #count(day: string, calls: number): Promise<void> {
    const { schema: s } = this.#database;
    const epoch = this.#lease.requireEpoch();
    const [row] = await this.#database.query(
      `WITH fence AS MATERIALIZED (SELECT FROM ${s}.leases WHERE epoch = $1 FOR SHARE)
       INSERT INTO ${s}.calls AS counted (day, used) SELECT $2, GREATEST(0, $3::bigint)
       WHERE EXISTS (SELECT FROM fence) AND ${SHORT_LOCK_WAIT}
       ON CONFLICT (day) DO UPDATE SET used = GREATEST(0, counted.used + $3::bigint) RETURNING used`,
      [epoch, day, calls],
    );
    if (row === undefined) throw this.#lease.loseLeadership();
  }
}
