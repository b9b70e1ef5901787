import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { errorMessage, fail, ok, type Result } from "../../base/result.ts";
import type { StateStore } from "../../model/ports.ts";
import { type StoreFailure, storeFailure, unreadableVersionFailure, unusableVersionFailure } from "../open-failure.ts";
import { createRowQueries } from "../row-queries.ts";
import { notEmptyError, STATE_TABLES, type StateReader, type StateRow } from "../state-export.ts";
import { damagedFailure, isCorruption, isSchemaMismatch } from "./errors.ts";
import { DATABASE_FILE, LOCK_FILE, lockFolder } from "./folder.ts";
import { createChangeWriter, createConnection, createJournal, runInTransaction, SCHEMA } from "./journal.ts";
import { migrate, schemaVersion, VERSIONS } from "./migrations.ts";

/** Size to which the write-ahead log is truncated, so that a large commit does not occupy disk space permanently. */
const LOG_BYTES_KEPT_MAX = 16 * 1_024 * 1_024;

/** A store in SQLite. Unless it is in memory, what its methods write is on disk before they return. */
export interface SqliteStateStore extends StateStore {
  readonly database: DatabaseSync;
}

/** The locks that this process holds. Without a reference, a lock would be closed when it is garbage collected. */
const heldLocks = new Set<DatabaseSync>();

/**
 * Opens the store in `folder`, creates it if it does not exist, and migrates its schema. Only one process can open it.
 * The folder is locked until `close`, or until the process ends in any way.
 */
export function openSqliteStore(folder: string): Result<SqliteStateStore, StoreFailure> {
  const hold = lockFolder(folder);
  if (!hold.ok) return hold;
  const path = join(folder, DATABASE_FILE);
  const database = openDatabase(path);
  if (!database.ok) {
    hold.value.close();
    return database;
  }
  heldLocks.add(hold.value);
  const close = () => {
    closeOnce(database.value);
    closeOnce(hold.value);
    heldLocks.delete(hold.value);
  };
  try {
    const paths = [path, `${path}-wal`, `${path}-shm`, join(folder, LOCK_FILE)];
    return ok(createStoreOver(database.value, close, assertSameFiles(paths)));
  } catch (error) {
    close();
    return fail(damagedFailure(path, errorMessage(error)));
  }
}

/** Creates a store in memory, for commands that keep no state and for tests. */
export function createMemoryStateStore(): SqliteStateStore {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  return createStoreOver(database, () => closeOnce(database));
}

/** Closes a database that may be closed already, as after a transaction that could not be rolled back. */
function closeOnce(database: DatabaseSync): void {
  if (database.isOpen) database.close();
}

function openDatabase(path: string): Result<DatabaseSync, StoreFailure> {
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(path);
    const failure = prepareDatabase(database, path);
    if (failure === null) return ok(database);
    database.close();
    return fail(failure);
  } catch (error) {
    database?.close();
    if (isCorruption(error)) return fail(damagedFailure(path, errorMessage(error)));
    return storeFailure("unusable", `${path} can't be opened: ${errorMessage(error)}; it must be a writable file`);
  }
}

