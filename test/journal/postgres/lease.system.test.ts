import { afterAll, describe, expect, test } from "vitest";
import { SECOND_MS } from "../../../src/base/duration.ts";
import { LeadershipLost, Lease } from "../../../src/journal/postgres/lease.ts";
import { createLeaderStore, openMigratedDatabase, openSharedState } from "../../../src/journal/postgres/store.ts";
import type { Clock, StateStore } from "../../../src/model/ports.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { startTcpProxy } from "../../harness/servers/tcp-proxy.ts";
import { waitUntil } from "../../integration/wait-until.ts";
import { actionOf, decisionOf, episodeOf, holdOf, timerOf } from "../arbitrary-changes.ts";
import { newSchema, postgresDeps, removeCluster, sharedCluster } from "../state-stores.ts";

afterAll(removeCluster);

const LEASE_MS = 10 * SECOND_MS;

/** A monotonic clock that the test sets. */
function settableClock() {
  const time = { now: 0 };
  const clock: Clock = { now: () => time.now, monotonic: () => time.now, sleep: async () => {} };
  return { time, clock };
}

/** A daemon on a schema: its database and its lease. */
async function startInstance(schema: string, holder: string, url?: string) {
  const { time, clock } = settableClock();
  const deps = { ...(await postgresDeps(schema, url)), clock };
  const database = orThrow(await openMigratedDatabase(deps));
  const lease = new Lease({ ...deps, database, holder, url: `http://${holder}`, leaseMs: LEASE_MS });
  return { time, deps, database, lease, close: () => database.close() };
}

/** Ends the lease of a schema by the database's clock. */
const expireLease = async (schema: string) =>
  (await sharedCluster()).query(`UPDATE "${schema}".leases SET expires_at = clock_timestamp()`);

describe("the lease", () => {
  test("has one holder; a release hands it over immediately, with the next epoch", async () => {
    const schema = newSchema();
    const [one, two] = [await startInstance(schema, "one"), await startInstance(schema, "two")];
    expect(await one.lease.current()).toBeNull();
    expect([await one.lease.acquire(), await two.lease.acquire()]).toEqual([true, false]);
    expect(await two.lease.current()).toMatchObject({ holder: "one", url: "http://one", epoch: one.lease.epoch() });
    const first = one.lease.epoch()!;
    expect([one.lease.isLeader(), two.lease.isLeader()]).toEqual([true, false]);
    await one.lease.release();
    expect(one.lease.isLeader()).toBe(false);
    await expect(one.lease.renew()).rejects.toThrow("this daemon does not lead");
    expect(await two.lease.current()).toMatchObject({ epoch: first, leftMs: 0 });
    expect(await two.lease.acquire()).toBe(true);
    expect(two.lease.epoch()).toBeGreaterThan(first);
    expect(one.lease.epoch()).toBeNull();
    await Promise.all([one.close(), two.close()]);
  });

  test("ends by the daemon's own clock, counted from before its request, and is renewed", async () => {
    const schema = newSchema();
    const { lease, time, close } = await startInstance(schema, "one");
    await lease.acquire();
    time.now = LEASE_MS - 1;
    expect([lease.isLeader(), lease.leftMs()]).toEqual([true, 1]);
    const renewing = lease.renew();
    // The answer arrives later.
    time.now += 2 * SECOND_MS;
    expect(lease.isLeader()).toBe(false);
    await renewing;
    expect(lease.leftMs()).toBe(LEASE_MS - 2 * SECOND_MS);
    await close();
  });

  test("is renewed after its end unless another daemon took it", async () => {
    const schema = newSchema();
    const [one, two] = [await startInstance(schema, "one"), await startInstance(schema, "two")];
    await one.lease.acquire();
    await expireLease(schema);
    await one.lease.renew();
    expect(await two.lease.acquire()).toBe(false);
    await expireLease(schema);
    expect(await two.lease.acquire()).toBe(true);
    await expect(one.lease.renew()).rejects.toThrow(LeadershipLost);
    expect([one.lease.epoch(), one.lease.isLeader()]).toEqual([null, false]);
    await Promise.all([one.close(), two.close()]);
  });

  test("is kept by a daemon whose schema another one has migrated, but can't be acquired by it again", async () => {
    const schema = newSchema();
    const [one, two] = [await startInstance(schema, "one"), await startInstance(schema, "two")];
    await one.lease.acquire();
    await (await sharedCluster()).query(`UPDATE "${schema}".schema_version SET version = 99`);
    await one.lease.renew();
    const { journal } = await createLeaderStore(one.database, one.lease, one.deps);
    await journal.commit([{ kind: "episode", row: episodeOf(1) }]);
    // Another daemon leads: that is no problem.
    expect(await two.lease.acquire()).toBe(false);
    await one.lease.release();
    await expect(two.lease.acquire()).rejects.toThrow(
      /^schema .* has schema version 99, but this version of proxywarden supports \d+ at most/,
    );
    expect(await two.lease.current()).toMatchObject({ holder: "one", leftMs: 0 });
    await Promise.all([one.close(), two.close()]);
  });

  test("is granted to only one of two daemons that request it at the same time", async () => {
    const schema = newSchema();
    const instances = [await startInstance(schema, "one"), await startInstance(schema, "two")];
    for (let round = 0; round < 5; round++) {
      const acquired = await Promise.all(instances.map(({ lease }) => lease.acquire()));
      expect(acquired.filter(Boolean)).toHaveLength(1);
      await Promise.all(instances.map(({ lease }) => lease.release()));
    }
    await Promise.all(instances.map(({ close }) => close()));
  });
});

