import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openLeaderStore, postgresDeps, removeCluster, sharedCluster } from "../state-stores.ts";
import { sampleJournal } from "./sample-journal.ts";

const PAGE = readFileSync(join(import.meta.dirname, "../../../docs/high-availability.md"), "utf8");

/** The SQL blocks of the page, in order: the database, the role of Grafana, and questions. */
const [createDatabase, createReader, ...questions] = [...PAGE.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(
  ([, sql]) => sql!,
);

/** The columns of each view, as the page lists them. */
const documentedColumns = Object.fromEntries(
  [...PAGE.matchAll(/^\| `(proxywarden_\w+)` \| [^|]+ \| (.*) \|$/gm)].map(([, view, columns]) => [
    view!,
    columns!.split(", ").map((column) => column.replaceAll("`", "")),
  ]),
);

/** Runs statements as a role, with times in UTC. The server of the tests asks for no password. */
async function queryAs(user: string, sql: string): Promise<readonly Record<string, unknown>[]> {
  const { port } = await sharedCluster();
  const client = new pg.Client({ host: "127.0.0.1", port, user, database: "proxywarden", options: "-c TimeZone=UTC" });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** The rows of a view as JSON: times in ISO 8601, durations as PostgreSQL writes them. */
async function rowsOf(view: string, order: string): Promise<readonly unknown[]> {
  const rows = await queryAs("grafana", `SELECT to_jsonb(v) AS row FROM ${view} v ORDER BY ${order}`);
  return rows.map(({ row }) => row);
}

/** initdb and a start, on a busy machine. */
const SERVER_START_MS_MAX = 60_000;

beforeAll(async () => {
  const cluster = await sharedCluster();
  // One by one: a database is not created in a transaction.
  for (const sql of createDatabase!.trim().split("\n")) await cluster.query(sql);
  const url = `postgres://proxywarden@127.0.0.1:${cluster.port}/proxywarden`;
  const store = await openLeaderStore(await postgresDeps("proxywarden", url));
  await store.journal.commit(sampleJournal());
  await store.close();
  await queryAs("postgres", createReader!);
}, SERVER_START_MS_MAX);
afterAll(removeCluster);

test("an episode has its times, its duration, and our quarantine", async () => {
  const episodes = await rowsOf("proxywarden_episodes", "number");
  expect(episodes).toEqual([
    {
      ...EPISODE,
      id: "ep-1",
      number: 1,
      state: "healed",
      steps_sent: 1,
      healed: true,
      opened_at: "2026-11-21T09:00:00+00:00",
      state_since: "2026-11-21T09:12:00+00:00",
      closed_at: "2026-11-21T09:12:00+00:00",
      duration: "00:12:00",
    },
    {
      ...EPISODE,
      id: "ep-3",
      number: 3,
      policy: "full-disk",
      node: "node_2",
      state: "given_up",
      step: 2,
      steps_sent: 1,
      opened_at: "2026-11-21T09:10:00+00:00",
      state_since: "2026-11-21T09:40:00+00:00",
      closed_at: "2026-11-21T09:40:00+00:00",
      duration: "00:30:00",
      quarantine_action: "act-4",
      quarantine_ends_at: "2026-11-21T10:10:00+00:00",
    },
    {
      ...EPISODE,
      id: "ep-5",
      number: 5,
      node: "node_3",
      state: "firing",
      opened_at: "2026-11-21T09:20:00+00:00",
      state_since: "2026-11-21T09:20:00+00:00",
    },
  ]);
});

const EPISODE = {
  policy: "reboot-offline",
  node: "node_1",
  country: "DE",
  region: "eu-central",
  dry_run: false,
  step: 1,
  steps_sent: 0,
  failed_attempts: 0,
  healed: false,
  closed_at: null,
  duration: null,
  quarantine_action: null,
  quarantine_ends_at: null,
};

test("an action has its request, the operator who answered it, and its outcome", async () => {
  const actions = await rowsOf("proxywarden_actions", "number");
  expect(actions).toEqual([
    {
      ...ACTION,
      id: "act-2",
      number: 2,
      episode: "ep-1",
      force: false,
      outcome: "verified",
      proof: "uptime_fell",
      status_before: "offline",
      uptime_hours_before: 7,
      created_at: "2026-11-21T09:00:00+00:00",
      approved_at: "2026-11-21T09:02:00+00:00",
      answer: "approved",
      answered_by: "alice",
      answered_at: "2026-11-21T09:02:00+00:00",
      sent_at: "2026-11-21T09:02:00+00:00",
      ended_at: "2026-11-21T09:04:00+00:00",
      duration: "00:02:00",
    },
    {
      ...ACTION,
      id: "act-4",
      number: 4,
      episode: "ep-3",
      policy: "full-disk",
      node: "node_2",
      step: 2,
      action: "quarantine",
      quarantine_duration: "01:00:00",
      quarantine_reason: "full-disk: ep-3",
      outcome: "ineffective",
      in_doubt: true,
      detail: "no response within 10s",
      created_at: "2026-11-21T09:10:00+00:00",
      sent_at: "2026-11-21T09:10:00+00:00",
      ended_at: "2026-11-21T09:40:00+00:00",
      duration: "00:30:00",
    },
    {
      ...ACTION,
      id: "act-6",
      number: 6,
      episode: "ep-5",
      node: "node_3",
      force: false,
      state: "rejected",
      uptime_hours_before: 7,
      created_at: "2026-11-21T09:20:00+00:00",
      answer: "rejected",
      answered_by: "bob",
      answered_at: "2026-11-21T09:25:00+00:00",
      ended_at: "2026-11-21T09:25:00+00:00",
    },
  ]);
});

const ACTION = {
  policy: "reboot-offline",
  node: "node_1",
  country: "DE",
  region: "eu-central",
  step: 1,
  action: "reboot",
  force: null,
  quarantine_duration: null,
  quarantine_reason: null,
  dry_run: false,
  state: "ended",
  outcome: null,
  in_doubt: false,
  proof: null,
  detail: null,
  status_before: null,
  uptime_hours_before: null,
  approved_at: null,
  answer: null,
  answered_by: null,
  answered_at: null,
  sent_at: null,
  duration: null,
  evidence: { "node.status": "offline" },
};

test("a decision has every reason, and an order has its operator", async () => {
  const decision = { policy: "reboot-offline", node: "node_1", step: 1, mode: "enforce" };
  const evidence = { "node.status": "offline" };
  expect(await rowsOf("proxywarden_decisions", "seq")).toEqual([
    {
      ...decision,
      seq: 1,
      episode: "ep-1",
      verdict: "act",
      reasons: [],
      detail: null,
      evidence,
      at: "2026-11-21T09:00:00+00:00",
      observed_at: "2026-11-21T08:59:00+00:00",
    },
    {
      ...decision,
      seq: 2,
      episode: null,
      verdict: "hold",
      reasons: ["cooldown", "paused"],
      evidence,
      detail: "the last episode ended 18m ago, and 30m must pass; alice paused all actions",
      at: "2026-11-21T09:30:00+00:00",
      observed_at: "2026-11-21T09:30:00+00:00",
    },
  ]);
  const orders = await queryAs(
    "grafana",
    "SELECT operator, command, node, action FROM proxywarden_orders ORDER BY seq",
  );
  expect(orders).toEqual([
    { operator: "alice", command: "approve", node: "node_1", action: "act-2" },
    { operator: "alice", command: "pause", node: null, action: null },
    { operator: null, command: "reload", node: null, action: null },
  ]);
});

test("the documented columns are those of the views, with times as timestamptz", async () => {
  const rows = await queryAs(
    "postgres",
    `SELECT table_name AS view, column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_schema = 'proxywarden' AND table_name LIKE 'proxywarden_%' ORDER BY table_name, ordinal_position`,
  );
  const views = Object.keys(documentedColumns);
  expect(views.toSorted()).toEqual([...new Set(rows.map(({ view }) => view))]);
  const columnsOf = (view: string) => rows.flatMap((row) => (row.view === view ? [row.name] : []));
  for (const view of views) expect(columnsOf(view), view).toEqual(documentedColumns[view]);
  const times = rows.filter(({ name }) => /^at$|_at$|_since$/.test(String(name)));
  expect(times.length).toBeGreaterThan(10);
  expect(times.filter(({ type }) => type !== "timestamp with time zone")).toEqual([]);
});

test("the documented role answers the documented questions, and can change nothing", async () => {
  expect(questions.length).toBeGreaterThan(2);
  for (const sql of questions) expect(await queryAs("grafana", sql), sql).toBeInstanceOf(Array);
  await expect(queryAs("grafana", "DELETE FROM proxywarden_episodes")).rejects.toThrow("permission denied");
  await expect(queryAs("grafana", "SELECT * FROM facts")).rejects.toThrow("permission denied");
});
