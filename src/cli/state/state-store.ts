import { hostname } from "node:os";
import { fail, ok, type Result } from "../../base/result.ts";
import type { KeyProblem } from "../../config/diagnostics/problem.ts";
import type { Config } from "../../config/schema/config.ts";
import { type StoreFailure, storeFailure } from "../../journal/open-failure.ts";
import type { DatabaseDeps } from "../../journal/postgres/database.ts";
import { stateFolderProblem } from "../../journal/sqlite/folder.ts";
import { importSqliteState, openSqliteStore, readSqliteState } from "../../journal/sqlite/store.ts";
import type { StateReader, StateRow } from "../../journal/state-export.ts";
import type { Clock, Log, SharedState, StateStore } from "../../model/ports.ts";
import { systemClock } from "../../platform/clock.ts";
import { silentLog } from "../../platform/log.ts";
import { fileSecret } from "../../platform/secret-file.ts";
import { orStopped } from "../context.ts";

type StateConfig = Config["state"];

/** Opens the state that a configuration names. The error begins with a key, unless the state is damaged. */
export async function openConfiguredStore(
  { path, postgres }: StateConfig,
  deps: { readonly clock: Clock; readonly log: Log },
): Promise<Result<StateStore | SharedState, StoreFailure>> {
  if (postgres === undefined) return withKey("state.path", openSqliteStore(path!));
  const database = databaseOf(postgres, deps);
  if (!database.ok) return database;
  // Loaded only here, so that pg is not in memory if SQLite is used.
  const { openSharedState } = await import("../../journal/postgres/store.ts");
  const opened = await openSharedState({
    ...database.value,
    leaseMs: postgres.lease,
    holder: postgres.instance ?? hostname(),
    publicUrl: postgres.public_url ?? null,
  });
  return withKey("state.postgres", opened);
}

/**
 * Puts the key before the message of a failure that ends the daemon. If the state is damaged, the daemon runs without a
 * journal.
 */
const withKey = <T>(key: string, opened: Result<T, StoreFailure>): Result<T, StoreFailure> =>
  opened.ok || opened.error.kind === "damaged"
    ? opened
    : storeFailure(opened.error.kind, `${key}: ${opened.error.message}`);

/**
 * Calls `read` with the state of a configuration at one point in time, even while daemons use it. A damaged state is a
 * failure. Rejects if `read` does for another reason, and with `CommandFailure` if `stop` aborts.
 */
export async function readConfiguredState<T>(
  state: StateConfig,
  read: (reader: StateReader) => Promise<T>,
  stop: AbortSignal,
): Promise<Result<T, StoreFailure>> {
  if (state.postgres === undefined) return orStopped(readSqliteState(state.path!, read), stop);
  const database = databaseOf(state.postgres);
  if (!database.ok) return database;
  const { readPostgresState } = await import("../../journal/postgres/store.ts");
  return orStopped(readPostgresState(database.value, read), stop);
}

/**
 * Writes rows into the empty state of a configuration. The error says why nothing was written. Rejects with
 * `CommandFailure` if `stop` aborts; the state then has all of the rows or none.
 */
export async function importConfiguredState(
  { path, postgres }: StateConfig,
  rows: readonly StateRow[],
  stop: AbortSignal,
): Promise<Result<void, string>> {
  if (postgres === undefined) return importSqliteState(path!, rows);
  const database = databaseOf(postgres);
  if (!database.ok) return fail(database.error.message);
  const { importState } = await import("../../journal/postgres/store.ts");
  return orStopped(importState(database.value, rows), stop);
}

/**
 * Returns why the state can't be opened, as far as that is known without opening it, or null if nothing is wrong. For
 * PostgreSQL, only the URL is checked.
 */
export async function stateProblem({ path, postgres }: StateConfig): Promise<KeyProblem | null> {
  if (postgres === undefined) {
    const problem = stateFolderProblem(path!);
    return problem === null ? null : { key: "state.path", message: problem };
  }
  const url = fileSecret(postgres.url_file, systemClock);
  if (!url.ok) return { key: URL_FILE_KEY, message: url.error };
  const { parseDatabaseUrl } = await import("../../journal/postgres/url.ts");
  const address = parseDatabaseUrl(url.value.value());
  const message = address.ok ? null : `the URL of the database can't be used: ${address.error}`;
  return message === null ? null : { key: URL_FILE_KEY, message };
}

const URL_FILE_KEY = "state.postgres.url_file";

/** Returns how to reach a database. The defaults are for commands, and log nothing. */
function databaseOf(
  { url_file, schema }: NonNullable<StateConfig["postgres"]>,
  { clock, log } = { clock: systemClock, log: silentLog },
): Result<DatabaseDeps, StoreFailure> {
  const url = fileSecret(url_file, clock);
  return url.ok
    ? ok({ url: url.value, schema, clock, log })
    : storeFailure("unusable", `${URL_FILE_KEY}: ${url.error}`);
}
