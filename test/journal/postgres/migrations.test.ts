import { afterAll, expect, test } from "vitest";
import { type Database, openDatabase } from "../../../src/journal/postgres/database.ts";
import { createJournalQueries, createPostgresJournal } from "../../../src/journal/postgres/journal.ts";
import { LeadershipLost, Lease } from "../../../src/journal/postgres/lease.ts";
import { MIGRATIONS, migrate } from "../../../src/journal/postgres/migrations.ts";
import { openMigratedDatabase, readPostgresState } from "../../../src/journal/postgres/store.ts";
import { freePort } from "../../harness/free-port.ts";
import { episodeOf } from "../arbitrary-changes.ts";
import { EARLIER_ROWS, RENAMED_ROWS } from "../earlier-names.ts";
import { fixedSecret, newSchema, openPostgres, postgresDeps, removeCluster, sharedCluster } from "../state-stores.ts";

afterAll(removeCluster);

async function openRaw(schema: string) {
  const database = openDatabase(await postgresDeps(schema));
  if (!database.ok) throw new Error(database.error.message);
  return database.value;
}

const versionOf = async (schema: string) =>
  (await (await sharedCluster()).query(`SELECT version FROM "${schema}".schema_version`)).map(({ version }) => version);

test("daemons that start at the same time migrate a schema once", async () => {
  const schema = newSchema();
  const deps = await postgresDeps(schema);
  const opened = await Promise.all([1, 2, 3].map(() => openMigratedDatabase(deps)));
  expect(opened.map(({ ok }) => ok)).toEqual([true, true, true]);
  expect(await versionOf(schema)).toEqual([MIGRATIONS.length]);
  await Promise.all(opened.map((store) => (store.ok ? store.value.close() : null)));
});

test("a migration that fails leaves the schema at its version", async () => {
  const schema = newSchema();
  const database = await openRaw(schema);
  await migrate(database);
  const failing = [...MIGRATIONS, (s: string) => `CREATE TABLE ${s}.more (a text); SELECT 1 / 0`];
  await expect(migrate(database, failing)).rejects.toThrow("division by zero");
  expect(await versionOf(schema)).toEqual([MIGRATIONS.length]);
  const tables = await database.query("SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'more'", [schema]);
  expect(tables).toEqual([]);
  await database.close();
});

/** Writes {@link EARLIER_ROWS} into the tables of a schema of version 2. */
async function fillSecondVersion(database: Database): Promise<void> {
  const { schema: s } = database;
  const { episodes, actions, commands, facts } = EARLIER_ROWS;
  const number = ({ id }: { readonly id: string }) => Number(id.split("-")[1]);
  for (const row of episodes)
    await database.query(`INSERT INTO ${s}.episodes VALUES ($1, $2, $3, $4, $5, 1, null, $6::jsonb)`, [
      number(row),
      row.id,
      row.policy,
      row.node,
      row.state,
      JSON.stringify(row),
    ]);
  for (const row of actions)
    await database.query(`INSERT INTO ${s}.actions VALUES ($1, $2, $3, $4, $5, $6, 1, 1, $7::jsonb)`, [
      number(row),
      row.id,
      row.episode,
      row.policy,
      row.node,
      row.state,
      JSON.stringify(row),
    ]);
  const insertCommand = `INSERT INTO ${s}.orders (at, node, body) VALUES ($1, $2, $3::jsonb)`;
  for (const row of commands) await database.query(insertCommand, [row.at, row.node, JSON.stringify(row)]);
  for (const [key, value] of Object.entries(facts))
    await database.query(`INSERT INTO ${s}.facts VALUES ($1, $2)`, [key, value]);
}

test("a dry run that version 2 wrote stays one, and its facts get their new names", async () => {
  const schema = newSchema();
  const database = await openRaw(schema);
  await migrate(database, MIGRATIONS.slice(0, 2));
  await fillSecondVersion(database);
  await migrate(database);
  const journal = createJournalQueries(database);
  const loaded = await journal.load(0);
  const commands = await journal.operatorCommands({ limit: 9 });
  expect({ ...loaded, facts: Object.fromEntries(loaded.facts), commands }).toMatchObject(RENAMED_ROWS);
  expect([...loaded.episodes, ...loaded.actions].filter((row) => "shadow" in row)).toEqual([]);
  for (const view of ["proxywarden_episodes", "proxywarden_actions"]) {
    const rows = await database.query(`SELECT dry_run FROM ${database.schema}.${view} ORDER BY number`);
    expect(rows).toEqual([{ dry_run: true }, { dry_run: false }]);
  }
  await database.close();
});

test("a leader of version 2 neither writes nor leads once the schema has later names", async () => {
  const deps = await postgresDeps();
  const database = await openRaw(deps.schema);
  await migrate(database, MIGRATIONS.slice(0, 2));
  const lease = new Lease({ ...deps, database, url: null });
  expect(await lease.acquire()).toBe(true);
  await migrate(database);
  await expect(createPostgresJournal(database, lease).commit([{ kind: "episode", row: episodeOf(1) }])).rejects.toThrow(
    LeadershipLost,
  );
  expect(lease.isLeader()).toBe(false);
  expect(await createJournalQueries(database).load(0)).toMatchObject({ episodes: [] });
  await database.close();
});

/** Reads nothing. */
const read = () => Promise.resolve();

test("an older daemon refuses a newer schema, and names both versions", async () => {
  const schema = newSchema();
  await (await openPostgres(postgresDeps(schema))).close();
  await (await sharedCluster()).query(`UPDATE "${schema}".schema_version SET version = 99`);
  const deps = await postgresDeps(schema);
  const message = `schema "${schema}" in postgres://postgres@127.0.0.1:${(await sharedCluster()).port}/postgres has schema version 99, and this proxywarden knows ${MIGRATIONS.length} at most; run the version that wrote it, or a later one`;
  expect(await openMigratedDatabase(deps)).toEqual({ ok: false, error: { kind: "newer", message } });
  expect(await readPostgresState(deps, read)).toEqual({ ok: false, error: { kind: "newer", message } });
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
  expect(await readPostgresState(refused, read)).toMatchObject({ ok: false, error: { kind: "unusable" } });
  const unreachable = { ...deps, url: fixedSecret(cluster.url({ port: await freePort() })) };
  expect(await readPostgresState(unreachable, read)).toMatchObject({ ok: false, error: { kind: "unreachable" } });
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
