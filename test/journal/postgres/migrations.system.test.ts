import { afterAll, expect, test } from "vitest";
import { openDatabase } from "../../../src/journal/postgres/database.ts";
import { MIGRATIONS, migrate, VERSIONS } from "../../../src/journal/postgres/migrations.ts";
import { openMigratedDatabase, readPostgresState } from "../../../src/journal/postgres/store.ts";
import { orThrow } from "../../harness/or-throw.ts";
import { freePort } from "../../harness/servers/free-port.ts";
import { fixedSecret, newSchema, openPostgres, postgresDeps, removeCluster, sharedCluster } from "../state-stores.ts";

afterAll(removeCluster);

async function openRaw(schema: string) {
  return orThrow(openDatabase(await postgresDeps(schema)));
}

const versionOf = async (schema: string) =>
  (await (await sharedCluster()).query(`SELECT version FROM "${schema}".schema_version`)).map(({ version }) => version);

test("daemons that start at the same time migrate a schema once", async () => {
  const schema = newSchema();
  const deps = await postgresDeps(schema);
  const opened = await Promise.all([1, 2, 3].map(() => openMigratedDatabase(deps)));
  expect(opened.map(({ ok }) => ok)).toEqual([true, true, true]);
  expect(await versionOf(schema)).toEqual([VERSIONS.last]);
  await Promise.all(opened.map((store) => (store.ok ? store.value.close() : null)));
});

test("a migration that fails leaves the schema at its version", async () => {
  const schema = newSchema();
  const database = await openRaw(schema);
  await migrate(database);
  const failing = [...MIGRATIONS, (s: string) => `CREATE TABLE ${s}.more (a text); SELECT 1 / 0`];
  await expect(migrate(database, failing)).rejects.toThrow("division by zero");
  expect(await versionOf(schema)).toEqual([VERSIONS.last]);
  const tables = await database.query("SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'more'", [schema]);
  expect(tables).toEqual([]);
  await database.close();
});

/** Reads nothing. */
const read = () => Promise.resolve();

test("an older daemon refuses a newer schema, and names both versions", async () => {
  const schema = newSchema();
  await (await openPostgres(postgresDeps(schema))).close();
  await (await sharedCluster()).query(`UPDATE "${schema}".schema_version SET version = 99`);
  const deps = await postgresDeps(schema);
  const message = `schema "${schema}" in postgres://postgres@127.0.0.1:${(await sharedCluster()).port}/postgres has schema version 99, but this version of proxywarden supports ${VERSIONS.last} at most; run the version that wrote it, or a later one`;
  expect(await openMigratedDatabase(deps)).toEqual({ ok: false, error: { kind: "unsupported", message } });
  expect(await readPostgresState(deps, read)).toEqual({ ok: false, error: { kind: "unsupported", message } });
});

test("a schema of a build from before the first release is refused with what to do", async () => {
  const schema = newSchema();
  const database = await openRaw(schema);
  await migrate(database);
  await (await sharedCluster()).query(`UPDATE "${schema}".schema_version SET version = 2`);
  const message = `schema "${schema}" in ${database.name} has schema version 2, but this version of proxywarden supports 3 and later; a build from before the first release wrote it; move it away, or see "Changes during development" in CHANGELOG.md for how to keep it`;
  const deps = await postgresDeps(schema);
  expect(await openMigratedDatabase(deps)).toEqual({ ok: false, error: { kind: "unsupported", message } });
  expect(await readPostgresState(deps, read)).toEqual({ ok: false, error: { kind: "unsupported", message } });
  await database.close();
});

test("a reader creates nothing where there is no journal", async () => {
  const schema = newSchema();
  const deps = await postgresDeps(schema);
  expect(await readPostgresState(deps, read)).toMatchObject({ ok: false, error: { kind: "missing" } });
  expect(await (await sharedCluster()).query("SELECT FROM pg_namespace WHERE nspname = $1", [schema])).toEqual([]);
});

test("a reader says whether the server can't be reached or refuses", async () => {
  const cluster = await sharedCluster();
  const deps = await postgresDeps(newSchema());
  const refused = { ...deps, url: fixedSecret(cluster.url().replace("postgres@", "stranger@")) };
  expect(await readPostgresState(refused, read)).toMatchObject({
    ok: false,
    error: { kind: "unusable", message: expect.stringMatching(/ can't be used: role "stranger" does not exist$/) },
  });
  const unreachable = { ...deps, url: fixedSecret(cluster.url({ port: await freePort() })) };
  expect(await readPostgresState(unreachable, read)).toMatchObject({
    ok: false,
    error: { kind: "unreachable", message: expect.stringMatching(/ can't be reached: connect ECONNREFUSED/) },
  });
});

test("a user who may not create schemas can use an existing one", async () => {
  const cluster = await sharedCluster();
  const schema = newSchema();
  await cluster.query(`CREATE ROLE restricted LOGIN; CREATE SCHEMA "${schema}" AUTHORIZATION restricted`);
  const url = fixedSecret(cluster.url().replace("postgres@", "restricted@"));
  const opened = await openMigratedDatabase({ ...(await postgresDeps(schema)), url });
  expect(opened).toMatchObject({ ok: true });
  if (opened.ok) await opened.value.close();
  const refused = await openMigratedDatabase({ ...(await postgresDeps(newSchema())), url });
  expect(refused).toMatchObject({ ok: false, error: { message: expect.stringContaining("permission denied") } });
});
