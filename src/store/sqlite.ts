import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fail, ok, type Result } from "../base/result.ts";
import type { Store } from "../model/ports.ts";
import { MIGRATIONS, migrate, schemaVersion } from "./migrations.ts";

/**
 * Why the store can't be opened. `held`: another process has it; `newer`: a later version of proxywarden wrote it;
 * `damaged`: it is no database of ours, or a broken one; `unusable`: the folder or its disk refuses.
 * The message names the file or folder and the way out.
 */
export interface StoreFailure {
  readonly kind: "held" | "newer" | "damaged" | "unusable";
  readonly message: string;
}

// Primary result codes of SQLite: https://sqlite.org/rescode.html
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/**
 * Opens the store in `folder`, which is made if need be, and brings its schema up to date. One process at a time: the
 * folder stays held until `close`, or until the process is gone, however it went.
 * What a write returned from is on the disk. A write throws where the disk refuses it.
 */
export function openStore(folder: string): Result<Store, StoreFailure> {
  const hold = holdFolder(folder);
  if (!hold.ok) return hold;
  const path = join(folder, "proxywarden.db");
  const database = openDatabase(path);
  if (!database.ok) {
    hold.value.close();
    return database;
  }
  return ok(
    storeOver(database.value, () => {
      database.value.close();
      hold.value.close();
    }),
  );
}

/** A store that lives as long as the process: for the demo and for tests. */
export function createMemoryStore(): Store {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  return storeOver(database, () => database.close());
}

/**
 * Takes the folder for this process. The lock is an exclusive transaction on a database of its own, never ended: the
 * kernel drops it with the process, even one that was killed, and nothing stale is left to clean up. A lock on the
 * store's own database would also shut out those who only want to read it.
 */
function holdFolder(folder: string): Result<DatabaseSync, StoreFailure> {
  let lock: DatabaseSync | null = null;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    lock = new DatabaseSync(join(folder, "proxywarden.lock"));
    lock.exec("BEGIN EXCLUSIVE");
    return ok(lock);
  } catch (error) {
    lock?.close();
    if (sqliteCode(error) === SQLITE_BUSY) {
      return refuse(
        "held",
        `${folder} is held by another proxywarden; stop it, or give this one a state.path of its own`,
      );
    }
    return refuse(
      "unusable",
      `${folder} can't hold state: ${reason(error)}; state.path must be a folder we may write to`,
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
    const code = sqliteCode(error);
    if (code === SQLITE_CORRUPT || code === SQLITE_NOTADB) return fail(damaged(path, reason(error)));
    return refuse("unusable", `${path} can't be opened: ${reason(error)}; it must be a file we may write to`);
  }
}

function prepareDatabase(database: DatabaseSync, path: string): StoreFailure | null {
  const check = String(database.prepare("PRAGMA quick_check(1)").get()?.quick_check);
  if (check !== "ok") return damaged(path, check);
  const version = schemaVersion(database);
  if (version > MIGRATIONS.length) {
    const message = `${path} has schema version ${version}, and this proxywarden knows ${MIGRATIONS.length} at most; run the version that wrote it, or a later one`;
    return { kind: "newer", message };
  }
  // FULL: a commit is synced before it returns, so that a power cut forgets no call and, later, no action.
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  migrate(database);
  return null;
}

function storeOver(database: DatabaseSync, close: () => void): Store {
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
    close: () => {
      if (database.isOpen) close();
    },
  };
}

const damaged = (path: string, what: string): StoreFailure => ({
  kind: "damaged",
  message: `${path} is damaged (${what}); put a backup in its place, or move it away together with its -wal and -shm files: a new one is made, and limits.month.used tells it the calls already used`,
});

const refuse = (kind: StoreFailure["kind"], message: string): Result<never, StoreFailure> => fail({ kind, message });

const reason = (error: unknown) => (error instanceof Error ? error.message : String(error));

// node:sqlite gives extended codes; the primary one is in their low byte.
function sqliteCode(error: unknown): number | null {
  const code = error instanceof Error && "errcode" in error ? error.errcode : null;
  return typeof code === "number" ? code & 0xff : null;
}
