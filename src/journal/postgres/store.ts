import { type DurationMs, MINUTE_MS } from "../../base/duration.ts";
import { errorMessage, fail, ok, type Result } from "../../base/result.ts";
import type { CallCounter, ForwardedCommands, SharedState, StateStore } from "../../model/ports.ts";
import type { JournalChange } from "../../model/remediation/journal.ts";
import type { CommandReply, OperatorCommand } from "../../model/remediation/operator-command.ts";
import { type StoreFailure, storeFailure } from "../open-failure.ts";
import { callsSince, createRowQueries } from "../row-queries.ts";
import { notEmptyError, STATE_TABLES, type StateReader, type StateRow } from "../state-export.ts";
import {
  type Connection,
  type Database,
  type DatabaseDeps,
  isUnreachable,
  openDatabase,
  READ_SNAPSHOT,
  toJsonText,
} from "./database.ts";
import { commitParameters, commitStatement, createJournalQueries, createPostgresJournal } from "./journal.ts";
import { Lease, SHORT_LOCK_WAIT } from "./lease.ts";
import { migrate, schemaProblem } from "./migrations.ts";

/** Dependencies of opening a store. */
interface PostgresStoreDeps extends DatabaseDeps {
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
    forwardedCommands: createForwardedCommands(database),
    journal,
    callsSince: journal.callsSince,
    unusable: unusable.promise,
    openStore: () => createLeaderStore(database, lease, { log }),
    close: () => database.close(),
  });
}

/**
 * Creates the store of the leader: `lease` must have been acquired. Loads the call counts. `close` releases the lease, but
 * leaves the database open. Rejects if the database can't be reached.
 */
export async function createLeaderStore(
  database: Database,
  lease: Lease,
  { log }: Pick<PostgresStoreDeps, "log">,
): Promise<StateStore> {
  return {
    calls: createCallCounter(database, lease, await createRowQueries(database, database.schema).calls()),
    journal: createPostgresJournal(database, lease),
    async close() {
      await lease.release().catch((error: unknown) => {
        log.warn({ err: error }, "lease not released; another daemon can take over once it has ended");
      });
    },
  };
}

/** Number of calls that are counted in advance. After a crash, they count as used. */
const CALLS_AHEAD = 100;

/** Creates the counter of calls, which the lease fences. `used` holds the calls by day that the database has now. */
function createCallCounter(database: Database, lease: Lease, used: ReadonlyMap<string, number>): CallCounter {
  const { schema: s } = database;
  const counted = new Map(used);
  return {
    ahead: CALLS_AHEAD,
    since: (day) => callsSince(counted, day),
    async add(day, calls) {
      const [row] = await database.query(
        `WITH fence AS MATERIALIZED (SELECT FROM ${s}.leases WHERE epoch = $1 FOR SHARE)
         INSERT INTO ${s}.calls AS counted (day, used) SELECT $2, GREATEST(0, $3::bigint)
         WHERE EXISTS (SELECT FROM fence) AND ${SHORT_LOCK_WAIT}
         ON CONFLICT (day) DO UPDATE SET used = GREATEST(0, counted.used + $3::bigint) RETURNING used`,
        [lease.requireEpoch(), day, calls],
      );
      if (row === undefined) throw lease.loseLeadership();
      counted.set(day, Number(row.used));
    },
  };
}

/** Calls `read` with a snapshot of the state, even while daemons use it. Changes nothing. Rejects if `read` does. */
export async function readPostgresState<T>(
  deps: DatabaseDeps,
  read: (reader: StateReader) => Promise<T>,
): Promise<Result<T, StoreFailure>> {
  const opened = openDatabase(deps);
  if (!opened.ok) return opened;
  const database = opened.value;
  /** The error of `read`. The transaction would take a file error, which also has a code, for a connection failure. */
  let rejection: { readonly error: unknown } | undefined;
  try {
    return await database.transaction(async (connection) => {
      const problem = await schemaProblem(connection, database);
      if (problem !== null) return fail(problem);
      try {
        return ok(await read(createRowQueries(connection, database.schema)));
      } catch (error) {
        rejection = { error };
        throw error;
      }
    }, READ_SNAPSHOT);
  } catch (error) {
    if (rejection !== undefined) throw rejection.error;
    return storeFailure(isUnreachable(error) ? "unreachable" : "unusable", errorMessage(error));
  } finally {
    await database.close();
  }
}

