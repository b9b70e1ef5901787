import type { StoreFailure } from "../open-failure.ts";

// Primary result codes of SQLite: https://sqlite.org/rescode.html
const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** Returns whether the error says that another process has locked the database. */
export const isLocked = (error: unknown): boolean => sqliteCode(error) === SQLITE_BUSY;

/** Returns whether the error says that the file is corrupt or not a database. */
export function isCorruption(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB;
}

/** Returns whether the error says that a statement does not fit the database, for example because a table is missing. */
export const isSchemaMismatch = (error: unknown): boolean => sqliteCode(error) === SQLITE_ERROR;

// node:sqlite reports extended codes; the low byte is the primary one.
function sqliteCode(error: unknown): number | null {
  const code = error instanceof Error && "errcode" in error ? error.errcode : null;
  return typeof code === "number" ? code & 0xff : null;
}

/** Creates the failure of a damaged database. */
export const damagedFailure = (path: string, problem: string): StoreFailure => ({
  kind: "damaged",
  message: `${path} is damaged (${problem}); put a backup in its place, or move it away together with its -wal and -shm files: a new one is created without episodes, actions and holds, and limits.month.used sets the calls already used`,
});
