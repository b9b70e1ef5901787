import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fail, ok, type Result } from "../base/result.ts";
import type { JournalReader } from "../model/remediation/journal.ts";
import { MIGRATIONS, schemaVersion } from "./migrations.ts";
import {
  damagedFailure,
  errorMessage,
  isCorruption,
  newerVersionFailure,
  type StoreFailure,
  storeFailure,
} from "./open-failure.ts";
import { createRowReader } from "./rows.ts";
import { DATABASE_FILE } from "./sqlite.ts";

/** A store as it is at one moment. */
export interface StoreReader extends JournalReader {
  /** Null: there is no such fact. */
  fact(key: string): string | null;
  /** Calls made from that day (UTC) on. */
  callsSince(day: string): number;
}

/** How long reading waits for a daemon that is just opening or closing its store; longer than either takes. */
const BUSY_MS_MAX = 2_000;

/**
 * Opens the store in `folder` to read it as it is at this moment, whether or not a daemon holds the folder, and
 * changes nothing in it. To be closed soon: until then the daemon's log can't be cut back.
 */
export function openStoreReadOnly(folder: string): Result<StoreReader, StoreFailure> {
  const path = join(folder, DATABASE_FILE);
  let database: DatabaseSync | null = null;
  try {
    statSync(path);
    database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS_MAX });
    // One view over all that is read: the daemon goes on writing beside it.
    database.exec("PRAGMA temp_store = MEMORY; BEGIN");
    const failure = schemaProblem(schemaVersion(database), path);
    if (failure === null) return ok(readerOver(database));
    database.close();
    return fail(failure);
  } catch (error) {
    database?.close();
    if (isMissingFile(error)) {
      return storeFailure(
        "missing",
        `${folder} holds no journal; state.path must be the folder that a daemon has run with`,
      );
    }
    if (isCorruption(error)) return fail(damagedFailure(path, errorMessage(error)));
    return storeFailure(
      "unusable",
      `${path} can't be read: ${errorMessage(error)}; read it as the user that the daemon runs as`,
    );
  }
}

function schemaProblem(version: number, path: string): StoreFailure | null {
  if (version > MIGRATIONS.length) return newerVersionFailure(path, version, MIGRATIONS.length);
  if (version === MIGRATIONS.length) return null;
  const message = `${path} has schema version ${version}, and this proxywarden reads ${MIGRATIONS.length}; start the daemon of this version on it once, which brings it up to date`;
  return { kind: "older", message };
}

function readerOver(database: DatabaseSync): StoreReader {
  const { decisions, actions, episodes, operatorCommands, timers, holds, facts } = createRowReader(database);
  return {
    decisions,
    actions,
    episodes,
    operatorCommands,
    timers: (node) => timers(node),
    holds: (node) => holds(node),
    facts,
    fact(key) {
      const row = database.prepare("SELECT value FROM facts WHERE key = ?").get(key);
      return row === undefined ? null : String(row.value);
    },
    callsSince(day) {
      return Number(database.prepare("SELECT TOTAL(used) AS used FROM calls WHERE day >= ?").get(day)!.used);
    },
    close: () => {
      if (database.isOpen) database.close();
    },
  };
}

const isMissingFile = (error: unknown) =>
  error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
