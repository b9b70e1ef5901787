import { once } from "node:events";
import { chmodSync } from "node:fs";
import { createServer } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DurationMs, SECOND_MS } from "../../../src/base/duration.ts";
import { listen } from "../../harness/servers/free-port.ts";
import { type PostgresCluster, startPostgres } from "../../harness/servers/postgres-cluster.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { parseMetricsPage } from "../metrics-page.ts";
import { startCommand, waitForStderr } from "../process.ts";
import { configText, startNetwork } from "../simulated-network.ts";
import { waitUntil } from "../wait-until.ts";

/** Processes and servers start slowly on a busy machine. */
const WAIT_MS: DurationMs = 60 * SECOND_MS;
const TEST_MS_MAX = 120_000;

/** Each test starts and stops it as it needs. */
let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await startPostgres(["fsync = off"]);
}, TEST_MS_MAX);
afterAll(() => cluster.remove());

/** Starts `run` with a database. `schema`: its own, so that tests share the cluster. */
async function startRun(databaseUrl: string, schema: string) {
  const network = await startNetwork({ speed: 1 });
  const folder = createTempFolder();
  const state = { postgres: { url_file: folder.write("postgres_url", databaseUrl), schema, lease: "5s" } };
  const collect = { nodes: { every: "1s" } };
  return startCommand("run", "--config", folder.write("proxywarden.yaml", configText(network.url, { state, collect })));
}

/** Waits until a daemon has started, and returns the URL of its web server. */
async function untilStarted(daemon: ReturnType<typeof startCommand>): Promise<string> {
  const [, url] = await waitForStderr(daemon, /"url":"(http:[^"]+)".*"msg":"daemon started"/);
  return url!;
}

test(
  "a daemon that starts before its database stands by, shows why, and leads once the database answers",
  async () => {
    await cluster.stop("fast");
    const daemon = await startRun(cluster.url(), "late");
    const url = await untilStarted(daemon);
    const scrape = async () => parseMetricsPage(await (await fetch(`${url}/metrics`)).text());
    expect((await fetch(`${url}/-/healthy`)).status).toBe(200);
    expect((await fetch(url)).status).toBe(200);
    const ready = await fetch(`${url}/-/ready`);
    expect([ready.status, await ready.text()]).toEqual([
      503,
      expect.stringMatching(/can't be reached: .*ECONNREFUSED/),
    ]);
    expect((await scrape()).sum("proxywarden_leader")).toBe(0);
    await cluster.start();
    await waitUntil(
      () => `the daemon leads and polls:\n${daemon.err()}`,
      async () => ((await scrape()).sum("proxynet_nodes") ?? 0) > 0,
      WAIT_MS,
    );
    expect((await scrape()).sum("proxywarden_leader")).toBe(1);
    expect((await fetch(`${url}/-/ready`)).status).toBe(200);
    daemon.kill("SIGTERM");
    expect((await daemon.ended).code).toBe(0);
  },
  TEST_MS_MAX,
);

test(
  "a daemon that is stopped while it waits for its database exits with 0",
  async () => {
    await cluster.stop("fast");
    const daemon = await startRun(cluster.url(), "unused");
    await untilStarted(daemon);
    daemon.kill("SIGTERM");
    expect((await daemon.ended).code).toBe(0);
    await cluster.start();
  },
  TEST_MS_MAX,
);

test(
  "a daemon with a wrong password exits and says so",
  async () => {
    const folder = createTempFolder();
    chmodSync(folder.path, 0o755);
    const access = folder.write(
      "pg_hba.conf",
      "host all postgres samehost trust\nhost all all samehost scram-sha-256\n",
    );
    await cluster.query(`ALTER SYSTEM SET hba_file = '${access}'`);
    await cluster.query("CREATE ROLE daemon LOGIN PASSWORD 'right'");
    // It is read at the start of a server.
    await cluster.stop("fast");
    await cluster.start();
    const daemon = await startRun(cluster.url().replace("postgres@", "daemon:wrong@"), "refused");
    const { code, err } = await daemon.ended;
    expect(code).toBe(1);
    expect(err).toMatch(/^proxywarden: state\.postgres: .*password authentication failed for user "daemon"$/m);
    expect(err).not.toContain("wrong");
    await cluster.query("ALTER SYSTEM RESET hba_file");
  },
  TEST_MS_MAX,
);

test(
  "a daemon whose database turns out to be of a later version exits and says so",
  async () => {
    await cluster.query("CREATE SCHEMA newer");
    await cluster.query("CREATE TABLE newer.schema_version AS SELECT 99 AS version");
    await cluster.stop("fast");
    const daemon = await startRun(cluster.url(), "newer");
    await untilStarted(daemon);
    await cluster.start();
    const { code, err } = await daemon.ended;
    expect(code).toBe(1);
    expect(err).toMatch(
      /^proxywarden: state\.postgres: schema "newer" in .* has schema version 99, .*run the version/m,
    );
  },
  TEST_MS_MAX,
);

test(
  "SIGTERM ends a daemon whose start waits for a database that accepts connections and does not answer",
  async () => {
    const silent = createServer();
    const connected = once(silent, "connection");
    const daemon = await startRun(cluster.url({ port: await listen(silent) }), "silent");
    await connected;
    daemon.kill("SIGTERM");
    const ended = await daemon.ended;
    silent.close();
    expect(ended).toMatchObject({ code: 0, out: "", err: expect.not.stringContaining("daemon started") });
  },
  TEST_MS_MAX,
);
