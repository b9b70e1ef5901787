import type { FactStore, Log } from "../../model/ports.ts";
import { type Database, toJsonText } from "./database.ts";
import type { Lease } from "./lease.ts";

/** Facts in memory. The last value of each key is written to the database, one flush at a time. */
export class FactImage implements FactStore {
  readonly #database: Database;
  readonly #lease: Lease;
  readonly #log: Log;
  readonly #facts: Map<string, string>;
  readonly #unwritten = new Map<string, string>();
  #flushing: Promise<void> | null = null;
  #isFailing = false;

  /** `facts` are those that the database had when this daemon became the leader. */
  constructor(database: Database, lease: Lease, facts: ReadonlyMap<string, string>, log: Log) {
    this.#database = database;
    this.#lease = lease;
    this.#log = log;
    this.#facts = new Map(facts);
  }

  read: FactStore["read"] = (key) => this.#facts.get(key) ?? null;

  write: FactStore["write"] = (key, value) => {
    this.#facts.set(key, value);
    this.#unwritten.set(key, value);
    void this.flush();
  };

  /** Adopts facts that a commit of the journal has written. Null means that the fact was deleted. */
  adopt(facts: ReadonlyMap<string, string | null>): void {
    for (const [key, value] of facts) {
      if (value === null) this.#facts.delete(key);
      else this.#facts.set(key, value);
    }
  }

  /**
   * Writes what is still to be written. Never rejects. Facts that could not be written are written by the next flush.
   */
  async flush(): Promise<void> {
    this.#flushing ??= this.#writeAll().finally(() => {
      this.#flushing = null;
    });
    await this.#flushing;
  }

  async #writeAll(): Promise<void> {
    while (this.#unwritten.size > 0) {
      const facts = [...this.#unwritten].map(([key, value]) => ({ key, value }));
      this.#unwritten.clear();
      try {
        await this.#write(facts);
        this.#isFailing = false;
      } catch (error) {
        for (const { key, value } of facts) if (!this.#unwritten.has(key)) this.#unwritten.set(key, value);
        if (!this.#isFailing) this.#log.error({ err: error }, "facts not stored; they are kept in memory");
        this.#isFailing = true;
        return;
      }
    }
  }

  async #write(facts: readonly object[]): Promise<void> {
    const { schema: s } = this.#database;
    const epoch = this.#lease.requireEpoch();
    const [row] = await this.#database.query(
      `WITH fence AS MATERIALIZED (SELECT FROM ${s}.leases WHERE epoch = $1 FOR SHARE), facts_put AS (
         INSERT INTO ${s}.facts (key, value)
         SELECT r.* FROM jsonb_to_recordset($2::jsonb) AS r(key text, value text) WHERE EXISTS (SELECT FROM fence)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value)
       SELECT EXISTS (SELECT FROM fence) AS fenced`,
      [epoch, toJsonText(facts)],
    );
    if (row?.fenced !== true) throw this.#lease.depose();
  }
}