/** Number of rows that are written at once. */
const ROWS_AT_ONCE = 2_000;

/**
 * Writes rows in one transaction, during which the lease is held. Fails, and writes no row, if a daemon leads, the
 * schema has rows, or a row is invalid. Migrates the schema first.
 */
export async function importState(deps: DatabaseDeps, rows: readonly StateRow[]): Promise<Result<void, string>> {
  const opened = await openMigratedDatabase(deps);
  if (!opened.ok) return fail(opened.error.message);
  const database = opened.value;
  try {
    await database.transaction((connection) => writeAll(connection, database.schema, rows));
    return ok(undefined);
  } catch (error) {
    return fail(errorMessage(error));
  } finally {
    await database.close();
  }
}

async function writeAll(connection: Connection, s: string, rows: readonly StateRow[]): Promise<void> {
  const [lease] = await connection.query(
    `INSERT INTO ${s}.leases AS held (holder, epoch, expires_at) VALUES ('proxywarden state import', 1, 'infinity')
     ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, epoch = held.epoch + 1, expires_at = excluded.expires_at
     WHERE held.expires_at <= clock_timestamp() RETURNING epoch`,
  );
  if (lease === undefined) throw new Error("a daemon is using the state; stop it first");
  for (const table of STATE_TABLES) {
    const [row] = await connection.query(`SELECT FROM ${s}.${table} LIMIT 1`);
    if (row !== undefined) throw notEmptyError(table);
  }
  const changes = rows.filter((row): row is StateRow & JournalChange => row.kind !== "calls");
  for (let from = 0, number = 1; from < changes.length; from += ROWS_AT_ONCE, number++) {
    const parameters = commitParameters(changes.slice(from, from + ROWS_AT_ONCE));
    const [result] = await connection.query(commitStatement(s), [Number(lease.epoch), number, ...parameters]);
    if (result?.written !== true) throw new Error("the rows were not written");
  }
  const calls = rows.filter(({ kind }) => kind === "calls");
  const sqlOfCalls = `INSERT INTO ${s}.calls SELECT r.* FROM jsonb_to_recordset($1::jsonb) AS r(day text, used bigint)`;
  await connection.query(sqlOfCalls, [toJsonText(calls)]);
  await connection.query(`UPDATE ${s}.leases SET expires_at = '-infinity'`);
}

/** A command lapses if no leader takes it within this time, because its subject may have changed. */
const LAPSE_MS: DurationMs = 10 * MINUTE_MS;
/** Commands are deleted after this time. */
const RETENTION = "1 day";

/** Creates the access to forwarded commands in a database whose schema is current. */
function createForwardedCommands(database: Database): ForwardedCommands {
  const table = `${database.schema}.forwarded_commands`;
  return {
    async submit(command) {
      const sql = `INSERT INTO ${table} (body) VALUES ($1::jsonb) RETURNING id`;
      const [row] = await database.query(sql, [toJsonText(command)]);
      return Number(row!.id);
    },
    async reply(id) {
      const [row] = await database.query(`SELECT reply FROM ${table} WHERE id = $1`, [id]);
      return (row?.reply ?? null) as CommandReply | null;
    },
    async pending() {
      const rows = await database.query(
        `SELECT id, body, (EXTRACT(EPOCH FROM clock_timestamp() - created_at) * 1000)::float8 AS age_ms FROM ${table}
         WHERE reply IS NULL AND created_at > clock_timestamp() - $1 * interval '1 millisecond' ORDER BY id`,
        [LAPSE_MS],
      );
      return rows.map(({ id, body, age_ms }) => ({
        ...(body as OperatorCommand),
        id: Number(id),
        ageMs: Number(age_ms),
      }));
    },
    async answer(id, reply) {
      await database.query(`UPDATE ${table} SET reply = $2::jsonb WHERE id = $1`, [id, toJsonText(reply)]);
      await database.query(`DELETE FROM ${table} WHERE created_at < clock_timestamp() - interval '${RETENTION}'`);
    },
  };
}
