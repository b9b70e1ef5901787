import { hostname } from "node:os";
import { errorMessage, fail, ok, type Result } from "../base/result.ts";
import type { Config } from "../config/schema/config.ts";
import { type StoreFailure, stateFolderProblem, storeFailure } from "../journal/open-failure.ts";
import { openSqliteReader } from "../journal/sqlite/reader.ts";
import { openSqliteStore } from "../journal/sqlite/store.ts";
import type { StateReader, StateRow } from "../journal/state-rows.ts";
import type { Clock, Log, Secret, StateStore } from "../model/ports.ts";
import type { SharedState } from "../model/shared-state.ts";
import { createSystemClock } from "../platform/clock.ts";
import { silentLog } from "../platform/log.ts";
import { fileSecret } from "../platform/secret-file.ts";

type StateConfig = Config["state"];

/** Dependencies of opening a daemon's state. */
export interface StateStoreDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** Opens the state that a configuration names, with its key in the error. With PostgreSQL several daemons may share it. */
export async function openConfiguredStore(
  { path, postgres }: StateConfig,
  { clock, log }: StateStoreDeps,
): Promise<Result<StateStore | SharedState, StoreFailure>> {
  if (postgres === undefined) return withKey("state.path", openSqliteStore(path!));
  const url = readUrl(postgres, clock);
  if (!url.ok) return url;
  // Loaded only here, so that pg is not in memory if SQLite is used.
  const { openSharedState } = await import("../journal/postgres/store.ts");
  const opened = await openSharedState({
    ...{ clock, log, url: url.value, schema: postgres.schema, leaseMs: postgres.lease },
    holder: postgres.instance ?? hostname(),
    publicUrl: postgres.public_url ?? null,
  });
  return withKey("state.postgres", opened);
}

/** Puts the key before the message of a failure that ends the daemon. With a damaged state it runs without a journal. */
const withKey = <T>(key: string, opened: Result<T, StoreFailure>): Result<T, StoreFailure> =>
  opened.ok || opened.error.kind === "damaged"
    ? opened
    : storeFailure(opened.error.kind, `${key}: ${opened.error.message}`);

/** Opens the state of a configuration for reading. Daemons may be using it. */
export async function openConfiguredReader({
  path,
  postgres,
}: StateConfig): Promise<Result<StateReader, StoreFailure>> {
  if (postgres === undefined) return openSqliteReader(path!);
  const clock = createSystemClock();
  const url = readUrl(postgres, clock);
  if (!url.ok) return url;
  const { openPostgresReader } = await import("../journal/postgres/reader.ts");
  return openPostgresReader({ url: url.value, schema: postgres.schema, clock, log: silentLog });
}

/** Writes rows into the empty state of a configuration. The error says why nothing was written. */
export async function importConfiguredState(
  { path, postgres }: StateConfig,
  rows: readonly StateRow[],
): Promise<Result<void, string>> {
  if (postgres === undefined) return importIntoFolder(path!, rows);
  const clock = createSystemClock();
  const url = readUrl(postgres, clock);
  if (!url.ok) return fail(url.error.message);
  const { importState } = await import("../journal/postgres/state-import.ts");
  return importState({ url: url.value, schema: postgres.schema, clock, log: silentLog }, rows);
}

async function importIntoFolder(folder: string, rows: readonly StateRow[]): Promise<Result<void, string>> {
  const opened = openSqliteStore(folder);
  if (!opened.ok) return fail(opened.error.message);
  try {
    opened.value.importRows(rows);
    return ok(undefined);
  } catch (error) {
    return fail(errorMessage(error));
  } finally {
    await opened.value.close();
  }
}

/** Returns why the state can't be opened, as far as that is known without opening it, or null if nothing is wrong. */
export async function stateProblem({ path, postgres }: StateConfig): Promise<string | null> {
  if (postgres === undefined) {
    const problem = stateFolderProblem(path!);
    return problem === null ? null : `state.path: ${problem}`;
  }
  const url = readUrl(postgres, createSystemClock());
  if (!url.ok) return url.error.message;
  const { parseDatabaseUrl } = await import("../journal/postgres/url.ts");
  const address = parseDatabaseUrl(url.value.value());
  return address.ok ? null : `state.postgres.url_file: the URL of the database can't be used: ${address.error}`;
}

function readUrl(
  { url_file }: NonNullable<StateConfig["postgres"]>,
  clock: Pick<Clock, "monotonic">,
): Result<Secret, StoreFailure> {
  const url = fileSecret(url_file, clock);
  return url.ok ? url : storeFailure("unusable", `state.postgres.url_file: ${url.error}`);
}
