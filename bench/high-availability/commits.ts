import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MINUTE_MS, SECOND_MS } from "../../src/base/duration.ts";
import { Lease } from "../../src/journal/postgres/lease.ts";
import { createLeaderStore, openMigratedDatabase } from "../../src/journal/postgres/store.ts";
import { openSqliteStore } from "../../src/journal/sqlite/store.ts";
import type { StateStore } from "../../src/model/ports.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { PostgresCluster } from "../../test/harness/servers/postgres-cluster.ts";
import { actionOf, decisionOf, episodeOf } from "../../test/journal/arbitrary-changes.ts";
import { fixedSecret } from "../../test/journal/state-stores.ts";
import { median } from "../bench-process.ts";

/** Speed of the two journals. */
export interface CommitSpeed {
  /** Commits a second, one after another, in a temporary folder. */
  readonly sqlite: number;
  readonly postgres: number;
  readonly roundTripsPerCall: number;
}

const ROUNDS = 11;
const COMMITS_PER_ROUND = 100;
const CALLS = 10_000;
const DAY = "2026-11-01";

/** Measures both journals in alternating rounds. Returns medians. */
export async function measureCommits(cluster: PostgresCluster): Promise<CommitSpeed> {
  const folder = mkdtempSync(join(tmpdir(), "commits-"));
  return measureIn(folder, cluster).finally(() => rmSync(folder, { recursive: true }));
}

async function measureIn(folder: string, cluster: PostgresCluster): Promise<CommitSpeed> {
  const sqlite = openSqliteStore(folder);
  if (!sqlite.ok) throw new Error(sqlite.error.message);
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const opened = await openMigratedDatabase({
    url: fixedSecret(cluster.url()),
    schema: "commits",
    clock: systemClock,
    log,
  });
  if (!opened.ok) throw new Error(opened.error.message);
  const database = opened.value;
  const lease = new Lease({ database, holder: "bench", url: null, leaseMs: 5 * MINUTE_MS, clock: systemClock });
  await lease.acquire();
  const postgres = await createLeaderStore(database, lease, { log });
  const speeds = { sqlite: [] as number[], postgres: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    speeds.sqlite.push(await commitsPerSecond(sqlite.value, round));
    speeds.postgres.push(await commitsPerSecond(postgres, round));
  }
  let roundTrips = 0;
  const query = database.query.bind(database);
  database.query = (...args) => {
    roundTrips++;
    return query(...args);
  };
  for (let call = 0; call < CALLS; call++) await postgres.calls.add(DAY, 1);
  await postgres.close();
  await database.close();
  await sqlite.value.close();
  return {
    sqlite: median(speeds.sqlite),
    postgres: median(speeds.postgres),
    roundTripsPerCall: roundTrips / CALLS,
  };
}

/** Commits what a step writes: its action, its episode and the decision. */
async function commitsPerSecond({ journal }: StateStore, round: number): Promise<number> {
  const startedAt = performance.now();
  for (let commit = 0; commit < COMMITS_PER_ROUND; commit++) {
    const number = 2 * (round * COMMITS_PER_ROUND + commit) + 1;
    await journal.commit([
      { kind: "episode", row: episodeOf(number) },
      { kind: "action", row: actionOf(number + 1, `ep-${number}`) },
      { kind: "decision", row: decisionOf(number) },
    ]);
  }
  return (COMMITS_PER_ROUND * SECOND_MS) / (performance.now() - startedAt);
}