describe("after a change to the database behind the daemons' back", () => {
  test("a leader is deposed although an earlier state was restored, from which another daemon took the lease", async () => {
    const schema = newSchema();
    const [one, two] = [await startInstance(schema, "one"), await startInstance(schema, "two")];
    await one.lease.acquire();
    await (await sharedCluster()).query(`DELETE FROM "${schema}".leases`);
    expect(await two.lease.acquire()).toBe(true);
    await expect(one.lease.renew()).rejects.toThrow(LeadershipLost);
    await Promise.all([one.close(), two.close()]);
  });

  test("a lease that seems to end much later than any can is taken, since the clock was set back", async () => {
    const schema = newSchema();
    const [one, two] = [await startInstance(schema, "one"), await startInstance(schema, "two")];
    await one.lease.acquire();
    const endIn = async (time: string) =>
      (await sharedCluster()).query(
        `UPDATE "${schema}".leases SET expires_at = clock_timestamp() + interval '${time}'`,
      );
    await endIn("9min");
    expect(await two.lease.acquire()).toBe(false);
    await endIn("11min");
    expect(await two.lease.acquire()).toBe(true);
    await Promise.all([one.close(), two.close()]);
  });
});

describe("a deposed leader", () => {
  test("writes nothing: neither changes, nor calls, nor facts", async () => {
    const schema = newSchema();
    const [one, two] = [await startInstance(schema, "one"), await startInstance(schema, "two")];
    await one.lease.acquire();
    const old = await createLeaderStore(one.database, one.lease, one.deps);
    await old.journal.commit([{ kind: "episode", row: episodeOf(1) }]);
    await expireLease(schema);
    await two.lease.acquire();
    await expect(
      old.journal.commit([
        { kind: "episode", row: episodeOf(1, { acted: 1 }) },
        { kind: "action", row: actionOf(2, "ep-1") },
        { kind: "decision", row: decisionOf(3) },
        { kind: "timer", row: timerOf("node_1") },
        { kind: "hold", row: holdOf("node_1") },
        { kind: "fact", key: "remediation.pause", value: "x" },
        { kind: "fact", key: "key", value: "value" },
      ]),
    ).rejects.toThrow(LeadershipLost);
    await expect(old.calls.add("2026-11-01", 1)).rejects.toThrow(LeadershipLost);
    await old.close();
    const store = await createLeaderStore(two.database, two.lease, two.deps);
    expect(await store.journal.load(0)).toMatchObject({
      episodes: [episodeOf(1)],
      actions: [],
      timers: [],
      holds: [],
      facts: new Map(),
      lastNumber: 1,
    });
    expect(await store.journal.decisions({ limit: 9 })).toEqual([]);
    expect(store.calls.since("")).toBe(0);
    await Promise.all([one.close(), two.close()]);
  });

  test("can't write after the end of its lease until it has renewed it", async () => {
    const schema = newSchema();
    const { lease, database, deps, close } = await startInstance(schema, "one");
    await lease.acquire();
    const { journal } = await createLeaderStore(database, lease, deps);
    await expireLease(schema);
    await expect(journal.commit([{ kind: "episode", row: episodeOf(1) }])).rejects.toThrow("not renewed yet");
    expect((await journal.load(0)).episodes).toEqual([]);
    await lease.renew();
    await journal.commit([{ kind: "episode", row: episodeOf(1) }]);
    await close();
  });
});

