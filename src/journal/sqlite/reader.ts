import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { errorMessage, fail, ok, type Result } from "../../base/result.ts";
import { damagedFailure, isCorruption, otherVersionFailure, type StoreFailure, storeFailure } from "../open-failure.ts";
import { createStateReader } from "../row-queries.ts";
import type { StateReader } from "../state-rows.ts";
import { createConnection, SCHEMA } from "./connection.ts";
import { MIGRATIONS, schemaVersion } from "./migrations.ts";
import { closeOnce, DATABASE_FILE } from "./store.ts";

/** Maximum wait for a daemon that is opening or closing its store, which takes less time. */
const BUSY_MS_MAX = 2_000;

/**
 * Opens a snapshot of the store in `folder` for reading, even while a daemon uses the folder. Close it soon, because
 * the daemon's write-ahead log can't be truncated until then.
 */
export function openSqliteReader(folder: string): Result<StateReader, StoreFailure> {
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

const readerOver = (database: DatabaseSync): StateReader => ({
  ...createStateReader(createConnection(database), SCHEMA),
  close: async () => closeOnce(database),
});

const isMissingFile = (error: unknown) =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
