import type { DurationMs } from "../../base/duration.ts";
import { ok, type Result } from "../../base/result.ts";
import type { StateStore } from "../../model/ports.ts";
import { errorMessage, type StoreFailure, storeFailure } from "../open-failure.ts";
import { CallBlocks } from "./call-blocks.ts";
import { type Database, type DatabaseDeps, openDatabase } from "./database.ts";
import { FactImage } from "./fact-image.ts";
import { PostgresJournal, READ_SNAPSHOT } from "./journal.ts";
import { Lease } from "./lease.ts";
import { migrate } from "./migrations.ts";
import { createRowQueries } from "./row-queries.ts";

/** What opening a store needs. */
export interface PostgresStoreDeps extends DatabaseDeps {
  readonly leaseMs: DurationMs;
  /** Name of this daemon's instance. */
  readonly holder: string;
  /** Where this daemon's web server is reached; null: not known. */
  readonly publicUrl: string | null;
  /** Ends the wait for leadership. */
  readonly stop: AbortSignal;
}

/** The store of a leader. */
export interface PostgresStateStore extends StateStore {
  readonly lease: Lease;
}

/** Opens the database and migrates its schema. The error says what is wrong with the URL, the database or the schema. */
export async function openMigratedDatabase(deps: DatabaseDeps): Promise<Result<Database, StoreFailure>> {
  const opened = openDatabase(deps);
  if (!opened.ok) return storeFailure("unusable", `the URL of the database can't be used: ${opened.error}`);
  const database = opened.value;
  try {
    const migrated = await migrate(database);
    if (migrated.ok) return ok(database);
    await database.close();
    return migrated;
  } catch (error) {
    await database.close();
    return storeFailure("unusable", errorMessage(error));
  }
}

/** Opens the store, and waits until this daemon leads. It renews the lease until it is closed. */
export async function openPostgresStore(deps: PostgresStoreDeps): Promise<Result<PostgresStateStore, StoreFailure>> {
  const database = await openMigratedDatabase(deps);
  if (!database.ok) return database;
  const { holder, publicUrl: url, leaseMs, clock, log, stop } = deps;
  const lease = new Lease({ database: database.value, holder, url, leaseMs, clock, log });
  if (!(await lease.waitForLeadership(stop))) {
    await database.value.close();
    return storeFailure("unusable", "the daemon was stopped before it became the leader");
  }
  const renewals = new AbortController();
  const renewing = lease.keep(renewals.signal).then((isDeposed) => {
    if (isDeposed) log.error({}, "another daemon has become the leader");
  });
  try {
    const store = await createLeaderStore(database.value, lease, deps);
    return ok({
      ...store,
      lease,
      async close() {
        renewals.abort();
        await renewing;
        await store.close();
        await database.value.close();
      },
    });
  } catch (error) {
    renewals.abort();
    await database.value.close();
    return storeFailure("unusable", errorMessage(error));
  }
}

/**
 * Creates the store of the leader: `lease` must have been acquired. Loads facts and call counts. `close` writes what is left, gives
 * unused calls back and releases the lease, but leaves the database open. Rejects if the database can't be reached.
 */
export async function createLeaderStore(
  database: Database,
  lease: Lease,
  { log }: Pick<PostgresStoreDeps, "log">,
): Promise<StateStore> {
  const { facts, calls } = await database.transaction(async (connection) => {
    const queries = createRowQueries(connection, database.schema);
    return { facts: await queries.allFacts(), calls: await queries.calls() };
  }, READ_SNAPSHOT);
  const factImage = new FactImage(database, lease, facts, log);
  const callBlocks = new CallBlocks(database, lease, calls);
  let closing: Promise<void> | null = null;
  async function close(): Promise<void> {
    const warn = (problem: string) => (error: unknown) => log.warn({ err: error }, problem);
    await factImage.flush();
    await callBlocks.close().catch(warn("unused calls not given back; they count as used"));
    await lease.release().catch(warn("lease not released; another daemon can take over once it has ended"));
  }
  return {
    calls: callBlocks,
    facts: factImage,
    journal: new PostgresJournal(database, lease, (changed) => factImage.adopt(changed)),
    close() {
      closing ??= close();
      return closing;
    },
  };
}
