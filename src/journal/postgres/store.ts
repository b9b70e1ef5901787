import type { DurationMs } from "../../base/duration.ts";
import { errorMessage, ok, type Result } from "../../base/result.ts";
import type { StateStore } from "../../model/ports.ts";
import type { SharedState } from "../../model/shared-state.ts";
import { type StoreFailure, storeFailure } from "../open-failure.ts";
import { createRowQueries } from "../row-queries.ts";
import { CallBlocks } from "./call-blocks.ts";
import { type Database, type DatabaseDeps, isUnreachable, openDatabase, READ_SNAPSHOT } from "./database.ts";
import { FactImage } from "./fact-image.ts";
import { createForwardedOrders } from "./forwarded-orders.ts";
import { createJournalQueries, createPostgresJournal } from "./journal.ts";
import { Lease } from "./lease.ts";
import { migrate } from "./migrations.ts";

/** Dependencies of opening a store. */
export interface PostgresStoreDeps extends DatabaseDeps {
  readonly leaseMs: DurationMs;
  /** Name of this daemon's instance. */
  readonly holder: string;
  /** Where this daemon's web server is reached, or null if not known. */
  readonly publicUrl: string | null;
}

/**
 * Opens the database and migrates its schema. The error says what is wrong with the URL, the database or the schema.
 */
export async function openMigratedDatabase(deps: DatabaseDeps): Promise<Result<Database, StoreFailure>> {
  const opened = openDatabase(deps);
  if (!opened.ok) return opened;
  const migrated = await tryMigrate(opened.value);
  if (migrated.ok) return opened;
  await opened.value.close();
  return migrated;
}

/** Like {@link migrate}, but never rejects. */
async function tryMigrate(database: Database): Promise<Result<void, StoreFailure>> {
  try {
    return await migrate(database);
  } catch (error) {
    return storeFailure(isUnreachable(error) ? "unreachable" : "unusable", errorMessage(error));
  }
}

/**
 * Opens the database that several daemons share, and migrates its schema. If the database can't be reached, the
 * migration is tried again before the lease is acquired. Does not acquire the lease. The error says what is wrong with
 * the URL, the database or the schema.
 */
export async function openSharedState(deps: PostgresStoreDeps): Promise<Result<SharedState, StoreFailure>> {
  const opened = openDatabase(deps);
  if (!opened.ok) return opened;
  const database = opened.value;
  let migrated = await tryMigrate(database);
  if (!migrated.ok && migrated.error.kind !== "unreachable") {
    await database.close();
    return migrated;
  }
  const unusable = Promise.withResolvers<string>();
  async function prepare(): Promise<void> {
    if (!migrated.ok) migrated = await tryMigrate(database);
    if (migrated.ok) return;
    const { kind, message } = migrated.error;
    if (kind !== "unreachable") unusable.resolve(message);
    throw new Error(message);
  }
  const { holder, publicUrl: url, leaseMs, clock, log } = deps;
  const lease = new Lease({ database, holder, url, leaseMs, clock, prepare });
  const journal = createJournalQueries(database);
  return ok({
    lease,
    orders: createForwardedOrders(database),
    journal,
    callsSince: journal.callsSince,
    unusable: unusable.promise,
    openStore: () => createLeaderStore(database, lease, { log }),
    close: () => database.close(),
  });
}

/**
 * Creates the store of the leader: `lease` must have been acquired. Loads facts and call counts. `close` writes what is
 * left, returns unused calls and releases the lease, but leaves the database open. Rejects if the database can't be
 * reached.
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
    journal: createPostgresJournal(database, lease, (changed) => factImage.adopt(changed)),
    close() {
      closing ??= close();
      return closing;
    },
  };
}
