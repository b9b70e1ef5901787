import { fail, ok, type Result } from "../../base/result.ts";
import { createJournalTables } from "../journal-tables.ts";
import { type StoreFailure, unreadableVersionFailure, unusableVersionFailure } from "../open-failure.ts";
import type { Connection, Database } from "./database.ts";
import { createViews } from "./views.ts";

/**
 * The schema's history. The first entry creates the tables, and every other one migrates them by one version. `s` is the
 * quoted name of the schema. Released entries are never edited. The tables of the journal are the same as in SQLite.
 */
export const MIGRATIONS: readonly ((s: string) => string)[] = [
  (s) => `
    CREATE TABLE ${s}.calls (day text PRIMARY KEY, used bigint NOT NULL CHECK (used >= 0));
    CREATE TABLE ${s}.facts (key text PRIMARY KEY, value text NOT NULL);
    ${createJournalTables({
      prefix: `${s}.`,
      time: "double precision",
      json: "jsonb",
      number: "bigint PRIMARY KEY",
      sequence: "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
      numbered: "",
      keyed: "",
    })}
    -- One row: the leader, or the last one. epoch grows with every new leader.
    CREATE TABLE ${s}.leases (
      id boolean PRIMARY KEY DEFAULT true CHECK (id),
      holder text NOT NULL,
      url text,
      epoch bigint NOT NULL,
      expires_at timestamptz NOT NULL
    );
    -- Commands on their way from a standby to the leader, and its replies.
    CREATE TABLE ${s}.forwarded_commands (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      body jsonb NOT NULL,
      reply jsonb
    );
    CREATE INDEX forwarded_commands_pending ON ${s}.forwarded_commands (id) WHERE reply IS NULL;
    -- One row: the last commit. A commit that arrives after a later one is rejected.
    CREATE TABLE ${s}.last_commit (
      id boolean PRIMARY KEY DEFAULT true CHECK (id),
      epoch bigint NOT NULL,
      number bigint NOT NULL
    );
    INSERT INTO ${s}.last_commit (epoch, number) VALUES (0, 0);
    ${createViews(s)}`,
];

/** The versions that this version of proxywarden supports. The first release creates the first one. */
export const VERSIONS = { first: 3, last: 2 + MIGRATIONS.length };

/**
 * Creates or migrates the schema, in one transaction and by one daemon at a time. Fails if it has a version that this
 * proxywarden does not know. Rejects if the database can't be reached, or if this user is not allowed to create the schema.
 */
export function migrate(database: Database, migrations = MIGRATIONS): Promise<Result<void, StoreFailure>> {
  const { schema: s, schemaName } = database;
  return database.transaction(async (connection) => {
    await connection.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`proxywarden ${schemaName}`]);
    const version = await schemaVersion(connection, database);
    if (version === null) {
      // IF NOT EXISTS would require the permission to create a schema even if it exists.
      const [found] = await connection.query("SELECT FROM pg_namespace WHERE nspname = $1", [schemaName]);
      if (found === undefined) await connection.query(`CREATE SCHEMA ${s}`);
      await connection.query(`CREATE TABLE ${s}.schema_version (version integer NOT NULL)`);
      await connection.query(`INSERT INTO ${s}.schema_version VALUES (0)`);
    }
    const problem = unusableVersionFailure(named(database), version ?? 0, VERSIONS);
    if (problem !== null) return fail(problem);
    for (const [index, migration] of migrations.entries())
      if (VERSIONS.first + index > (version ?? 0)) await connection.query(migration(s));
    const last = VERSIONS.first + migrations.length - 1;
    if (version !== last) await connection.query(`UPDATE ${s}.schema_version SET version = $1`, [last]);
    return ok(undefined);
  });
}

/** Returns why a schema can't be read by this version, or null if it can. */
export async function schemaProblem(connection: Connection, database: Database): Promise<StoreFailure | null> {
  const version = await schemaVersion(connection, database);
  if (version !== null) return unreadableVersionFailure(named(database), version, VERSIONS);
  const message = `${named(database)} holds no journal; state.postgres must name the database and schema of a daemon`;
  return { kind: "missing", message };
}

/** Returns the version of a schema, or null if it has no table with its version. */
async function schemaVersion(connection: Connection, { schema: s }: Database): Promise<number | null> {
  const [table] = await connection.query("SELECT to_regclass($1) IS NOT NULL AS found", [`${s}.schema_version`]);
  if (table?.found !== true) return null;
  const [row] = await connection.query(`SELECT version FROM ${s}.schema_version`);
  return Number(row?.version ?? 0);
}

/** Returns the schema as messages name it. */
export const named = ({ name, schema }: Database): string => `schema ${schema} in ${name}`;
