import { onTestFinished } from "vitest";
import { SECOND_MS } from "../../src/base/duration.ts";
import { ok } from "../../src/base/result.ts";
import { toJsonText } from "../../src/journal/postgres/database.ts";
import { openSharedState } from "../../src/journal/postgres/store.ts";
import { createMemoryStateStore } from "../../src/journal/sqlite/store.ts";
import type { Secret, StateStore } from "../../src/model/ports.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { createRecordingLog } from "../harness/daemon/virtual-daemon.ts";
import { orThrow } from "../harness/or-throw.ts";
import { isLongRun } from "../harness/run-length.ts";
import { type PostgresCluster, startPostgres } from "../harness/servers/postgres-cluster.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { openStore } from "./sqlite/store-folder.ts";

/** An implementation of the state store, under test. */
export interface StoreKind {
  readonly name: "SQLite" | "PostgreSQL";
  /** Number of runs of a property. */
  readonly runs: number;
  /** Returns what is stored of a value: PostgreSQL has no NUL in texts. */
  stored<T>(value: T): T;
  /** Opens an empty store. */
  open(): Promise<StateStore>;
  /** Returns a function that opens the same store each time; the first time it is empty. */
  createDurable(): () => Promise<StateStore>;
}

let cluster: Promise<PostgresCluster> | null = null;
let schemas = 0;

/** The PostgreSQL server of the tests of a file. Call {@link removeCluster} after them. */
export function sharedCluster(): Promise<PostgresCluster> {
  cluster ??= startPostgres(["fsync = off"]);
  return cluster;
}

/** Stops the server of {@link sharedCluster}. */
export async function removeCluster(): Promise<void> {
  const started = cluster;
  cluster = null;
  await (await started)?.remove();
}

/** A secret that does not change. */
export const fixedSecret = (text: string): Secret => ({ value: () => text, refresh: () => ok(false) });

/** Returns the name of a schema that does not exist yet. */
export function newSchema(): string {
  schemas++;
  return `state ${schemas}`;
}

/** Returns the dependencies for opening a store. */
export async function postgresDeps(schema = newSchema(), url?: string) {
  return {
    url: fixedSecret(url ?? (await sharedCluster()).url()),
    schema,
    clock: systemClock,
    log: createRecordingLog(),
    leaseMs: 60 * SECOND_MS,
    holder: "one",
    publicUrl: null,
  };
}

/** Opens a store in PostgreSQL as its leader. It is closed after the test. */
export async function openPostgres(
  deps: Awaited<ReturnType<typeof postgresDeps>> | Promise<Awaited<ReturnType<typeof postgresDeps>>> = postgresDeps(),
): Promise<StateStore> {
  const store = await openLeaderStore(await deps);
  onTestFinished(() => store.close());
  return store;
}

/** Opens a store in PostgreSQL as its leader. Throws if another daemon leads. */
export async function openLeaderStore(deps: Awaited<ReturnType<typeof postgresDeps>>): Promise<StateStore> {
  const shared = orThrow(await openSharedState(deps));
  if (!(await shared.lease.acquire())) throw new Error("another daemon leads");
  const store = await shared.openStore();
  return {
    ...store,
    async close() {
      await store.close();
      await shared.close();
    },
  };
}

/** Both implementations. */
export const STORE_KINDS: readonly StoreKind[] = [
  {
    name: "SQLite",
    runs: isLongRun ? 200 : 60,
    stored: (value) => value,
    open: async () => createMemoryStateStore(),
    createDurable() {
      const folder = createTempFolder();
      return async () => openStore(folder.path);
    },
  },
  {
    name: "PostgreSQL",
    runs: isLongRun ? 20 : 10,
    stored: (value) => JSON.parse(toJsonText(value)),
    open: () => openPostgres(),
    createDurable() {
      const schema = newSchema();
      return () => openPostgres(postgresDeps(schema));
    },
  },
];
