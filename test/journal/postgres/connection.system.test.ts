import { afterAll, expect, onTestFinished, test } from "vitest";
import { MonthCallCount } from "../../../src/api-client/month-call-count.ts";
import { DAY_MS } from "../../../src/base/duration.ts";
import { isUnreachable, openDatabase, READ_SNAPSHOT } from "../../../src/journal/postgres/database.ts";
import { parseDatabaseUrl } from "../../../src/journal/postgres/url.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { createLedger } from "../../../src/rate-limit/ledger.ts";
import { openRemediationState } from "../../../src/remediation/state/journaled-state.ts";
import { createVirtualClock } from "../../../src/simulator/clock.ts";
import { createPlanLimits, createRecordingLog, START_MS } from "../../harness/daemon/virtual-daemon.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { startTcpProxy } from "../../harness/servers/tcp-proxy.ts";
import { waitUntil } from "../../integration/wait-until.ts";
import { actionOf, decisionOf, episodeOf } from "../arbitrary-changes.ts";
import { newSchema, openPostgres, postgresDeps, removeCluster, sharedCluster } from "../state-stores.ts";

afterAll(removeCluster);

/** Opens a store through a proxy. */
async function openThroughProxy() {
  const cluster = await sharedCluster();
  const proxy = await startTcpProxy(cluster.port);
  const schema = newSchema();
  const store = await openPostgres(postgresDeps(schema, cluster.url({ port: proxy.port })));
  const usedInDatabase = async () =>
    Number((await cluster.query(`SELECT COALESCE(sum(used), 0) AS used FROM "${schema}".calls`))[0]!.used);
  return { cluster, proxy, schema, store, usedInDatabase };
}

/** Opens a database, which is closed after the test. */
async function openRaw() {
  const database = orThrow(openDatabase(await postgresDeps()));
  onTestFinished(() => database.close());
  return database;
}

const stateOver = (store: Awaited<ReturnType<typeof openPostgres>>) =>
  openRemediationState({
    journal: store.journal,
    clock: systemClock,
    log: createRecordingLog(),
    lostReason: null,
  });

/** Counts calls in a store as the daemon does, from March 1st. */
function countOver({ calls }: Awaited<ReturnType<typeof openPostgres>>) {
  const clock = createVirtualClock(START_MS);
  const ledger = createLedger(createPlanLimits("enterprise"), 0);
  return { clock, month: new MonthCallCount({ clock, calls, log: createRecordingLog() }, ledger, 1) };
}

/** Calls that are counted in advance. */
const CALLS_AHEAD = 100;

test("calls are counted in blocks before they are used, and unused ones are given back", async () => {
  const { store, usedInDatabase, schema } = await openThroughProxy();
  const { clock, month } = countOver(store);
  await month.add(1);
  expect(await usedInDatabase()).toBe(1 + CALLS_AHEAD);
  for (let call = 1; call < 250; call++) {
    await month.add(1);
    expect(store.calls.since("2026-03-01")).toBeGreaterThan(call);
  }
  expect(await usedInDatabase()).toBeGreaterThanOrEqual(250);
  await clock.advance(DAY_MS);
  await month.add(1);
  await month.flush();
  await waitUntil("unused calls are given back", async () => (await usedInDatabase()) === 251);
  await store.close();
  const next = await openPostgres(postgresDeps(schema));
  expect([next.calls.since("2026-03-01"), next.calls.since("2026-03-02")]).toEqual([251, 1]);
});

test("a leader that was killed has used its whole block", async () => {
  const { store, cluster, schema } = await openThroughProxy();
  await countOver(store).month.add(1);
  await cluster.query(`UPDATE "${schema}".leases SET expires_at = clock_timestamp()`);
  const next = await openPostgres(postgresDeps(schema));
  expect(next.calls.since("2026-03-01")).toBe(1 + CALLS_AHEAD);
});

test("calls are counted by day, and a negative number takes some back", async () => {
  const { store, usedInDatabase, schema } = await openThroughProxy();
  await store.calls.add("2026-11-01", 100);
  await store.calls.add("2026-11-01", 100);
  await store.calls.add("2026-11-02", 50);
  await store.calls.add("2026-11-01", -30);
  expect([store.calls.since("2026-11-01"), await usedInDatabase()]).toEqual([220, 220]);
  await store.close();
  const next = await openPostgres(postgresDeps(schema));
  expect([next.calls.since("2026-11-01"), next.calls.since("2026-11-02")]).toEqual([220, 50]);
});

test("while a commit takes 2 s, calls continue within their block, and changes recorded in the meantime are written after it, in order", async () => {
  const { store, proxy } = await openThroughProxy();
  const state = await stateOver(store);
  const { month } = countOver(store);
  await month.add(1);
  proxy.delayMs = 2_000;
  let isWritten = false;
  const committing = state
    .commit(() => [{ kind: "episode", row: episodeOf(1) }])
    .then((result) => {
      isWritten = true;
      return result;
    });
  state.record([{ kind: "action", row: actionOf(2, "ep-1", { state: "intended" }) }]);
  state.record([{ kind: "decision", row: decisionOf(3) }]);
  state.record([{ kind: "action", row: actionOf(2, "ep-1", { state: "ended" }) }]);
  for (let call = 0; call < CALLS_AHEAD / 2 - 1; call++) await month.add(1);
  expect(isWritten).toBe(false);
  expect(await committing).toBe(true);
  proxy.delayMs = 0;
  await state.flush();
  const { episodes, actions } = await store.journal.load(0);
  expect([episodes.map(({ id }) => id), actions.map(({ state }) => state)]).toEqual([["ep-1"], ["ended"]]);
  expect(await store.journal.decisions({ limit: 9 })).toHaveLength(1);
});

