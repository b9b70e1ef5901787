import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { fail, type Result } from "../base/result.ts";

/**
 * Why the store can't be opened. `held`: another process has it; `newer`: a later version of proxywarden wrote it;
 * `damaged`: it is no database of ours, or a broken one; `unusable`: the folder or its disk refuses. To one who only
 * reads, also: `missing`: there is none; `older`: an earlier version wrote it, and nothing has brought it up to date.
 * The message names the file or folder and the way out.
 */
export interface StoreFailure {
  readonly kind: "held" | "newer" | "damaged" | "unusable" | "missing" | "older";
  readonly message: string;
}

// Primary result codes of SQLite: https://sqlite.org/rescode.html
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** A failure of this kind, with this message. */
export const storeFailure = (kind: StoreFailure["kind"], message: string): Result<never, StoreFailure> =>
  fail({ kind, message });

/** The database is broken: `what` is how it shows. */
export const damagedFailure = (path: string, what: string): StoreFailure => ({
  kind: "damaged",
  message: `${path} is damaged (${what}); put a backup in its place, or move it away together with its -wal and -shm files: a new one is made, which knows of no episode, action or hold, and limits.month.used tells it the calls already used`,
});

/** A later version wrote it; we know schema versions up to `known`. */
export const newerVersionFailure = (path: string, version: number, known: number): StoreFailure => ({
  kind: "newer",
  message: `${path} has schema version ${version}, and this proxywarden knows ${known} at most; run the version that wrote it, or a later one`,
});

/** What was thrown, in words. */
export const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Whether SQLite says that somebody else has the database. */
export const isLocked = (error: unknown): boolean => sqliteCode(error) === SQLITE_BUSY;

/** Whether SQLite says that the file is no database, or a broken one. */
export function isCorruption(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

// node:sqlite gives extended codes; the primary one is in their low byte.
function sqliteCode(error: unknown): number | null {
  const code = error instanceof Error && "errcode" in error ? error.errcode : null;
  return typeof code === "number" ? code & 0xff : null;
}

/**
 * Why a store could not be made in `folder`, or null: it, or the nearest folder above it that exists, must be one that
 * this user may write to. Nothing is made by looking.
 */
export function stateFolderProblem(folder: string): string | null {
  const existing = nearestExisting(folder);
  try {
    if (!statSync(existing).isDirectory()) return `${existing} is no folder`;
    accessSync(existing, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return `this user may not write to ${existing}: ${(error as NodeJS.ErrnoException).code}`;
  }
}

function nearestExisting(folder: string): string {
  if (existsSync(folder) || dirname(folder) === folder) return folder;
  return nearestExisting(dirname(folder));
}
