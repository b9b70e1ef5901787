import { ok, type Result } from "../../base/result.ts";
import type { SharedState } from "../../model/shared-state.ts";
import type { StoreFailure } from "../open-failure.ts";
import { createForwardedOrders } from "./forwarded-orders.ts";
import { READ_SNAPSHOT } from "./journal.ts";
import { Lease } from "./lease.ts";
import { createRowQueries, loadContents } from "./row-queries.ts";
import { createLeaderStore, openMigratedDatabase, type PostgresStoreDeps } from "./store.ts";

/**
 * Opens the database that several daemons share, and migrates its schema. Does not acquire the lease. The error says what is wrong with
 * the URL, the database or the schema.
 */
export async function openSharedState(
  deps: Omit<PostgresStoreDeps, "stop">,
): Promise<Result<SharedState, StoreFailure>> {
  const opened = await openMigratedDatabase(deps);
  if (!opened.ok) return opened;
  const database = opened.value;
  const { holder, publicUrl: url, leaseMs, clock, log } = deps;
  const lease = new Lease({ database, holder, url, leaseMs, clock, log });
  const queries = createRowQueries(database, database.schema);
  const { decisions, actions, episodes, operatorCommands, facts } = queries;
  return ok({
    lease,
    orders: createForwardedOrders(database),
    journal: {
      ...{ decisions, actions, episodes, operatorCommands, facts },
      load: (closedSince) =>
        database.transaction((connection) => loadContents(connection, database.schema, closedSince), READ_SNAPSHOT),
    },
    callsSince: async (day) =>
      [...(await queries.calls())].reduce((sum, [each, used]) => (each >= day ? sum + used : sum), 0),
    openStore: () => createLeaderStore(database, lease, { log }),
    close: () => database.close(),
  });
}