test("while the database is unavailable nothing is lost and commits are refused; once it is back, everything is written in order", async () => {
  const { store, proxy } = await openThroughProxy();
  const state = await stateOver(store);
  await state.commit(() => [{ kind: "episode", row: episodeOf(1) }]);
  proxy.setRefusing(true);
  expect(await state.commit(() => [{ kind: "action", row: actionOf(2, "ep-1") }])).toBe(false);
  expect(state.records.action("act-2")).toBeNull();
  expect(state.journalProblem()).toContain("can't be reached");
  for (let step = 0; step < 50; step++) {
    state.record([{ kind: "decision", row: decisionOf(step, { step }) }]);
    state.record([{ kind: "episode", row: episodeOf(1, { acted: step }) }]);
  }
  state.facts.write("collect.network_size", "kept");
  proxy.setRefusing(false);
  await waitUntil(
    () => `the journal is written again: ${state.journalProblem()}`,
    async () => {
      await state.flush();
      return state.journalProblem() === null;
    },
  );
  expect((await store.journal.decisions({ limit: 99 })).map(({ step }) => step)).toEqual(
    Array.from({ length: 50 }, (_, step) => 49 - step),
  );
  expect((await store.journal.load(0)).episodes).toMatchObject([{ acted: 49 }]);
  expect((await store.journal.facts()).get("collect.network_size")).toBe("kept");
  await store.close();
});

test("a server that takes too long counts as unreachable, so that a daemon that starts then stands by", async () => {
  const database = await openRaw();
  const slow = database.use(async (connection) => {
    await connection.query("SET statement_timeout = 50");
    await connection.query("SELECT pg_sleep(1)");
  });
  const error = await slow.catch((rejection: unknown) => rejection);
  expect([String(error), isUnreachable(error)]).toEqual([expect.stringContaining("statement timeout"), true]);
});

test("a server that ends a connection between two statements counts as unreachable", async () => {
  const database = await openRaw();
  const ended = database.use(async (connection) => {
    const [row] = await connection.query("SELECT pg_backend_pid() AS pid");
    await database.query("SELECT pg_terminate_backend($1), pg_sleep(0.2)", [Number(row!.pid)]);
    await connection.query("SELECT 1");
  });
  const error = await ended.catch((rejection: unknown) => rejection);
  expect([String(error), isUnreachable(error)]).toEqual([expect.stringContaining("can't be reached"), true]);
});

test("the server ends a transaction whose client is gone, with its locks", async () => {
  const database = await openRaw();
  expect(await database.query("SHOW idle_in_transaction_session_timeout")).toEqual([
    { idle_in_transaction_session_timeout: "30s" },
  ]);
});

test("a snapshot of the state, which an export reads as slowly as its output is taken, may be idle for longer", async () => {
  const database = await openRaw();
  const show = "SHOW idle_in_transaction_session_timeout";
  expect(await database.transaction((connection) => connection.query(show), READ_SNAPSHOT)).toEqual([
    { idle_in_transaction_session_timeout: "10min" },
  ]);
  expect(await database.query(show)).toEqual([{ idle_in_transaction_session_timeout: "30s" }]);
});

test("a restart of the database is survived", async () => {
  const { store, cluster } = await openThroughProxy();
  const state = await stateOver(store);
  await state.commit(() => [{ kind: "episode", row: episodeOf(1) }]);
  await cluster.stop("immediate");
  state.record([{ kind: "episode", row: episodeOf(1, { acted: 1 }) }]);
  await cluster.start();
  await waitUntil(
    () => `the journal is written again: ${state.journalProblem()}`,
    async () => {
      await state.flush();
      return state.journalProblem() === null;
    },
  );
  expect((await store.journal.load(0)).episodes).toMatchObject([{ acted: 1 }]);
});

test.each([
  ["http://h/db", "it must be the URL of a PostgreSQL database"],
  ["postgres://h/db", "it names no user"],
  ["postgres://u@h", "it names no database"],
  [
    "postgres://u@h/db?sslmode=prefer",
    'its sslmode is "prefer"; it must be disable, require, verify-ca or verify-full',
  ],
  ["postgres://u@h/db?sslmode=verify-full&sslrootcert=/gone.pem", "its sslrootcert /gone.pem can't be read: ENOENT"],
  ["postgres://u:secret@h/db?pool=1", 'its parameter "pool" is not supported'],
])("the URL %s is refused: %s", (url, problem) => {
  const parsed = parseDatabaseUrl(url);
  expect(parsed).toEqual({ ok: false, error: expect.stringContaining(problem) });
  expect(JSON.stringify(parsed)).not.toContain("secret");
});

test("the parts of a URL are decoded, and a Unix socket is a host", () => {
  expect(parseDatabaseUrl("postgresql://u%40x:p%2Fw@[::1]:5433/my%20db")).toEqual({
    ok: true,
    value: { host: "::1", port: 5_433, database: "my db", user: "u@x", password: "p/w", tls: false },
  });
  expect(parseDatabaseUrl("postgres://u@localhost/db?host=/run/postgresql")).toMatchObject({
    value: { host: "/run/postgresql", port: 5_432 },
  });
});
