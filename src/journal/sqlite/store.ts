import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { errorMessage, fail, ok, type Result } from "../../base/result.ts";
import type { StateStore } from "../../model/ports.ts";
import {
  damagedFailure,
  isCorruption,
  isLocked,
  nearestExisting,
  newerVersionFailure,
  otherVersionFailure,
  type StoreFailure,
  stateFolderProblem,
  storeFailure,
} from "../open-failure.ts";
import { createRowQueries } from "../row-queries.ts";
import { notEmptyError, STATE_TABLES, type StateReader, type StateRow } from "../state-export.ts";
import { createChangeWriter, createConnection, createJournal, runInTransaction, SCHEMA } from "./journal.ts";
import { MIGRATIONS, migrate, schemaVersion } from "./migrations.ts";

/** Name of the database in the store's folder. */
export const DATABASE_FILE = "proxywarden.db";
const LOCK_FILE = "proxywarden.lock";

/** Size to which the write-ahead log is truncated, so that a large commit does not occupy disk space permanently. */
const LOG_BYTES_KEPT_MAX = 16 * 1_024 * 1_024;

/** A store in SQLite. What its methods write is on disk before they return. */
export interface SqliteStateStore extends StateStore {
  readonly database: DatabaseSync;
  /** Writes an exported state. Throws and writes nothing if this state is not empty, or if a row is invalid. */
  importRows(rows: Iterable<StateRow>): void;
}

/**
 * Opens the store in `folder`, creates it if it does not exist, and migrates its schema. Only one process can open it.
 * The folder is locked until `close`, or until the process ends in any way. Writes fail if the disk fails.
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
    return ok(createStoreOver(database.value, close, assertSameFiles([path, join(folder, LOCK_FILE)])));
  } catch (error) {
    close();
    return fail(damagedFailure(path, errorMessage(error)));
  }
}

/**
 * Returns why the store in `folder` can't be written, or none can be created there, or null if nothing is wrong. If there
 * is no store, a database is created in a temporary folder below the nearest folder that exists, and removed again.
 */
export function storeFolderProblem(folder: string): string | null {
  const problem = stateFolderProblem(folder);
  if (problem !== null) return problem;
  const files = [DATABASE_FILE, LOCK_FILE].map((name) => join(folder, name)).filter((file) => existsSync(file));
  try {
    for (const file of files) accessSync(file, constants.R_OK | constants.W_OK);
    if (files.length === 0) createTrialDatabase(folder);
    return null;
  } catch (error) {
    return `${folder} can't hold a database: ${errorMessage(error)}`;
  }
}

function createTrialDatabase(folder: string): void {
  const existing = nearestExisting(folder);
  const temporary = mkdtempSync(join(existing, ".proxywarden-check-"));
  try {
    const trial = join(temporary, relative(existing, folder));
    createFolder(trial);
    const database = new DatabaseSync(join(trial, DATABASE_FILE));
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE trial (value)");
    database.close();
  } finally {
    rmSync(temporary, { recursive: true });
  }
}

/** Creates a store in memory, for the demo and for tests. */
export function createMemoryStateStore(): SqliteStateStore {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  return createStoreOver(
    database,
    () => closeOnce(database),
    () => {},
  );
}

/** Closes a database that may be closed already, as after a transaction that could not be rolled back. */
function closeOnce(database: DatabaseSync): void {
  if (database.isOpen) database.close();
}

/**
 * Creates a folder and the missing ones above it. The option `recursive` of mkdirSync never returns where the kernel
 * answers ENOENT for a folder in one that exists, as in /proc.
 */
function createFolder(path: string): void {
  if (existsSync(path)) return;
  createFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!existsSync(path)) throw error;
  }
}

/** The locks that this process holds. A database that nothing refers to is closed when it is garbage collected. */
const heldLocks = new Set<DatabaseSync>();

/**
 * Locks the folder for this process. The lock is an exclusive transaction on a database of its own that is never
 * committed. The kernel releases it with the process, even if that is killed, so there are no stale locks. A lock on
 * the store's own database would also exclude readers.
 */
function lockFolder(folder: string): Result<DatabaseSync, StoreFailure> {
  let lock: DatabaseSync | null = null;
  try {
    createFolder(resolve(folder));
    lock = new DatabaseSync(join(folder, LOCK_FILE));
    lock.exec("BEGIN EXCLUSIVE");
    return ok(lock);
  } catch (error) {
    lock?.close();
    if (isLocked(error)) {
      return storeFailure(
        "held",
        `${folder} is held by another proxywarden; stop it, or give this one a state.path of its own`,
      );
    }
    return storeFailure(
      "unusable",
      `${folder} can't hold state: ${stateFolderProblem(folder) ?? errorMessage(error)}; state.path must be a writable folder with free space`,
    );
  }
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
  const newer = newerVersionFailure(path, schemaVersion(database), MIGRATIONS.length);
  if (newer !== null) return newer;
  // With FULL a commit is synced before it returns, so that a power failure loses no call and no action. Temporary
  // tables are in memory, since other folders of a container may be read-only.
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
     PRAGMA journal_size_limit = ${LOG_BYTES_KEPT_MAX}`,
  );
  migrate(database);
  return null;
}

function createStoreOver(database: DatabaseSync, close: () => void, assertInPlace: () => void): SqliteStateStore {
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
    importRows: (rows) => importRows(database, rows),
    close: async () => close(),
  };
}

/**
 * Returns a function that throws once a path no longer leads to the same file. A database that was moved or removed can
 * still be written, but its data is lost when the process ends. If the lock file was removed, a second daemon may be
 * running.
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

function importRows(database: DatabaseSync, rows: Iterable<StateRow>): void {
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

/** A snapshot of a store. */
interface SqliteReader extends StateReader {
  close(): Promise<void>;
}

/**
 * Opens a snapshot of the store in `folder` for reading, even while a daemon uses the folder. Close it soon, because
 * the daemon's write-ahead log can't be truncated until then.
 */
export function openSqliteReader(folder: string): Result<SqliteReader, StoreFailure> {
  const path = join(folder, DATABASE_FILE);
  let database: DatabaseSync | null = null;
  try {
    statSync(path);
    database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS_MAX });
    // All reads are in one transaction, because a daemon may be writing.
    database.exec("PRAGMA temp_store = MEMORY; BEGIN");
    const failure = otherVersionFailure(path, schemaVersion(database), MIGRATIONS.length);
    if (failure === null) return ok(readerOver(database));
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

const readerOver = (database: DatabaseSync): SqliteReader => ({
  ...createRowQueries(createConnection(database), SCHEMA),
  close: async () => closeOnce(database),
});

const isMissingFile = (error: unknown) =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