function prepareDatabase(database: DatabaseSync, path: string): StoreFailure | null {
  const check = String(database.prepare("PRAGMA quick_check(1)").get()?.quick_check);
  if (check !== "ok") return damagedFailure(path, check);
  const problem = unusableVersionFailure(path, schemaVersion(database), VERSIONS);
  if (problem !== null) return problem;
  // With FULL a commit is synced before it returns, so that a power failure loses no call and no action. Temporary
  // tables are in memory, since other folders of a container may be read-only.
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
     PRAGMA journal_size_limit = ${LOG_BYTES_KEPT_MAX}`,
  );
  migrate(database);
  return null;
}

function createStoreOver(database: DatabaseSync, close: () => void, assertInPlace?: () => void): SqliteStateStore {
  const callsSince = database.prepare("SELECT TOTAL(used) AS used FROM calls WHERE day >= ?");
  const addCalls = database.prepare(
    "INSERT INTO calls (day, used) VALUES (?1, max(0, ?2)) ON CONFLICT (day) DO UPDATE SET used = max(0, used + ?2)",
  );
  return {
    calls: {
      since: (day) => Number(callsSince.get(day)?.used),
      add: async (day, calls) => {
        addCalls.run(day, calls);
      },
    },
    journal: createJournal(database, assertInPlace),
    database,
    close: async () => close(),
  };
}

/**
 * Returns a function that throws once a path no longer leads to the same file. A database or write-ahead log that was
 * moved or removed can still be written, but its data is lost when the process ends. Without the index of that log,
 * readers and this process no longer see each other's locks. If the lock file was removed, a second daemon may be running.
 */
function assertSameFiles(paths: readonly string[]): () => void {
  const known = paths.map((path) => ({ path, identity: identityOf(path) }));
  return () => {
    for (const { path, identity } of known) {
      if (identityOf(path) === identity) continue;
      throw new Error(`${path} was moved, removed or replaced while it was in use; put it back, or restart the daemon`);
    }
  };
}

function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}

/** Writes rows into the store in `folder`. Fails, and writes nothing, if the store has rows, or a row is invalid. */
export async function importSqliteState(folder: string, rows: readonly StateRow[]): Promise<Result<void, string>> {
  const opened = openSqliteStore(folder);
  if (!opened.ok) return fail(opened.error.message);
  try {
    writeAll(opened.value.database, rows);
    return ok(undefined);
  } catch (error) {
    return fail(errorMessage(error));
  } finally {
    await opened.value.close();
  }
}

function writeAll(database: DatabaseSync, rows: readonly StateRow[]): void {
  const write = createChangeWriter(database);
  const addCalls = database.prepare("INSERT INTO calls (day, used) VALUES (?, ?)");
  runInTransaction(database, () => {
    const full = STATE_TABLES.find((table) => database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() !== undefined);
    if (full !== undefined) throw notEmptyError(full);
    for (const row of rows) {
      if (row.kind === "calls") addCalls.run(row.day, row.used);
      else write(row);
    }
  });
}

/** Maximum wait for a daemon that is opening or closing its store, which takes less time. */
const BUSY_MS_MAX = 2_000;

/**
 * Calls `read` with a snapshot of the store in `folder`, even while a daemon uses the folder. It should not take long,
 * because the daemon's write-ahead log can't be truncated until then. A damaged store is a failure; rejects if `read`
 * does for another reason.
 */
export async function readSqliteState<T>(
  folder: string,
  read: (reader: StateReader) => Promise<T>,
): Promise<Result<T, StoreFailure>> {
  const opened = openForReading(folder);
  if (!opened.ok) return opened;
  const database = opened.value;
  try {
    return ok(await read(createRowQueries(createConnection(database), SCHEMA)));
  } catch (error) {
    if (isCorruption(error) || isSchemaMismatch(error))
      return fail(damagedFailure(join(folder, DATABASE_FILE), errorMessage(error)));
    throw error;
  } finally {
    closeOnce(database);
  }
}

function openForReading(folder: string): Result<DatabaseSync, StoreFailure> {
  const path = join(folder, DATABASE_FILE);
  let database: DatabaseSync | null = null;
  try {
    statSync(path);
    database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS_MAX });
    // All reads are in one transaction, because a daemon may be writing.
    database.exec("PRAGMA temp_store = MEMORY; BEGIN");
    const failure = unreadableVersionFailure(path, schemaVersion(database), VERSIONS);
    if (failure === null) return ok(database);
    database.close();
    return fail(failure);
  } catch (error) {
    database?.close();
    if (isMissingFile(error)) {
      return storeFailure(
        "missing",
        `${folder} holds no journal; state.path must be the folder that a daemon has used`,
      );
    }
    if (isCorruption(error)) return fail(damagedFailure(path, errorMessage(error)));
    return storeFailure(
      "unusable",
      `${path} can't be read: ${errorMessage(error)}; read it as the user that the daemon runs as`,
    );
  }
}

const isMissingFile = (error: unknown) =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