test("a commit that arrives after a later one is not written", async () => {
  const schema = newSchema();
  const { lease, database, deps, close } = await startInstance(schema, "one");
  await lease.acquire();
  const { journal } = await createLeaderStore(database, lease, deps);
  await (await sharedCluster()).query(`UPDATE "${schema}".last_commit SET epoch = ${lease.epoch()}, number = 5`);
  const late = journal.commit([{ kind: "episode", row: episodeOf(1) }]);
  await expect(late).rejects.toThrow("a later commit was written first");
  expect((await journal.load(0)).episodes).toEqual([]);
  await close();
});

test("a renewal that gets no answer is given up in time for the next one", async () => {
  const schema = newSchema();
  const proxy = await startTcpProxy((await sharedCluster()).port);
  const { lease, close } = await startInstance(schema, "one", (await sharedCluster()).url({ port: proxy.port }));
  await lease.acquire();
  proxy.drop = "to_client";
  await expect(lease.renew()).rejects.toThrow("can't be reached");
  proxy.drop = null;
  await lease.renew();
  expect(lease.isLeader()).toBe(true);
  await close();
  await proxy.close();
});

test("history queries that wait for the database leave connections for the renewal of the lease", async () => {
  const schema = newSchema();
  const { lease, openStore, close } = orThrow(await openSharedState(await postgresDeps(schema)));
  await lease.acquire();
  const { journal, calls } = await openStore();
  const other = await startInstance(schema, "two");
  await other.database.transaction(async (connection) => {
    await connection.query(`LOCK TABLE ${other.database.schema}.decisions`);
    const reads = Array.from({ length: 8 }, () => journal.decisions({ limit: 1 }).catch(() => null));
    await lease.renew();
    await calls.add("2026-11-01", 1);
    await connection.query("ROLLBACK; BEGIN");
    await Promise.all(reads);
  });
  await Promise.all([close(), other.close()]);
});

test.each([
  {
    what: "a commit",
    table: "last_commit",
    write: ({ journal }: StateStore) => journal.commit([{ kind: "episode", row: episodeOf(1) }]),
  },
  { what: "the count of calls", table: "calls", write: ({ calls }: StateStore) => calls.add("2026-11-01", 200) },
])(
  "$what that waits for a row which another client has locked does not keep the lease from being renewed",
  async ({ table, write }) => {
    const schema = newSchema();
    const { lease, database, deps, close } = await startInstance(schema, "one");
    await lease.acquire();
    const store = await createLeaderStore(database, lease, deps);
    await store.calls.add("2026-11-01", 1);
    const other = await startInstance(schema, "two");
    await other.database.transaction(async (connection) => {
      await connection.query(`SELECT FROM ${database.schema}.${table} FOR UPDATE`);
      const written = expect(write(store)).rejects.toThrow("lock timeout");
      await waitUntil("the write waits", async () => {
        const [row] = await connection.query(`SELECT FROM pg_locks WHERE NOT granted`);
        return row !== undefined;
      });
      await lease.renew();
      await written;
    });
    await write(store);
    await Promise.all([close(), other.close()]);
  },
);
