import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { MIGRATIONS, migrate, schemaVersion, VERSIONS } from "../../../src/journal/sqlite/migrations.ts";
import { openSqliteStore, readSqliteState } from "../../../src/journal/sqlite/store.ts";

const tables = (database: DatabaseSync) =>
  database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map(({ name }) => name);

test("a new database gets every migration, and a second run changes nothing", async () => {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  expect(schemaVersion(database)).toBe(VERSIONS.last);
  database.exec("INSERT INTO facts VALUES ('kept', 'yes')");
  migrate(database);
  expect(schemaVersion(database)).toBe(VERSIONS.last);
  expect(database.prepare("SELECT value FROM facts").get()).toEqual({ value: "yes" });
});

test("an older database gets only the missing migrations", async () => {
  const database = new DatabaseSync(":memory:");
  migrate(database, ["CREATE TABLE first (a)"]);
  migrate(database, ["CREATE TABLE first (a)", "CREATE TABLE second (a)"]);
  expect(tables(database)).toEqual(["first", "second"]);
  expect(schemaVersion(database)).toBe(VERSIONS.first + 1);
});

test("the last version is that of the first release after the last migration", () => {
  expect(VERSIONS.last).toBe(VERSIONS.first + MIGRATIONS.length - 1);
});

test("a database of a build from before the first release is refused with what to do, and not changed", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "migrations-")), "proxywarden.db");
  const early = new DatabaseSync(path);
  early.exec("CREATE TABLE facts (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL); PRAGMA user_version = 4");
  early.close();
  const before = readFileSync(path);
  const message = `${path} has schema version 4, but this version of proxywarden supports 5 and later; a build from before the first release wrote it; move it away, or see "Changes during development" in CHANGELOG.md for how to keep it`;
  expect(openSqliteStore(dirname(path))).toEqual({ ok: false, error: { kind: "unsupported", message } });
  const read = await readSqliteState(dirname(path), () => Promise.resolve());
  expect(read).toEqual({ ok: false, error: { kind: "unsupported", message } });
  expect(readFileSync(path).equals(before)).toBe(true);
  rmSync(dirname(path), { recursive: true });
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
  expect(schemaVersion(database)).toBe(VERSIONS.first);
  expect(database.isTransaction).toBe(false);
});
