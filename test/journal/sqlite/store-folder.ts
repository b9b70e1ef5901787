import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { openSqliteStore, type SqliteStateStore } from "../../../src/journal/sqlite/store.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { killOtherProcesses } from "./other-process.ts";

/** The folder of a store. */
export interface StoreFolder {
  readonly path: string;
  /** Path of its database. */
  readonly database: string;
  /** Opens the store in it. Throws what is wrong with it. */
  open(): SqliteStateStore;
}

/** Creates a folder before each test of a file, and removes it afterwards. Other processes are killed first. */
export function useStoreFolder(): StoreFolder {
  let path = "";
  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), "state-"));
  });
  afterEach(() => {
    killOtherProcesses();
    rmSync(path, { recursive: true });
  });
  return {
    get path() {
      return path;
    },
    get database() {
      return join(path, "proxywarden.db");
    },
    open: () => openStore(path),
  };
}

/** Opens the store in a folder. Throws what is wrong with it. */
export function openStore(folder: string): SqliteStateStore {
  return orThrow(openSqliteStore(folder));
}
