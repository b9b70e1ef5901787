import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fail } from "../base/result.ts";

/**
 * Why the store can't be opened. The message names the file or folder and what to do.
 * - `held`: another process uses it.
 * - `newer`: a later version of proxywarden wrote it.
 * - `damaged`: it is corrupt, or not a proxywarden database.
 * - `unusable`: the folder can't be read or written, or the database refuses access.
 * - `unreachable`: the database server does not answer now.
 * - `missing`, only when opened for reading: there is no store.
 * - `older`, only when opened for reading: an earlier version wrote it, and it was not migrated yet.
 */
export interface StoreFailure {
  readonly kind: "held" | "newer" | "damaged" | "unusable" | "unreachable" | "missing" | "older";
  readonly message: string;
}

// Primary result codes of SQLite: https://sqlite.org/rescode.html
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** Creates a failure. */
export const storeFailure = (
  kind: StoreFailure["kind"],
  message: string,
): { readonly ok: false; readonly error: StoreFailure } => fail({ kind, message });

/** Creates the failure of a damaged database. */
export const damagedFailure = (path: string, problem: string): StoreFailure => ({
  kind: "damaged",
  message: `${path} is damaged (${problem}); put a backup in its place, or move it away together with its -wal and -shm files: a new one is created without episodes, actions and holds, and limits.month.used sets the calls already used`,
});

/**
 * Returns why this proxywarden, which knows the schema up to version `known`, can't use a store of `version`, or null if
 * it can.
 */
export function newerVersionFailure(name: string, version: number, known: number): StoreFailure | null {
  if (version <= known) return null;
  const message = `${name} has schema version ${version}, and this proxywarden knows ${known} at most; run the version that wrote it, or a later one`;
  return { kind: "newer", message };
}

/** Like {@link newerVersionFailure}, for a store that is only read, and therefore not migrated. */
export function otherVersionFailure(name: string, version: number, known: number): StoreFailure | null {
  if (version >= known) return newerVersionFailure(name, version, known);
  const message = `${name} has schema version ${version}, and this proxywarden reads ${known}; start the daemon of this version on it once, which migrates it`;
  return { kind: "older", message };
}

/** Returns whether the error says that another process has locked the database. */
export const isLocked = (error: unknown): boolean => sqliteCode(error) === SQLITE_BUSY;

/** Returns whether the error says that the file is corrupt or not a database. */
export function isCorruption(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

// node:sqlite reports extended codes; the low byte is the primary one.
function sqliteCode(error: unknown): number | null {
  const code = error instanceof Error && "errcode" in error ? error.errcode : null;
  return typeof code === "number" ? code & 0xff : null;
}

/**
 * Returns why a store can't be created in `folder`, or null if it can. The folder, or its nearest existing parent, must
 * be writable. Creates nothing.
 */
export function stateFolderProblem(folder: string): string | null {
  const existing = nearestExisting(folder);
  try {
    if (!statSync(existing).isDirectory()) return `${existing} is not a folder`;
    accessSync(existing, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return `this user can't write to ${existing}: ${(error as NodeJS.ErrnoException).code}`;
  }
}

/** Returns the folder, or the nearest one above it that exists. */
export function nearestExisting(folder: string): string {
  if (existsSync(folder) || dirname(folder) === folder) return folder;
  return nearestExisting(dirname(folder));
}
