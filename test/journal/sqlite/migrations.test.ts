import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { MIGRATIONS, migrate, schemaVersion } from "../../../src/journal/sqlite/migrations.ts";
import { openSqliteStore } from "../../../src/journal/sqlite/store.ts";
import { episodeOf } from "../arbitrary-changes.ts";
import { EARLIER_ROWS, RENAMED_ROWS } from "../earlier-names.ts";

const tables = (database: DatabaseSync) =>
  database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map(({ name }) => name);

test("a new database gets every migration, and a second run changes nothing", async () => {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  expect(schemaVersion(database)).toBe(MIGRATIONS.length);
  database.exec("INSERT INTO facts VALUES ('kept', 'yes')");
  migrate(database);
  expect(schemaVersion(database)).toBe(MIGRATIONS.length);
  expect(database.prepare("SELECT value FROM facts").get()).toEqual({ value: "yes" });
});

test("an older database gets only the missing migrations", async () => {
  const database = new DatabaseSync(":memory:");
  migrate(database, ["CREATE TABLE first (a)"]);
  migrate(database, ["CREATE TABLE first (a)", "CREATE TABLE second (a)"]);
  expect(tables(database)).toEqual(["first", "second"]);
  expect(schemaVersion(database)).toBe(2);
});

test("a database of version 1 keeps its calls and facts and gets a journal", async () => {
  // The first version as it was released. It must not change with the list.
  const path = join(mkdtempSync(join(tmpdir(), "migrations-")), "proxywarden.db");
  const first = new DatabaseSync(path);
  first.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE calls (
      day TEXT NOT NULL PRIMARY KEY,
      used INTEGER NOT NULL CHECK (used >= 0)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE facts (
      key TEXT NOT NULL PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO calls VALUES ('2026-11-01', 7), ('2026-11-02', 35);
    INSERT INTO facts VALUES ('month.used_before', '{"used":9}');
    PRAGMA user_version = 1`);
  const schema = first.prepare("SELECT sql FROM sqlite_schema WHERE name = 'calls'").get();
  await first.close();

  const store = openSqliteStore(dirname(path));
  if (!store.ok) throw new Error(store.error.message);
  expect(store.value.calls.since("2026-11-01")).toBe(42);
  expect((await store.value.journal.facts()).get("month.used_before")).toBe('{"used":9}');
  expect(await store.value.journal.load(0)).toMatchObject({ timers: [], episodes: [], lastNumber: 0 });
  await store.value.journal.commit([{ kind: "episode", row: episodeOf(1) }]);
  store.value.close();

  const second = new DatabaseSync(path);
  expect(schemaVersion(second)).toBe(MIGRATIONS.length);
  expect(second.prepare("SELECT sql FROM sqlite_schema WHERE name = 'calls'").get()).toEqual(schema);
  await second.close();
  rmSync(dirname(path), { recursive: true });
});

test("a dry run that version 4 wrote stays one, and its facts get their new names", async () => {
  const folder = mkdtempSync(join(tmpdir(), "migrations-"));
  const fourth = new DatabaseSync(join(folder, "proxywarden.db"));
  migrate(fourth, MIGRATIONS.slice(0, 4));
  const { episodes, actions, commands, facts } = EARLIER_ROWS;
  const putEpisode = fourth.prepare("INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (const row of episodes)
    putEpisode.run(Number(row.id.slice(3)), row.id, row.policy, row.node, row.state, 1, null, JSON.stringify(row));
  const putAction = fourth.prepare("INSERT INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const row of actions)
    putAction.run(Number(row.id.slice(4)), row.id, row.episode, "p", row.node, row.state, 1, 1, JSON.stringify(row));
  const putCommand = fourth.prepare("INSERT INTO orders (at, node, body) VALUES (?, ?, ?)");
  for (const row of commands) putCommand.run(row.at, row.node, JSON.stringify(row));
  for (const [key, value] of Object.entries(facts)) fourth.prepare("INSERT INTO facts VALUES (?, ?)").run(key, value);
  fourth.close();

  const store = openSqliteStore(folder);
  if (!store.ok) throw new Error(store.error.message);
  const loaded = await store.value.journal.load(0);
  const operatorCommands = await store.value.journal.operatorCommands({ limit: 9 });
  const renamed = { ...loaded, facts: Object.fromEntries(loaded.facts), commands: operatorCommands };
  expect(renamed).toMatchObject(RENAMED_ROWS);
  expect([...loaded.episodes, ...loaded.actions].filter((row) => "shadow" in row)).toEqual([]);
  await store.value.close();
  rmSync(folder, { recursive: true });
});

test("every table is strict and accepts only values of the column types", async () => {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  const loose = database
    .prepare("SELECT name FROM pragma_table_list WHERE strict = 0 AND name NOT LIKE 'sqlite_%'")
    .all();
  expect(loose).toEqual([]);
});

test("a failed migration leaves the previous version unchanged", async () => {
  const database = new DatabaseSync(":memory:");
  const migrations = ["CREATE TABLE first (a)", "CREATE TABLE second (a); CREATE TABLE first (a)"];
  expect(() => migrate(database, migrations)).toThrow("already exists");
  expect(tables(database)).toEqual(["first"]);
  expect(schemaVersion(database)).toBe(1);
  expect(database.isTransaction).toBe(false);
});
