import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fail, ok, type Result } from "../base/result.ts";
import type { StateStore } from "../model/ports.ts";
import { createJournal } from "./journal.ts";
import { MIGRATIONS, migrate, schemaVersion } from "./migrations.ts";
import {
  damagedFailure,
  errorMessage,
  isCorruption,
  isLocked,
  newerVersionFailure,
  type StoreFailure,
  storeFailure,
} from "./open-failure.ts";

/** Name of the database in the store's folder. */
export const DATABASE_FILE = "proxywarden.db";
const LOCK_FILE = "proxywarden.lock";

/** The write-ahead log is cut back to so much after it was larger: a large commit must not fill a disk for good. */
const LOG_BYTES_KEPT_MAX = 16 * 1_024 * 1_024;

/**
 * Opens the store in `folder`, which is made if need be, and brings its schema up to date. One process at a time: the
 * folder stays held until `close`, or until the process is gone, however it went.
 * What a write returned from is on the disk. A write throws where the disk refuses it.
 */
export function openStateStore(folder: string): Result<StateStore, StoreFailure> {
  const hold = lockFolder(folder);
  if (!hold.ok) return hold;
  const path = join(folder, DATABASE_FILE);
  const database = openDatabase(path);
  if (!database.ok) {
    hold.value.close();
    return database;
  }
  const close = () => {
    closeOnce(database.value);
    closeOnce(hold.value);
  };
  try {
    return ok(createStoreOver(database.value, close, assertSameFiles([path, join(folder, LOCK_FILE)])));
  } catch (error) {
    close();
    return fail(damagedFailure(path, errorMessage(error)));
  }
}

/** A store that lives as long as the process: for the demo and for tests. */
export function createMemoryStateStore(): StateStore {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  return createStoreOver(
    database,
    () => closeOnce(database),
    () => {},
  );
}

/** A database may be closed already: by a transaction that nothing else could end. */
function closeOnce(database: DatabaseSync): void {
  if (database.isOpen) database.close();
}

/**
 * Takes the folder for this process. The lock is an exclusive transaction on a database of its own, never ended: the
 * kernel drops it with the process, even one that was killed, and nothing stale is left to clean up. A lock on the
 * store's own database would also shut out those who only want to read it.
 */
function lockFolder(folder: string): Result<DatabaseSync, StoreFailure> {
  let lock: DatabaseSync | null = null;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
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
      `${folder} can't hold state: ${errorMessage(error)}; state.path must be a folder we may write to`,
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
    return storeFailure(
      "unusable",
      `${path} can't be opened: ${errorMessage(error)}; it must be a file we may write to`,
    );
  }
}

function prepareDatabase(database: DatabaseSync, path: string): StoreFailure | null {
  const check = String(database.prepare("PRAGMA quick_check(1)").get()?.quick_check);
  if (check !== "ok") return damagedFailure(path, check);
  const version = schemaVersion(database);
  if (version > MIGRATIONS.length) return newerVersionFailure(path, version, MIGRATIONS.length);
  // FULL: a commit is synced before it returns, so that a power cut forgets no call and no action. Temporary tables
  // stay in memory: a container's other folders may be read-only.
  database.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;
     PRAGMA journal_size_limit = ${LOG_BYTES_KEPT_MAX}`,
  );
  migrate(database);
  return null;
}

function createStoreOver(database: DatabaseSync, close: () => void, assertHeld: () => void): StateStore {
  const sumCalls = database.prepare("SELECT TOTAL(used) AS used FROM calls WHERE day >= ?");
  const addCalls = database.prepare(
    "INSERT INTO calls (day, used) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET used = used + excluded.used",
  );
  const readFact = database.prepare("SELECT value FROM facts WHERE key = ?");
  const writeFact = database.prepare(
    "INSERT INTO facts (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
  );
  return {
    calls: {
      since: (day) => Number(sumCalls.get(day)?.used ?? 0),
      add: (day, calls) => {
        addCalls.run(day, calls);
      },
    },
    facts: {
      read: (key) => {
        const value = readFact.get(key)?.value;
        return value === undefined ? null : String(value);
      },
      write: (key, value) => {
        writeFact.run(key, value);
      },
    },
    journal: createJournal(database, assertHeld),
    close,
  };
}

/**
 * Remembers which files these are; the function it gives throws once a path leads to another file, or to none. A
 * database that was moved away or removed is still written to by whoever has it open, and what it says then dies with
 * the process; and where a lock file was removed, a second daemon may be at work.
 */
function assertSameFiles(paths: readonly string[]): () => void {
  const known = paths.map((path) => ({ path, identity: identityOf(path) }));
  return () => {
    for (const { path, identity } of known) {
      if (identityOf(path) === identity) continue;
      throw new Error(`${path} was moved, removed or replaced while it was in use; put it back, or start anew`);
    }
  };
}

function identityOf(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found === undefined ? null : `${found.dev}:${found.ino}`;
}
