import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { MIGRATIONS, migrate, schemaVersion } from "../../src/store/migrations.ts";

const tables = (database: DatabaseSync) =>
  database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map(({ name }) => name);

test("a new database gets every migration, and a second run changes nothing", () => {
  const database = new DatabaseSync(":memory:");
  migrate(database);
  expect(schemaVersion(database)).toBe(MIGRATIONS.length);
  database.exec("INSERT INTO facts VALUES ('kept', 'yes')");
  migrate(database);
  expect(schemaVersion(database)).toBe(MIGRATIONS.length);
  expect(database.prepare("SELECT value FROM facts").get()).toEqual({ value: "yes" });
});

test("a database of an older version gets only what it lacks", () => {
  const database = new DatabaseSync(":memory:");
  migrate(database, ["CREATE TABLE first (a)"]);
  migrate(database, ["CREATE TABLE first (a)", "CREATE TABLE second (a)"]);
  expect(tables(database)).toEqual(["first", "second"]);
  expect(schemaVersion(database)).toBe(2);
});

test("a migration that fails half way leaves the version before it, whole", () => {
  const database = new DatabaseSync(":memory:");
  const migrations = ["CREATE TABLE first (a)", "CREATE TABLE second (a); CREATE TABLE first (a)"];
  expect(() => migrate(database, migrations)).toThrow("already exists");
  expect(tables(database)).toEqual(["first"]);
  expect(schemaVersion(database)).toBe(1);
  expect(database.isTransaction).toBe(false);
});
