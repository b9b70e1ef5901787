import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SAMPLE_RANGE, sampleJournal } from "../../journal/postgres/sample-journal.ts";
import { openLeaderStore, postgresDeps, removeCluster, sharedCluster } from "../../journal/state-stores.ts";
import { textOf } from "../repository-files.ts";
import { dashboards, interpolatedSql, type SqlDashboardQuery, sqlQueriesOf } from "./dashboard-files.ts";

const queries = sqlQueriesOf("audit.json", dashboards.get("audit.json")!);

/** Selection in Grafana: all policies. */
const ALL = { ...SAMPLE_RANGE, policies: ["reboot-offline", "full-disk"], node: "" };

/** Sends a query as Grafana does, with the role that compose.yaml gives it. */
async function ask(sql: string): Promise<pg.QueryResult<Record<string, unknown>>> {
  const { port } = await sharedCluster();
  const client = new pg.Client({ host: "127.0.0.1", port, user: "grafana", database: "proxywarden" });
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

const rowsOf = async (title: string, selected: typeof ALL): Promise<readonly Record<string, unknown>[]> => {
  const { sql } = queries.find(({ where }) => where === `audit.json: ${title}`)!;
  return (await ask(interpolatedSql(sql, selected))).rows;
};

/** initdb and a start, on a busy machine. */
const SERVER_START_MS_MAX = 60_000;

beforeAll(async () => {
  const cluster = await sharedCluster();
  // As the image of PostgreSQL does: a superuser with a database of its name, which the scripts of the volume prepare.
  await cluster.query("CREATE ROLE proxywarden SUPERUSER LOGIN");
  await cluster.query("CREATE DATABASE proxywarden OWNER proxywarden");
  const url = `postgres://proxywarden@127.0.0.1:${cluster.port}/proxywarden`;
  const owner = new pg.Client({ connectionString: url });
  await owner.connect();
  await owner.query(textOf("deploy/compose/postgres/grafana.sql"));
  await owner.end();
  const store = await openLeaderStore(await postgresDeps("proxywarden", url));
  await store.journal.commit(sampleJournal());
  await store.close();
}, SERVER_START_MS_MAX);
afterAll(removeCluster);

test.each(queries)("$where has data on a real PostgreSQL, in the form that its panel reads", async (query) => {
  const { rows, fields } = await ask(interpolatedSql(query.sql, ALL));
  expect(rows).not.toEqual([]);
  expect(rows.flatMap((row) => Object.values(row)).some((value) => value !== null && Number(value) !== 0)).toBe(true);
  expectShape(
    query,
    fields.map(({ name }) => name),
  );
});

/** Grafana draws a line for each metric; a table has names of columns that fit its head. */
function expectShape({ format, where }: SqlDashboardQuery, names: readonly string[]): void {
  if (format === "time_series") expect(names, where).toEqual(["time", "metric", "value"]);
  else expect(new Set(names).size, where).toBe(names.length);
}

test("every macro and variable in the queries is replaced", () => {
  const left = queries.map(({ sql }) => interpolatedSql(sql, ALL)).filter((sql) => sql.includes("$"));
  expect(left).toEqual([]);
  expect(queries.length).toBeGreaterThan(10);
});

test("the operator who approved or rejected an action is shown with its outcome", async () => {
  const rows = await rowsOf("Approvals and rejections", ALL);
  expect(
    rows.map(({ operator, answer, node, state, outcome }) => ({ operator, answer, node, state, outcome })),
  ).toEqual([
    { operator: "bob", answer: "rejected", node: "node_3", state: "rejected", outcome: null },
    { operator: "alice", answer: "approved", node: "node_1", state: "ended", outcome: "verified" },
  ]);
});

test("the outcomes of each policy are counted", async () => {
  const rows = await rowsOf("Outcomes by policy", ALL);
  expect(rows).toMatchObject([
    { policy: "full-disk", action: "quarantine", actions: "1", ineffective: "1", "share verified": 0 },
    { policy: "reboot-offline", action: "reboot", actions: "1", verified: "1", "share verified": 1 },
  ]);
});

test("a selected node or policy excludes the others", async () => {
  const nodes = async (selected: Partial<typeof ALL>) =>
    (await rowsOf("Episodes", { ...ALL, ...selected })).map(({ node }) => node);
  expect(await nodes({})).toEqual(["node_3", "node_2", "node_1"]);
  expect(await nodes({ node: "node_2" })).toEqual(["node_2"]);
  expect(await nodes({ policies: ["full-disk"] })).toEqual(["node_2"]);
});

test("the role of Grafana changes nothing", async () => {
  await expect(ask("DELETE FROM actions")).rejects.toThrow("permission denied");
});
