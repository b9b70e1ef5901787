import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { errorMessage, ok, type Result } from "../../base/result.ts";
import { type StoreFailure, storeFailure } from "../open-failure.ts";
import { isLocked } from "./errors.ts";

/** Name of the database in the store's folder. */
export const DATABASE_FILE = "proxywarden.db";
/** Name of the lock file in the store's folder. */
export const LOCK_FILE = "proxywarden.lock";

/**
 * Returns why the store in `folder` can't be written, or why none can be created there, or null if nothing is wrong. If
 * there is no store, a database is created in a temporary folder below the nearest folder that exists, and removed again.
 */
export function stateFolderProblem(folder: string): string | null {
  const problem = accessProblem(folder);
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

/**
 * Returns why a store can't be created in `folder`, or null if it can. The folder, or its nearest existing parent, must
 * be writable. Creates nothing.
 */
export function accessProblem(folder: string): string | null {
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
function nearestExisting(folder: string): string {
  if (existsSync(folder) || dirname(folder) === folder) return folder;
  return nearestExisting(dirname(folder));
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

/**
 * Creates the folder if it does not exist, and locks it for this process. Returns the lock: a database of its own with
 * an exclusive transaction that is never committed. The kernel releases it when the process ends, even if it is killed,
 * so there are no stale locks. A lock on the store's own database would also exclude readers.
 */
export function lockFolder(folder: string): Result<DatabaseSync, StoreFailure> {
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
      `${folder} can't hold state: ${accessProblem(folder) ?? errorMessage(error)}; state.path must be a writable folder with free space`,
    );
  }
}
